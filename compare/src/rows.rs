//! The rows of the comparison: a workload, and the sizes that it is run with.
//!
//! Keys of 16 bytes and values of 100 unless a row says otherwise. Rows with large values have
//! fewer keys, so that every row writes or reads hundreds of megabytes; rows whose operations are
//! long have fewer of them, so that every row takes seconds.

use terrane_workload::{ParseError, RunOptions, ValueSize, Workload};

/// A row of the result table: a named sequence of workloads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// What the row is called.
    pub(crate) name: &'static str,
    /// The workload, in its text form.
    workload: &'static str,
    /// Bytes of keys and of values.
    key_bytes: usize,
    value_bytes: usize,
    /// The run's number of keys is divided by this.
    num_divisor: u64,
    /// The row's number of operations is its number of keys divided by this, for reads.
    reads_divisor: u64,
    /// Whether the data is in the page cache and the engine's own cache to begin with.
    pub(crate) cache: CacheState,
}

/// The state of the caches when a reading workload begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheState {
    /// What loading left there.
    AsLoaded,
    /// All that the engine's own cache can hold: everything was read once.
    Warm,
    /// Nothing: the files were dropped from the page cache and the database opened again.
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

/// YCSB's records: ten fields of a hundred bytes.
const fn ycsb(name: &'static str) -> Row {
    large(name, name, 1000, 4)
}

/// Every row, in the order of the tables.
pub(crate) const ALL: [Row; 28] = [
    row("fillseq", "fillseq"),
    row("fillrandom", "fillrandom"),
    row("overwrite", "overwrite"),
    row("deleterandom", "deleterandom"),
    row("fillbatch", "fillbatch:100"),
    row("fillsync", "fillsync"),
    large("fill4k", "fillrandom", 4096, 10),
    large("fill16k", "fillrandom", 16384, 40),
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
    warm(small("readsmall", "readrandom")),
    ycsb("ycsb-load"),
    warm(ycsb("ycsb-a")),
    warm(ycsb("ycsb-b")),
    warm(ycsb("ycsb-c")),
    warm(ycsb("ycsb-d")),
    warm(Row { reads_divisor: 5, ..ycsb("ycsb-e") }),
    warm(ycsb("ycsb-f")),
];

/// The row called `name`.
pub(crate) fn by_name(name: &str) -> Option<&'static Row> {
    ALL.iter().find(|row| row.name == name)
}

impl Row {
    /// The workload of the row.
    pub(crate) fn workload(&self) -> Result<Workload, ParseError> {
        self.workload.parse()
    }

    /// The options of the row, where a whole run has `num` keys, and `reads` operations unless
    /// that is `None`.
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

    /// What the row is, for help: the workload and its sizes.
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
