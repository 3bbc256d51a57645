//! The names of workloads: parsing, printing and one-line descriptions.

use std::fmt;
use std::str::FromStr;

use super::{Workload, YcsbMix};
use crate::error::ParseError;

impl Workload {
    /// Returns the name without the number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FillSeq => "fillseq",
            Self::FillRandom => "fillrandom",
            Self::FillBatch { .. } => "fillbatch",
            Self::FillSync => "fillsync",
            Self::Overwrite => "overwrite",
            Self::DeleteRandom => "deleterandom",
            Self::ReadRandom => "readrandom",
            Self::ReadMissing => "readmissing",
            Self::ReadSeq => "readseq",
            Self::ReadReverse => "readreverse",
            Self::SeekRandom { .. } => "seekrandom",
            Self::MultiReadRandom { .. } => "multireadrandom",
            Self::ReadWhileWriting => "readwhilewriting",
            Self::YcsbLoad => "ycsb-load",
            Self::Ycsb(YcsbMix::A) => "ycsb-a",
            Self::Ycsb(YcsbMix::B) => "ycsb-b",
            Self::Ycsb(YcsbMix::C) => "ycsb-c",
            Self::Ycsb(YcsbMix::D) => "ycsb-d",
            Self::Ycsb(YcsbMix::E) => "ycsb-e",
            Self::Ycsb(YcsbMix::F) => "ycsb-f",
            Self::Mix => "mix",
            Self::Settle => "settle",
        }
    }

    /// Returns a one-line description.
    pub const fn description(self) -> &'static str {
        match self {
            Self::FillSeq => "writes every key once, in key order",
            Self::FillRandom => "writes every key once, in random order",
            Self::FillBatch { .. } => "writes every key once, in atomic batches of N",
            Self::FillSync => "writes a hundredth of the keys, each synced to storage",
            Self::Overwrite => "overwrites existing keys",
            Self::DeleteRandom => "deletes random keys",
            Self::ReadRandom => "reads existing keys",
            Self::ReadMissing => "reads missing keys",
            Self::ReadSeq => "reads all entries in key order",
            Self::ReadReverse => "reads all entries in reverse key order",
            Self::SeekRandom { .. } => "reads N entries starting at a random key",
            Self::MultiReadRandom { .. } => "reads existing keys, N per call",
            Self::ReadWhileWriting => "reads keys while another thread overwrites keys",
            Self::YcsbLoad => "loads the records of YCSB",
            Self::Ycsb(YcsbMix::A) => "YCSB A: 50 % reads, 50 % updates",
            Self::Ycsb(YcsbMix::B) => "YCSB B: 95 % reads, 5 % updates",
            Self::Ycsb(YcsbMix::C) => "YCSB C: reads only",
            Self::Ycsb(YcsbMix::D) => "YCSB D: 95 % reads of the newest, 5 % inserts",
            Self::Ycsb(YcsbMix::E) => "YCSB E: 95 % scans of 1 to 100 entries, 5 % inserts",
            Self::Ycsb(YcsbMix::F) => "YCSB F: 50 % reads, 50 % reads followed by an update",
            Self::Mix => "operations of several kinds in proportions",
            Self::Settle => "waits until the store has no background work to do",
        }
    }

    /// Returns the number in the text form, if the workload has one.
    const fn number(self) -> Option<u32> {
        match self {
            Self::FillBatch { entries } | Self::SeekRandom { entries } => Some(entries),
            Self::MultiReadRandom { keys } => Some(keys),
            _ => None,
        }
    }

    const fn with_number(self, number: u32) -> Option<Self> {
        match self {
            Self::FillBatch { .. } => Some(Self::FillBatch { entries: number }),
            Self::SeekRandom { .. } => Some(Self::SeekRandom { entries: number }),
            Self::MultiReadRandom { .. } => Some(Self::MultiReadRandom { keys: number }),
            _ => None,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.number() {
            Some(number) => write!(f, ":{number}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Workload {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |expected: String| ParseError::new("workload", text, expected);
        let (name, number) = match text.split_once(':') {
            None => (text, None),
            Some((name, number)) => (name, Some(number)),
        };
        let Some(workload) = Self::ALL.into_iter().find(|workload| workload.name() == name) else {
            return Err(bad(format!("one of {}", Self::ALL.map(Self::name).join(", "))));
        };
        let Some(number) = number else {
            return Ok(workload);
        };
        let number = number.parse().ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| bad(format!("a number above zero after '{name}:'")))?;
        workload.with_number(number).ok_or_else(|| bad(format!("'{name}', which has no number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_parse_and_print_back() {
        for workload in Workload::ALL {
            assert_eq!(workload.to_string().parse(), Ok(workload));
            assert_eq!(workload.name().parse(), Ok(workload));
            assert!(!workload.description().is_empty());
        }
        assert_eq!("seekrandom:100".parse(), Ok(Workload::SeekRandom { entries: 100 }));
        assert_eq!("fillbatch:7".parse(), Ok(Workload::FillBatch { entries: 7 }));
    }

    #[test]
    fn names_are_listed_once() {
        let mut names = Workload::ALL.map(Workload::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn unknown_workloads_are_rejected_with_a_list_of_names() {
        let error = "fillsequential".parse::<Workload>().unwrap_err();
        assert!(error.expected.contains("fillseq, fillrandom"), "{error}");
        for text in ["", "readrandom:5", "seekrandom:0", "seekrandom:", "fillbatch:x", "YCSB-A"] {
            assert!(text.parse::<Workload>().is_err(), "{text}");
        }
    }
}
