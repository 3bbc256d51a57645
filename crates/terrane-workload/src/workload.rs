//! The workloads by name.
//!
//! Names are those of db_bench and YCSB, because users know them. A workload states the data that it
//! needs and its number of operations; the [driver](crate::driver) executes it. Differences from
//! db_bench:
//!
//! - `fillrandom` writes every key once, in random order, so every key exists afterwards and a read
//!   that finds nothing is a failure, whereas db_bench draws keys with replacement.
//! - `fillseq` writes [ordered keys](crate::key::KeyOrder::Ordered), other workloads hashed ones
//!   unless the options say otherwise: see [`Workload::key_order_loaded`].
//! - `seekrandom:N` reads N entries per seek, including the entry at its position.

mod fit;
mod text;
mod ycsb;

use crate::distribution::{Distribution, THETA_DEFAULT};
use crate::key::KeyOrder;
use crate::options::RunOptions;

pub use ycsb::{Shares, YcsbMix};

/// Entries per batch of `fillbatch`, as in the bulk loads of db_bench and other engines.
const BATCH_ENTRIES_DEFAULT: u32 = 100;
const MULTI_GET_KEYS_DEFAULT: u32 = 32;
const SEEK_ENTRIES_DEFAULT: u32 = 10;
/// `fillsync` writes a hundredth of the keys, because a synced write is a thousand times slower.
const SYNCED_SHARE: u64 = 100;

/// A sequence of operations on a store. Its text form is its name, followed by `:N` if it has a
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Workload {
    /// Writes every key once, in key order.
    FillSeq,
    /// Writes every key once, in random order.
    FillRandom,
    /// Writes every key once, in random order, in atomic batches.
    FillBatch {
        /// The number of entries in a batch.
        entries: u32,
    },
    /// Writes a hundredth of the keys, each synced to storage.
    FillSync,
    /// Overwrites existing keys.
    Overwrite,
    /// Deletes keys, some of them more than once.
    DeleteRandom,
    /// Reads existing keys.
    ReadRandom,
    /// Reads missing keys.
    ReadMissing,
    /// Reads all entries in key order.
    ReadSeq,
    /// Reads all entries in reverse key order.
    ReadReverse,
    /// Reads entries starting at a random key.
    SeekRandom {
        /// Entries per seek.
        entries: u32,
    },
    /// Reads existing keys, several per call.
    MultiReadRandom {
        /// Keys per call.
        keys: u32,
    },
    /// Reads existing keys while another thread overwrites keys.
    ReadWhileWriting,
    /// Loads the records of YCSB.
    YcsbLoad,
    /// One of YCSB's core workloads.
    Ycsb(YcsbMix),
    /// The operations of [`RunOptions::mix`], in their proportions.
    Mix,
    /// Waits until the store has no background work to do.
    Settle,
}

impl Workload {
    /// All workloads, each with its default number.
    pub const ALL: [Self; 22] = [
        Self::FillSeq,
        Self::FillRandom,
        Self::FillBatch { entries: BATCH_ENTRIES_DEFAULT },
        Self::FillSync,
        Self::Overwrite,
        Self::DeleteRandom,
        Self::ReadRandom,
        Self::ReadMissing,
        Self::ReadSeq,
        Self::ReadReverse,
        Self::SeekRandom { entries: SEEK_ENTRIES_DEFAULT },
        Self::MultiReadRandom { keys: MULTI_GET_KEYS_DEFAULT },
        Self::ReadWhileWriting,
        Self::YcsbLoad,
        Self::Ycsb(YcsbMix::A),
        Self::Ycsb(YcsbMix::B),
        Self::Ycsb(YcsbMix::C),
        Self::Ycsb(YcsbMix::D),
        Self::Ycsb(YcsbMix::E),
        Self::Ycsb(YcsbMix::F),
        Self::Mix,
        Self::Settle,
    ];

    /// Returns the workload that loads the data for this one; `None` if this one needs an empty store.
    pub const fn loaded_by(self) -> Option<Self> {
        match self {
            Self::FillSeq
            | Self::FillRandom
            | Self::FillBatch { .. }
            | Self::FillSync
            | Self::YcsbLoad
            | Self::Settle => None,
            Self::Ycsb(_) => Some(Self::YcsbLoad),
            _ => Some(Self::FillRandom),
        }
    }

