//! FloDB's memtable as a value: a hash table in front of an ordered structure.

use std::fmt::{self, Display};

use crate::error::ParseError;

/// The settings of a FloDB memtable. Build one with `..FloDb::DEFAULT`.
///
/// | key in text | field | default | raising it |
/// |---|---|---|---|
/// | `membuffer` | `membuffer_percent` | 25% | more rewritten keys are updated in place; 0% for no Membuffer |
/// | `partition-bits` | `partition_bits` | 4 | short scans drain less; unevenly distributed keys use less of the Membuffer |
/// | `drain-threads` | `drain_threads` | 1 | more writes find a free slot, at the cost of processor time |
/// | `lower` | `lower` | `btree` | |
/// | `insert` | `insert` | `multi` | |
/// | `update` | `update` | `in-place` | |
/// | `scan` | `scan` | `versioned` | |
/// | `restarts-max` | `restarts_max` | 10 | for `scan=restart`: fewer scans block writers, but more of them scan in vain |
/// | `moment` | `moment` | `shared` | |
/// | `chain-max` | `chain_max` | 10000 | for `scan=restart`: more scans drain nothing, but see older states |
/// | `flush` | `flush` | `tables` | |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloDb {
    /// The share of the buffer that the Membuffer may hold, in percent; 0 to 90.
    pub membuffer_percent: u8,
    /// The Membuffer has two to the power of this many partitions; 0 to 12.
    pub partition_bits: u8,
    /// Threads that move entries from the Membuffer to the lower level; 0 to 16. If the trees of a
    /// database have different settings, the largest applies to the database.
    pub drain_threads: u8,
    /// The lower level, into which these threads move entries.
    pub lower: LowerLevel,
    /// How these threads insert entries into the lower level.
    pub insert: DrainInsert,
    /// How versions that no reader needs are treated.
    pub update: UpdateMode,
    /// How range scans see a consistent state.
    pub scan: ScanMode,
    /// For [`ScanMode::Restart`]: the number of restarts after which a scan blocks writers; 0 to
    /// 1000.
    pub restarts_max: u16,
    /// For [`ScanMode::Restart`]: which moments a scan may share with others.
    pub moment: ScanMoment,
    /// For [`ScanMode::Restart`]: the number of scans that may share the moment of one drain; 0 to
    /// 1,000,000.
    pub chain_max: u32,
    /// What happens to an immutable memtable.
    pub flush: FlushTarget,
}

/// The structure into which the Membuffer is drained, and which scans traverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LowerLevel {
    /// The B-link tree.
    BTree,
    /// A skip-list, as in the paper.
    SkipList,
}

/// How entries move from the Membuffer to the lower level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DrainInsert {
    /// Each entry is inserted with its own search.
    Single,
    /// Entries are sorted, and each search starts from the position of the previous one (FloDB
    /// paper, Algorithm 1).
    Multi,
}

/// How versions that no reader needs are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpdateMode {
    /// The next version of a key overwrites the old version in place.
    InPlace,
    /// Old versions stay until the memtable is flushed.
    Versions,
}

/// How range scans see a consistent state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanMode {
    /// The versions that scans need are kept, so scans never restart and never stop a writer.
    Versioned,
    /// As in FloDB (§4.4), for comparison: the scan drains the Membuffer, restarts if it meets an
    /// entry newer than itself, and blocks writers of the lower level after some restarts. This mode
    /// applies to ranges that have both a start and an end.
    Restart,
}

/// Which moments a scan may share with other scans; a scan reads the state as of its moment (FloDB
/// paper, §4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanMoment {
    /// A scan that begins while others run shares their moment, which may be older than the scan:
    /// such scans are serializable.
    Shared,
    /// A scan also reuses the moment of finished scans until the memtable is replaced.
    Reused,
    /// A scan waits for a moment after its start, which it may share with other waiting scans: all
    /// scans are linearizable.
    Fresh,
}

