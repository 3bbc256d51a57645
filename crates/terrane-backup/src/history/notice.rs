//! Facts about the backups of a database that its owner should know.

use std::fmt;

use super::branches::Branches;
use super::lines;
use crate::manifest::Backup;

/// A fact about the backups of a database that its owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Two histories of one database have backups, each of which lacks writes of the other.
    #[non_exhaustive]
    Fork {
        /// The number of the database.
        database: String,
        /// The last backup of the history that began later.
        later: String,
        /// The last backup of the other history.
        earlier: String,
        /// The sequence number of the last write that both have; 0 if it is unknown.
        common: u64,
    },
    /// The times of two backups contradict their order.
    #[non_exhaustive]
    Clock {
        /// The backup with fewer writes, and the later time.
        earlier: String,
        /// The backup with more writes.
        later: String,
        /// True if the order in which they were created is recorded. If it is not, the database may instead
        /// have been restored to an older state between the two.
        is_certain: bool,
    },
}

impl Notice {
    /// Returns the notice that two backups of a database have only the writes up to `common` in common.
    pub fn fork(later: &Backup, earlier: &Backup, common: u64) -> Self {
        Self::Fork {
            database: later.database.clone(),
            later: later.name.clone(),
            earlier: earlier.name.clone(),
            common,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fork { database, later, earlier, common } => {
                write!(f, "database {database} has two histories")?;
                match common {
                    0 => f.write_str(", whose last common write is unknown")?,
                    common => write!(f, " since sequence number {common}")?,
                }
                write!(f, ": {later} does not have the later writes of {earlier}")
            }
            Self::Clock { earlier, later, is_certain: true } => write!(
                f,
                "the clock was set back between {earlier} and {later}, or was ahead before; their sequence \
                 numbers order them"
            ),
            Self::Clock { earlier, later, is_certain: false } => write!(
                f,
                "{later} has more writes than {earlier}, but an earlier time: the clock was set back, or the \
                 database was restored to an older state between the two"
            ),
        }
    }
}

/// Returns the forks of histories, and the times that contradict the order.
pub(crate) fn notices(backups: &[&Backup]) -> Vec<Notice> {
    let branches = Branches::of(backups);
    let forks = branches.forks().into_iter();
    let forks = forks.map(|fork| Notice::fork(fork.later, fork.earlier, fork.common));
    let mut notices: Vec<Notice> = forks.collect();
    for line in lines(backups) {
        for pair in line.windows(2) {
            if let [earlier, later] = pair
                && later.time_micros < earlier.time_micros
            {
                notices.push(Notice::Clock {
                    earlier: earlier.name.clone(),
                    later: later.name.clone(),
                    is_certain: earlier.ordinal > 0 && later.ordinal > earlier.ordinal,
                });
            }
        }
    }
    notices
}