    /// Returns the key order of the data that this workload loads; `None` if it loads nothing. Workloads
    /// on that data need the same order in their [options](RunOptions::key_order).
    pub const fn key_order_loaded(self, options: &RunOptions) -> Option<KeyOrder> {
        match self {
            Self::FillSeq => Some(KeyOrder::Ordered),
            Self::FillRandom | Self::FillBatch { .. } | Self::FillSync | Self::YcsbLoad => {
                Some(options.key_order)
            }
            _ => None,
        }
    }

    /// Returns true if the workload writes (or, for `mix`, may write), so that the store has to
    /// settle before the next measurement.
    pub const fn writes(self) -> bool {
        match self {
            Self::Ycsb(mix) => mix.shares().read + mix.shares().scan < 100,
            Self::ReadRandom
            | Self::ReadMissing
            | Self::ReadSeq
            | Self::ReadReverse
            | Self::SeekRandom { .. }
            | Self::MultiReadRandom { .. }
            | Self::Settle => false,
            _ => true,
        }
    }

    /// Returns the number of operations of all threads: entries for full scans and batches, keys for
    /// multi-gets, seeks for seeks. The writer of `readwhilewriting` does not count; a scan of a store
    /// with fewer entries than were loaded ends early.
    pub fn operations(self, options: &RunOptions) -> u64 {
        match self {
            Self::FillSeq | Self::FillRandom | Self::FillBatch { .. } | Self::YcsbLoad => {
                options.num
            }
            Self::FillSync => options.num.div_ceil(SYNCED_SHARE),
            Self::Overwrite | Self::DeleteRandom => options.num,
            Self::ReadSeq | Self::ReadReverse => {
                options.operations().min(options.num) * u64::from(options.threads)
            }
            Self::ReadRandom
            | Self::ReadMissing
            | Self::SeekRandom { .. }
            | Self::MultiReadRandom { .. }
            | Self::ReadWhileWriting
            | Self::Ycsb(_)
            | Self::Mix => options.operations(),
            Self::Settle => 1,
        }
    }

    /// Returns the default distribution of key choices; `None` if the workload does not choose
    /// keys.
    pub const fn distribution_default(self) -> Option<Distribution> {
        match self {
            Self::Overwrite
            | Self::DeleteRandom
            | Self::ReadRandom
            | Self::ReadMissing
            | Self::SeekRandom { .. }
            | Self::MultiReadRandom { .. }
            | Self::ReadWhileWriting
            | Self::Mix => Some(Distribution::Uniform),
            Self::Ycsb(YcsbMix::D) => Some(Distribution::Latest { theta: THETA_DEFAULT }),
            Self::Ycsb(_) => Some(Distribution::YcsbZipf { theta: THETA_DEFAULT }),
            _ => None,
        }
    }

    /// Returns the number of operations per latency sample. Full scans are timed every 256 entries,
    /// because reading the clock costs as much as an entry.
    pub const fn operations_per_sample(self) -> u32 {
        match self {
            Self::FillBatch { entries } => entries,
            Self::MultiReadRandom { keys } => keys,
            Self::ReadSeq | Self::ReadReverse => 256,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_need_data_name_one_that_needs_none() {
        for workload in Workload::ALL {
            if let Some(load) = workload.loaded_by() {
                assert_eq!(load.loaded_by(), None, "{workload}");
                assert!(load.writes());
                let options = RunOptions::default();
                assert_eq!(load.key_order_loaded(&options), Some(KeyOrder::Hashed));
                assert_eq!(workload.key_order_loaded(&options), None);
            }
        }
    }

    #[test]
    fn workloads_that_only_read_are_known() {
        let readers: Vec<String> = Workload::ALL
            .into_iter()
            .filter(|workload| !workload.writes())
            .map(|workload| workload.to_string())
            .collect();
        let expected = "readrandom readmissing readseq readreverse seekrandom:10 \
                        multireadrandom:32 ycsb-c settle";
        assert_eq!(readers.join(" "), expected);
    }

    #[test]
    fn operations_follow_the_options() {
        let options =
            RunOptions { num: 1000, reads: Some(30), threads: 2, ..RunOptions::default() };
        assert_eq!(Workload::FillRandom.operations(&options), 1000);
        assert_eq!(Workload::FillSync.operations(&options), 10);
        assert_eq!(Workload::ReadRandom.operations(&options), 30);
        assert_eq!(Workload::ReadSeq.operations(&options), 60);
        let options = RunOptions { reads: None, ..options };
        assert_eq!(Workload::Ycsb(YcsbMix::E).operations(&options), 1000);
    }
}
