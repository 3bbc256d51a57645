//! YCSB's core workloads: B. F. Cooper et al., "Benchmarking cloud serving systems with YCSB",
//! SoCC 2010, and the property files of its repository.

/// A core workload, named by its letter.
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

/// The share of each kind of operation, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Reads of one record.
    pub read: u32,
    /// Updates of an existing record.
    pub update: u32,
    /// Inserts of a new record.
    pub insert: u32,
    /// Scans of 1 to 100 records, with uniform lengths.
    pub scan: u32,
    /// Reads of a record, each followed by an update of it.
    pub read_modify_write: u32,
}

impl YcsbMix {
    /// Returns the shares of operations.
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

    /// Returns the lower-case letter.
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
