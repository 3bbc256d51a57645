//! The histories of databases as branches of a tree.

use std::collections::BTreeMap;

use crate::manifest::{Backup, Origin};

/// A history of a database.
type Key<'a> = (&'a str, &'a str);

/// What the backups of one history state about it.
struct Branch<'a> {
    origin: Option<&'a Origin>,
    /// The backup with the most writes.
    last: &'a Backup,
    /// The position of the history in the order of their first backups.
    begun: (u64, u64),
}

/// The histories of the databases in a list of backups.
pub(super) struct Branches<'a> {
    branches: BTreeMap<Key<'a>, Branch<'a>>,
}

/// Two histories, each of which lacks writes of the other.
pub(super) struct Fork<'a> {
    /// The last backup of the history that began later.
    pub(super) later: &'a Backup,
    /// The last backup of the other.
    pub(super) earlier: &'a Backup,
    /// The last write that both have.
    pub(super) common: u64,
}

impl<'a> Branches<'a> {
    pub(super) fn of(backups: &[&'a Backup]) -> Self {
        let mut branches: BTreeMap<Key<'a>, Branch<'a>> = BTreeMap::new();
        for backup in backups {
            let begun = (backup.ordinal, backup.time_micros);
            let key = (&*backup.database, &*backup.history);
            let branch = branches.entry(key).or_insert_with(|| Branch {
                origin: backup.origin.as_ref(),
                last: backup,
                begun,
            });
            branch.begun = branch.begun.min(begun);
            if super::within_line(backup) > super::within_line(branch.last) {
                branch.last = backup;
            }
        }
        Self { branches }
    }

    /// Returns, for each history that lacks writes of one that began before, the fork from the last of these.
    pub(super) fn forks(&self) -> Vec<Fork<'a>> {
        let mut forks = Vec::new();
        // A database that was never restored has one history, and needs no comparison.
        for (&key, own) in self.branches.iter().filter(|(_, own)| own.origin.is_some()) {
            let forked = self.others(key).filter_map(|(other_key, other)| {
                let is_before = (other.begun, other_key) < (own.begun, key);
                let common = self.common(key, other_key);
                let is_fork = own.last.sequence > common && other.last.sequence > common;
                (is_before && is_fork).then_some((other.begun, other.last, common))
            });
            if let Some((_, earlier, common)) = forked.max_by_key(|(begun, ..)| *begun) {
                forks.push(Fork { later: own.last, earlier, common });
            }
        }
        forks
    }

    /// Returns the other histories of a database.
    fn others(&self, key: Key<'a>) -> impl Iterator<Item = (Key<'a>, &Branch<'a>)> {
        let others = self.branches.iter().map(|(other, branch)| (*other, branch));
        others.filter(move |(other, _)| other.0 == key.0 && *other != key)
    }

    /// Returns true if a history, which left `parent` as `child` or as a descendant of it, has no fork with
    /// `parent` and with its other descendants.
    fn continues(&self, key: Key<'a>, child: &str, parent: &str) -> bool {
        let Some(own) = self.branches.get(&key) else { return false };
        !self.others(key).any(|(other_key, other)| {
            let path = self.path_to_root(other_key);
            let has = |history: &str| path.iter().any(|(passed, _)| *passed == history);
            let common = self.common(key, other_key);
            let is_fork = own.last.sequence > common && other.last.sequence > common;
            has(parent) && !has(child) && is_fork
        })
    }

    /// Returns the sequence number of the last write that two histories of a database have in common; 0 if it
    /// is unknown.
    fn common(&self, one: Key<'a>, other: Key<'a>) -> u64 {
        let others = self.path_to_root(other);
        let limits = self.path_to_root(one).into_iter();
        let common = limits.filter_map(|(history, limit)| {
            let (_, other) = others.iter().find(|(other, _)| *other == history)?;
            Some(limit.min(*other))
        });
        common.max().unwrap_or(0)
    }

    /// Returns a history and those that it left, with the last write of each that it has.
    fn path_to_root(&self, key: Key<'a>) -> Vec<(&'a str, u64)> {
        let (database, mut history) = key;
        let mut limit = u64::MAX;
        let mut path = vec![(history, limit)];
        while let Some(origin) =
            self.branches.get(&(database, history)).and_then(|found| found.origin)
        {
            // A forged manifest may state a circle.
            if path.iter().any(|(before, _)| *before == origin.history) {
                break;
            }
            limit = limit.min(origin.sequence);
            history = &origin.history;
            path.push((history, limit));
        }
        path
    }

    /// Returns the history with which the line of a backup begins.
    pub(super) fn first_of_line(&self, backup: &'a Backup) -> &'a str {
        let key = (&*backup.database, &*backup.history);
        let mut first = key.1;
        for (parent, _) in self.path_to_root(key).into_iter().skip(1) {
            if !self.continues(key, first, parent) {
                break;
            }
            first = parent;
        }
        first
    }
}
