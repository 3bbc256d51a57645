//! The history of finished compactions and merging flushes in the manifest: their reasons and costs.
//!
//! ```text
//! job: | keyspace | ended | took | rewritten | moved | predicted | read | written |
//!      | persisted option | what slice | why slice |
//! ```
//! Numbers are varints. A reader that does not know this change skips it, because it is not state.

use std::collections::VecDeque;
use std::sync::Arc;

use terrane_policy::TableId;

use crate::base::codec::{Decoded, Reader, put_option, put_slice, put_varint};
use crate::base::types::KeyspaceId;

/// The number of jobs kept, in addition to the job that took longest to make deletes persistent.
const JOBS_KEPT: usize = 1000;

/// The approximate maximum size of the kept jobs, in bytes. It is small because every opening
/// writes the history twice.
const BYTES_KEPT: usize = 128 << 10;

/// The approximate size of a job without its strings, in bytes.
const NUMBERS_BYTES: usize = 40;

/// A finished compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobRecord {
    pub(crate) keyspace: KeyspaceId,
    /// When it ended, in microseconds since the Unix epoch.
    pub(crate) ended_micros: u64,
    pub(crate) took_micros: u64,
    pub(crate) tables_rewritten: u64,
    pub(crate) tables_moved: u64,
    /// The predicted cost: the bytes to read plus the maximum number of bytes to write.
    pub(crate) predicted_bytes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// The age of the oldest tombstone, if the job dropped all tombstones that it read, or the age of
    /// the oldest dead value in the value files that it removed.
    pub(crate) persisted_micros: Option<u64>,
    /// Its inputs and its output level.
    pub(crate) what: String,
    /// Its reason, in a sentence.
    pub(crate) why: String,
}

impl JobRecord {
    fn size_bytes(&self) -> usize {
        NUMBERS_BYTES + self.what.len() + self.why.len()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.keyspace.0.into());
        let numbers = [
            self.ended_micros,
            self.took_micros,
            self.tables_rewritten,
            self.tables_moved,
            self.predicted_bytes,
            self.read_bytes,
            self.written_bytes,
        ];
        numbers.iter().for_each(|&number| put_varint(out, number));
        put_option(out, self.persisted_micros, put_varint);
        put_slice(out, self.what.as_bytes());
        put_slice(out, self.why.as_bytes());
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        let keyspace = KeyspaceId(reader.varint_u32("keyspace")?);
        let mut number = || reader.varint("job");
        Ok(Self {
            keyspace,
            ended_micros: number()?,
            took_micros: number()?,
            tables_rewritten: number()?,
            tables_moved: number()?,
            predicted_bytes: number()?,
            read_bytes: number()?,
            written_bytes: number()?,
            persisted_micros: reader.option("job", |reader| reader.varint("job"))?,
            what: reader.text("job")?.to_owned(),
            why: reader.text("job")?.to_owned(),
        })
    }
}

/// Finished compactions, oldest first. States share the records; adding one copies the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JobHistory {
    kept: VecDeque<Arc<JobRecord>>,
    /// The approximate size of all records, in bytes.
    bytes: usize,
}

impl JobHistory {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &JobRecord> {
        self.kept.iter().map(|job| &**job)
    }

    /// Adds a job and drops the oldest ones beyond the limits.
    pub(super) fn add(&mut self, job: JobRecord) {
        self.bytes += job.size_bytes();
        self.kept.push_back(Arc::new(job));
        while self.kept.len() > 1 && (self.kept.len() > JOBS_KEPT + 1 || self.bytes > BYTES_KEPT) {
            let worst = self.iter().map(|job| job.persisted_micros).max().flatten();
            let is_worst = |job: &JobRecord| worst.is_some() && job.persisted_micros == worst;
            let oldest = self.iter().position(|job| !is_worst(job)).unwrap_or(0);
            let gone = self.kept.remove(oldest);
            self.bytes -= gone.map_or(0, |job| job.size_bytes());
        }
    }
}

/// Describes the inputs and the output of a job.
pub(crate) fn describe(compaction: &terrane_policy::Compaction) -> String {
    let inputs = compaction.inputs.iter().map(|input| {
        if input.is_memtable() {
            return "the memtable".to_owned();
        }
        let tables = input.tables.iter().map(|table| table.id);
        format!("L{} r{}: {}", input.level, input.run, listed(tables))
    });
    let target = match compaction.output.placement {
        terrane_policy::Placement::NewRun => "a new run".to_owned(),
        terrane_policy::Placement::Join(run) => format!("r{run}"),
    };
    let inputs: Vec<String> = inputs.collect();
    format!("{} into L{} {target}", inputs.join(" + "), compaction.output.level)
}

/// Lists the first table numbers, and counts the rest.
fn listed(tables: impl ExactSizeIterator<Item = TableId>) -> String {
    let count = tables.len();
    let few: Vec<String> = tables.take(4).map(|id| id.to_string()).collect();
    let more = if count > 4 { format!(" and {} more", count - 4) } else { String::new() };
    few.join(" ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn job(ended_micros: u64, persisted_micros: Option<u64>) -> JobRecord {
        JobRecord {
            keyspace: KeyspaceId(0),
            ended_micros,
            took_micros: 1,
            tables_rewritten: 2,
            tables_moved: 3,
            predicted_bytes: 4,
            read_bytes: 5,
            written_bytes: 6,
            persisted_micros,
            what: "L0 r1: 2 into L1 a new run".into(),
            why: "run-count".into(),
        }
    }

    #[test]
    fn the_last_jobs_are_kept_and_the_worst() {
        let mut jobs = JobHistory::default();
        for number in 0..3000 {
            jobs.add(job(number, Some(if number == 7 { 99 } else { number % 5 })));
        }
        let ended: Vec<u64> = jobs.iter().map(|job| job.ended_micros).collect();
        assert_eq!((ended.len(), ended[0], ended[1]), (JOBS_KEPT + 1, 7, 2000));
    }

    #[test]
    fn jobs_with_long_texts_are_fewer() {
        let mut jobs = JobHistory::default();
        for number in 0..3000 {
            let why = "because ".repeat(100);
            jobs.add(JobRecord { why, ..job(number, None) });
            assert!(jobs.bytes <= BYTES_KEPT);
        }
        let counted: usize = jobs.iter().map(JobRecord::size_bytes).sum();
        assert_eq!(counted, jobs.bytes);
        assert!(jobs.iter().count() > 100);
        let monster = JobRecord { why: "x".repeat(1 << 20), ..job(1, None) };
        jobs.add(monster);
        assert_eq!(jobs.iter().count(), 1, "the newest job is kept whatever its size");
    }
}
