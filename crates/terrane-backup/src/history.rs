//! The order of backups, which follows the history of a database and not the clock.
//!
//! The sequence number of a database only grows, so it orders the backups of one history, whatever the
//! clock said when they were created. A database that was restored to an older state and then written has
//! another history than its original: both have the same writes up to the [`Origin`](crate::Origin), and
//! each lacks the later writes of the other.
//!
//! 1. A *line* is a history from one directory, because a copy of a database that this crate did not
//!    restore continues the history of its original in another directory. A history that left another one
//!    at its last backup, and lacks no write of any other, continues the line of that one.
//! 2. Within a line, a higher sequence number means more writes.
//! 3. Times decide only between lines of manifests that have no ordinal.

mod branches;
mod notice;

use std::collections::BTreeMap;

use self::branches::Branches;
use crate::manifest::Backup;

pub use self::notice::Notice;
pub(crate) use self::notice::notices;

/// What distinguishes lines: the database, the first history of the line, and the directory.
type Line<'a> = (&'a str, &'a str, &'a str);

/// The position of a backup among those of its line.
type Position<'a> = (u64, u64, u64, &'a str);

fn within_line(backup: &Backup) -> Position<'_> {
    (backup.sequence, backup.ordinal, backup.time_micros, &backup.name)
}

/// The position of a backup in the order of creation, as far as it is known.
fn by_creation(backup: &Backup) -> (u64, u64, &str) {
    (backup.ordinal, backup.time_micros, &backup.name)
}

/// Sorts backups: those of each database together, its lines in the order in which they began, and each line
/// by its history.
pub(crate) fn sort(backups: &[Backup]) -> Vec<Backup> {
    let mut lines = lines(&backups.iter().collect::<Vec<_>>());
    let mut databases: BTreeMap<&str, u64> = BTreeMap::new();
    for backup in backups {
        let first = databases.entry(&backup.database).or_insert(u64::MAX);
        *first = backup.time_micros.min(*first);
    }
    lines.sort_by_cached_key(|line| {
        let database = line.first().map_or("", |first| &first.database);
        let first = line.iter().copied().map(by_creation).min();
        (
            databases.get(database).copied(),
            database.to_owned(),
            first.map(|(o, t, n)| (o, t, n.to_owned())),
        )
    });
    lines.into_iter().flatten().cloned().collect()
}

/// Groups backups by their lines, each in its order.
pub(crate) fn lines<'a>(backups: &[&'a Backup]) -> Vec<Vec<&'a Backup>> {
    let branches = Branches::of(backups);
    let mut lines: BTreeMap<Line<'_>, Vec<&Backup>> = BTreeMap::new();
    for backup in backups {
        let line = (&*backup.database, branches.first_of_line(backup), &*backup.path);
        lines.entry(line).or_default().push(backup);
    }
    let mut lines: Vec<Vec<&Backup>> = lines.into_values().collect();
    for line in &mut lines {
        line.sort_by(|one, other| within_line(one).cmp(&within_line(other)));
    }
    lines
}

/// Returns the newest backup: the last of the line that was continued last.
pub(crate) fn newest<'a>(backups: &[&'a Backup]) -> Option<&'a Backup> {
    let continued = |line: &Vec<&'a Backup>| line.iter().copied().map(by_creation).max();
    let line =
        lines(backups).into_iter().max_by(|one, other| continued(one).cmp(&continued(other)));
    line.and_then(|line| line.last().copied())
}

/// The state of a database, by which its history is recognized.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) sequence: u64,
    /// The names of the tables.
    pub(crate) tables: Vec<String>,
}

/// Returns true if a database may be a later state of the one in a backup, and false if it certainly is
/// not.
///
/// Numbers of tables grow within a history, and each opening has a writer number of its own. A table that
/// the backup lacks, although its number is below one that another writer had already given to a table of
/// the backup, was therefore written by an opening that the backup's history does not have.
pub(crate) fn may_follow(backup: &Backup, later: &State) -> bool {
    if later.sequence < backup.sequence {
        return false;
    }
    let last = backup.files.iter().filter_map(|file| numbers(&file.name)).max();
    let Some((last_number, last_writer)) = last else { return true };
    let is_of_another_history = |name: &str| {
        numbers(name).is_some_and(|(number, writer)| number < last_number && writer != last_writer)
            && !backup.files.iter().any(|file| file.name == name)
    };
    !later.tables.iter().any(|name| is_of_another_history(name))
}

/// Returns the number and the writer in the name of a table.
fn numbers(name: &str) -> Option<(u64, &str)> {
    let (number, writer) = name.strip_suffix(".sst")?.split_once('-')?;
    Some((number.parse().ok()?, writer))
}

#[cfg(test)]
mod tests;
