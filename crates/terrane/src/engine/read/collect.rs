//! Scans that collect their results before the caller sees any, like FloDB's (paper, Algorithm 3):
//! they read only drained versions, and end if they meet a version newer than the scan.

use terrane_memtable::{Config, FrontLevel, Memtable, Pool, VectorConfig, VectorQuery};

use super::scan::ReadView;
use crate::base::error::Result;
use crate::base::types::SeqNo;
use crate::engine::cursor::Direction;

/// How a scan handles a version that is newer than the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewerVersions {
    /// The scan ends: the version that it should see may have been overwritten.
    End,
    /// The scan skips it. The sequence number of the view must be held.
    Skip,
}

/// The outcome of a scan.
#[derive(Debug)]
pub(crate) enum Collected {
    /// A view that contains only the results.
    Results(Box<ReadView>),
    /// The scan met a newer version.
    Overtaken,
    /// The results take more memory than allowed, or reading one of them failed.
    TooLarge,
}

impl ReadView {
    /// Collects the entries of a range. The Membuffers of the view must be drained up to its sequence
    /// number.
    pub(crate) fn collect(
        &self,
        (start, end): (&[u8], &[u8]),
        newer: NewerVersions,
        bytes_max: u64,
    ) -> Result<Collected> {
        let vector = VectorConfig { prealloc_bytes: 0, query: VectorQuery::Resort };
        let results = Memtable::new(Config::Vector(vector), &Pool::new(0));
        let mut cursor = self.drained_cursor(Direction::Forward, Some(end))?;
        match newer {
            NewerVersions::End => cursor.seek_until_newer(start)?,
            NewerVersions::Skip => cursor.seek(start)?,
        }
        let mut bytes = 0;
        while cursor.is_valid() && cursor.key() < end {
            // An error is left to the reader of the entry.
            if cursor.is_operand() && cursor.load_value(self.values()).is_err() {
                return Ok(Collected::TooLarge);
            }
            bytes += cursor.copy_to(&results) as u64;
            if bytes > bytes_max {
                return Ok(Collected::TooLarge);
            }
            cursor.step()?;
        }
        if cursor.is_overtaken() {
            return Ok(Collected::Overtaken);
        }
        results.freeze();
        Ok(Collected::Results(Box::new(self.of_results(results))))
    }

    /// Drains the Membuffers of the view up to a sequence number.
    pub(crate) fn drain_up_to(&self, seq: SeqNo) {
        let fronts = self.state().memtables().filter_map(|memtable| memtable.front_level());
        fronts.for_each(|front: &dyn FrontLevel| front.drain_up_to(seq));
    }
}
