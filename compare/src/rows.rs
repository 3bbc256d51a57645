//! The rows of the comparison: each is a workload with the sizes that it uses.
//!
//! Keys have 16 bytes and values 100 bytes unless a row says otherwise. Rows with large values have
//! fewer keys, so that every row writes or reads hundreds of megabytes. Rows with long operations
//! have fewer operations, so that every row takes seconds.

use terrane_workload::{ParseError, RunOptions, ValueSize, Workload};

/// A row of the result table: a named sequence of workloads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// The name of the row.
    pub(crate) name: &'static str,
    /// The workload, in its text form.
    workload: &'static str,
    /// The sizes of keys and of values, in bytes.
    key_bytes: usize,
    value_bytes: usize,
    /// The divisor of the run's number of keys.
    num_divisor: u64,
    /// For reads, the number of operations is the row's number of keys divided by this.
    reads_divisor: u64,
    /// The state of the page cache and the engine's own cache at the start.
    pub(crate) cache: CacheState,
}

/// The state of the caches when a reading workload begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheState {
    /// The caches hold what loading left there.
    AsLoaded,
    /// The engine's own cache is as full as possible: everything was read once.
    Warm,
    /// The caches are empty: the files were dropped from the page cache, and the database was
    /// opened again.
    Cold,
}

const DEFAULT: Row = Row {
    name: "",
    workload: "",
    key_bytes: 16,
    value_bytes: 100,
    num_divisor: 1,
    reads_divisor: 1,
    cache: CacheState::AsLoaded,
};

const fn row(name: &'static str, workload: &'static str) -> Row {
    Row { name, workload, ..DEFAULT }
}

const fn large(
    name: &'static str,
    workload: &'static str,
    value_bytes: usize,
    divisor: u64,
) -> Row {
    Row { value_bytes, num_divisor: divisor, ..row(name, workload) }
}

const fn small(name: &'static str, workload: &'static str) -> Row {
    Row { key_bytes: 4, value_bytes: 4, ..row(name, workload) }
}

const fn fewer(name: &'static str, workload: &'static str, reads_divisor: u64) -> Row {
    Row { reads_divisor, ..row(name, workload) }
}

const fn warm(row: Row) -> Row {
    Row { cache: CacheState::Warm, ..row }
}

/// Returns a row with YCSB's records, which have ten fields of a hundred bytes each.
const fn ycsb(name: &'static str) -> Row {
    large(name, name, 1000, 4)
}

/// All rows, in the order of the tables.
pub(crate) const ALL: [Row; 31] = [
    row("fillseq", "fillseq"),
    row("fillrandom", "fillrandom"),
    row("overwrite", "overwrite"),
    row("deleterandom", "deleterandom"),
    row("fillbatch", "fillbatch:100"),
    row("fillsync", "fillsync"),
    large("fill4k", "fillrandom", 4096, 10),
    large("fill16k", "fillrandom", 16384, 40),
    large("fill256k", "fillrandom", 256 << 10, 640),
    large("fill1m", "fillrandom", 1 << 20, 2560),
    small("fillsmall", "fillrandom"),
    warm(row("readrandom", "readrandom")),
    warm(row("readmissing", "readmissing")),
    warm(row("readseq", "readseq")),
    warm(row("readreverse", "readreverse")),
    warm(fewer("seek10", "seekrandom:10", 4)),
    warm(fewer("seek100", "seekrandom:100", 20)),
    warm(row("multiget32", "multireadrandom:32")),
    Row { cache: CacheState::Cold, ..fewer("readcold", "readrandom", 4) },
    warm(fewer("readwhilewriting", "readwhilewriting", 2)),
    warm(large("read4k", "readrandom", 4096, 10)),
    warm(large("read16k", "readrandom", 16384, 40)),
    warm(large("read1m", "readrandom", 1 << 20, 2560)),
    warm(small("readsmall", "readrandom")),
    ycsb("ycsb-load"),
    warm(ycsb("ycsb-a")),
    warm(ycsb("ycsb-b")),
    warm(ycsb("ycsb-c")),
    warm(ycsb("ycsb-d")),
    warm(Row { reads_divisor: 5, ..ycsb("ycsb-e") }),
    warm(ycsb("ycsb-f")),
];

/// Returns the row called `name`.
pub(crate) fn by_name(name: &str) -> Option<&'static Row> {
    ALL.iter().find(|row| row.name == name)
}

impl Row {
    /// Returns the workload of the row.
    pub(crate) fn workload(&self) -> Result<Workload, ParseError> {
        self.workload.parse()
    }

    /// Returns the options of the row, for a run with `num` keys and `reads` operations; `None`
    /// means the default number of operations.
    pub(crate) fn options(
        &self,
        num: u64,
        reads: Option<u64>,
        threads: u32,
        seed: u64,
    ) -> RunOptions {
        let num = num.div_ceil(self.num_divisor);
        RunOptions {
            num,
            reads: Some(reads.unwrap_or(num).div_ceil(self.reads_divisor)),
            key_size_bytes: self.key_bytes,
            value_size: ValueSize::fixed(self.value_bytes),
            threads,
            seed,
            ..RunOptions::default()
        }
    }

    /// Returns the number of keys of a run in which this row has `bytes` of keys and values.
    pub(crate) fn num_with(&self, bytes: u64) -> u64 {
        let entry_bytes = (self.key_bytes + self.value_bytes) as u64;
        bytes.div_ceil(entry_bytes) * self.num_divisor
    }

    /// Describes the row for help: its workload and sizes.
    pub(crate) fn description(&self) -> String {
        let what = self.workload().map_or("", Workload::description);
        let (key, value) = (self.key_bytes, self.value_bytes);
        let cold = match self.cache {
            CacheState::AsLoaded | CacheState::Warm => "",
            CacheState::Cold => ", from cold caches",
        };
        format!("{}: {what}{cold}; keys of {key} B, values of {value} B", self.workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_workloads_that_exist() {
        for (at, row) in ALL.iter().enumerate() {
            let workload = row.workload().unwrap();
            let options = row.options(2_000_000, None, 1, 1);
            assert_eq!(workload.check(&options), Ok(()), "{}", row.name);
            assert!(ALL[..at].iter().all(|other| other.name != row.name), "{} twice", row.name);
            assert_eq!(by_name(row.name).map(|row| row.name), Some(row.name));
        }
    }

    #[test]
    fn every_row_moves_some_hundred_megabytes() {
        for row in
            ALL.iter().filter(|row| !["fillsync", "fillsmall", "readsmall"].contains(&row.name))
        {
            let options = row.options(2_000_000, None, 1, 1);
            let entry_bytes = options.key_size_bytes + options.value_size.max_bytes();
            let data_bytes = options.num * entry_bytes as u64;
            assert!((200 << 20..900 << 20).contains(&data_bytes), "{}: {data_bytes}", row.name);
        }
    }

    #[test]
    fn numbers_are_divided_and_never_become_zero() {
        let seek100 = by_name("seek100").unwrap();
        assert_eq!(seek100.options(2_000_000, None, 1, 1).reads, Some(100_000));
        assert_eq!(seek100.options(2_000_000, Some(40), 1, 1).reads, Some(2));
        let fill16k = by_name("fill16k").unwrap();
        assert_eq!(fill16k.options(7, None, 1, 1).num, 1);
    }
}