/// What happens to an immutable memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlushTarget {
    /// The memtable is flushed to tables.
    Tables,
    /// The memtable is discarded together with its data, to measure memory alone. Only for a
    /// database without tables.
    Discard,
}

const MEMBUFFER_PERCENT_MAX: u8 = 90;
const PARTITION_BITS_MAX: u8 = 12;
const DRAIN_THREADS_MAX: u8 = 16;
const RESTARTS_MAX_MAX: u16 = 1000;
const CHAIN_MAX_MAX: u32 = 1_000_000;

impl FloDb {
    /// The default settings.
    ///
    /// A quarter is the best share in the paper (§5.1).
    pub const DEFAULT: FloDb = FloDb {
        membuffer_percent: 25,
        partition_bits: 4,
        drain_threads: 1,
        lower: LowerLevel::BTree,
        insert: DrainInsert::Multi,
        update: UpdateMode::InPlace,
        scan: ScanMode::Versioned,
        // This value and the next two come from the authors' program.
        restarts_max: 10,
        moment: ScanMoment::Shared,
        chain_max: 10_000,
        flush: FlushTarget::Tables,
    };

    /// Parses the text between the parentheses.
    pub(crate) fn parse(arguments: &str) -> Result<Self, ParseError> {
        let mut flodb = Self::DEFAULT;
        for argument in arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty())
        {
            flodb.set(argument).ok_or_else(|| {
                let expected = "membuffer=0% to 90%, partition-bits=0 to 12, drain-threads=0 to \
                                16, lower=btree or skiplist, insert=multi or single, update=in-place or versions, \
                                scan=versioned or restart, restarts-max=0 to 1000, moment=shared, reused or fresh, \
                                chain-max=0 to 1000000, flush=tables or discard";
                ParseError::new("flodb", argument, expected)
            })?;
        }
        Ok(flodb)
    }

    /// Checks that the settings are within their ranges.
    pub(super) fn validate(&self) -> Result<(), ParseError> {
        let checks = [
            ("membuffer", self.membuffer_percent.into(), MEMBUFFER_PERCENT_MAX.into()),
            ("partition-bits", self.partition_bits.into(), PARTITION_BITS_MAX.into()),
            ("drain-threads", self.drain_threads.into(), DRAIN_THREADS_MAX.into()),
            ("restarts-max", self.restarts_max.into(), RESTARTS_MAX_MAX.into()),
            ("chain-max", self.chain_max, CHAIN_MAX_MAX),
        ];
        match checks.into_iter().find(|(_, value, max)| value > max) {
            None => Ok(()),
            Some((key, value, max)) => {
                Err(ParseError::new("flodb", format!("{key}={value}"), format!("0 to {max}")))
            }
        }
    }

    fn set(&mut self, argument: &str) -> Option<()> {
        let (key, value) = argument.split_once('=')?;
        let value = value.trim();
        let number = |text: &str, max: u8| text.parse().ok().filter(|number| *number <= max);
        match key.trim() {
            "membuffer" => {
                self.membuffer_percent =
                    number(value.strip_suffix('%')?.trim(), MEMBUFFER_PERCENT_MAX)?;
            }
            "partition-bits" => self.partition_bits = number(value, PARTITION_BITS_MAX)?,
            "drain-threads" => self.drain_threads = number(value, DRAIN_THREADS_MAX)?,
            "lower" => {
                self.lower = match value {
                    "btree" => LowerLevel::BTree,
                    "skiplist" => LowerLevel::SkipList,
                    _ => return None,
                }
            }
            "insert" => {
                self.insert = match value {
                    "multi" => DrainInsert::Multi,
                    "single" => DrainInsert::Single,
                    _ => return None,
                }
            }
            "update" => {
                self.update = match value {
                    "in-place" => UpdateMode::InPlace,
                    "versions" => UpdateMode::Versions,
                    _ => return None,
                }
            }
            "scan" => {
                self.scan = match value {
                    "versioned" => ScanMode::Versioned,
                    "restart" => ScanMode::Restart,
                    _ => return None,
                }
            }
            "restarts-max" => {
                self.restarts_max = value.parse().ok().filter(|max| *max <= RESTARTS_MAX_MAX)?;
            }
            "moment" => {
                self.moment = match value {
                    "shared" => ScanMoment::Shared,
                    "reused" => ScanMoment::Reused,
                    "fresh" => ScanMoment::Fresh,
                    _ => return None,
                }
            }
            "chain-max" => {
                self.chain_max = value.parse().ok().filter(|max| *max <= CHAIN_MAX_MAX)?;
            }
            "flush" => {
                self.flush = match value {
                    "tables" => FlushTarget::Tables,
                    "discard" => FlushTarget::Discard,
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }
}

impl Display for FloDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flodb")?;
        if *self == Self::DEFAULT {
            return Ok(());
        }
        write!(f, "(membuffer={}%", self.membuffer_percent)?;
        write!(f, ",partition-bits={}", self.partition_bits)?;
        write!(f, ",drain-threads={}", self.drain_threads)?;
        if self.lower == LowerLevel::SkipList {
            f.write_str(",lower=skiplist")?;
        }
        if self.insert == DrainInsert::Single {
            f.write_str(",insert=single")?;
        }
        if self.update == UpdateMode::Versions {
            f.write_str(",update=versions")?;
        }
        if self.scan == ScanMode::Restart {
            f.write_str(",scan=restart")?;
        }
        if self.restarts_max != Self::DEFAULT.restarts_max {
            write!(f, ",restarts-max={}", self.restarts_max)?;
        }
        match self.moment {
            ScanMoment::Shared => {}
            ScanMoment::Reused => f.write_str(",moment=reused")?,
            ScanMoment::Fresh => f.write_str(",moment=fresh")?,
        }
        if self.chain_max != Self::DEFAULT.chain_max {
            write!(f, ",chain-max={}", self.chain_max)?;
        }
        if self.flush == FlushTarget::Discard {
            f.write_str(",flush=discard")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{Design, MemtableKind};

    fn parse(text: &str) -> Result<MemtableKind, ParseError> {
        text.parse()
    }

    #[test]
    fn every_setting_is_printed_and_read_back() {
        let texts = [
            "flodb",
            "flodb(membuffer=50%,partition-bits=6,drain-threads=2)",
            "flodb(membuffer=0%,partition-bits=0,drain-threads=0,insert=single)",
            "flodb(membuffer=25%,partition-bits=4,drain-threads=1,lower=skiplist,insert=single,update=versions,scan=restart,flush=discard)",
            "flodb(membuffer=25%,partition-bits=4,drain-threads=1,scan=restart,restarts-max=0,moment=fresh,chain-max=0)",
            "flodb(membuffer=25%,partition-bits=4,drain-threads=1,scan=restart,moment=reused,chain-max=7)",
        ];
        for text in texts {
            assert_eq!(parse(text).unwrap().to_string(), text);
            let design: Design = format!("leveling; memtable={text}").parse().unwrap();
            assert_eq!(design.to_string().parse::<Design>().unwrap(), design);
        }
        assert_eq!(parse("flodb()"), parse("flodb"));
        assert_eq!(parse("flodb( drain-threads = 1 )"), parse("flodb"));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "flodb(",
            "flodb(membuffer=25)",
            "flodb(membuffer=91%)",
            "flodb(membuffer=9%,membuffer=8%)",
            "flodb(membuffer=-1%)",
            "flodb(partition-bits=13)",
            "flodb(drain-threads=17)",
            "flodb(insert=triple)",
            "flodb(lower=vector)",
            "flodb(update=never)",
            "flodb(flush=no)",
            "flodb(scan=)",
            "flodb(scan=restart,restarts-max=1001)",
            "flodb(scan=restart,moment=old)",
            "flodb(scan=restart,chain-max=1000001)",
            "flodb(branching=4)",
            "flodb(membuffer)",
            "flodb x",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
