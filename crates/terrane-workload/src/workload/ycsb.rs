//! YCSB's core workloads: B. F. Cooper et al., "Benchmarking cloud serving systems with YCSB",
//! SoCC 2010, and the property files of its repository.

/// A core workload, by its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum YcsbMix {
    /// Update heavy: half reads, half updates.
    A,
    /// Read mostly: 95 % reads, 5 % updates.
    B,
    /// Read only.
    C,
    /// Read latest: 95 % reads of the newest, 5 % inserts.
    D,
    /// Short ranges: 95 % scans of 1 to 100 entries, 5 % inserts.
    E,
    /// Read-modify-write: half reads, half reads followed by an update of the same record, which
    /// count as one operation.
    F,
}

/// How many of a hundred operations are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Reads of one record.
    pub read: u32,
    /// Writes of a record that is there.
    pub update: u32,
    /// Writes of a new record.
    pub insert: u32,
    /// Scans of 1 to 100 records, all lengths with equal chances.
    pub scan: u32,
    /// Reads of a record, then a write of it.
    pub read_modify_write: u32,
}

impl YcsbMix {
    /// What the workload consists of.
    pub const fn shares(self) -> Shares {
        let none = Shares { read: 0, update: 0, insert: 0, scan: 0, read_modify_write: 0 };
        match self {
            Self::A => Shares { read: 50, update: 50, ..none },
            Self::B => Shares { read: 95, update: 5, ..none },
            Self::C => Shares { read: 100, ..none },
            Self::D => Shares { read: 95, insert: 5, ..none },
            Self::E => Shares { scan: 95, insert: 5, ..none },
            Self::F => Shares { read: 50, read_modify_write: 50, ..none },
        }
    }

    /// The letter, in lower case.
    pub const fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
            Self::C => 'c',
            Self::D => 'd',
            Self::E => 'e',
            Self::F => 'f',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_a_hundred() {
        for mix in [YcsbMix::A, YcsbMix::B, YcsbMix::C, YcsbMix::D, YcsbMix::E, YcsbMix::F] {
            let Shares { read, update, insert, scan, read_modify_write } = mix.shares();
            assert_eq!(read + update + insert + scan + read_modify_write, 100, "{mix:?}");
        }
    }
}
