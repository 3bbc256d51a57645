//! The rules that keep backups.

use std::collections::{HashMap, HashSet};

use crate::history::lines;
use crate::manifest::Backup;

/// Returns the number of the period to which a time belongs.
type Period = fn(u64) -> u64;

/// The rules that keep backups, for each history of a database and each of its directories. A backup is kept
/// if any rule keeps it.
///
/// The rules on time keep the newest backup of each of the last hours, days or weeks that have one. Days
/// begin at midnight in UTC, weeks on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Retention {
    /// The newest backups.
    pub last: u32,
    /// Hours.
    pub hourly: u32,
    /// Days.
    pub daily: u32,
    /// Weeks.
    pub weekly: u32,
}

impl Retention {
    /// Returns the rule that keeps the last backups.
    pub fn last(count: u32) -> Self {
        Self { last: count, ..Self::default() }
    }

    /// Keeps the newest backup of each of the last hours as well.
    #[must_use]
    pub fn hourly(self, hourly: u32) -> Self {
        Self { hourly, ..self }
    }

    /// Keeps the newest backup of each of the last days as well.
    #[must_use]
    pub fn daily(self, daily: u32) -> Self {
        Self { daily, ..self }
    }

    /// Keeps the newest backup of each of the last weeks as well.
    #[must_use]
    pub fn weekly(self, weekly: u32) -> Self {
        Self { weekly, ..self }
    }

    /// Returns true if no rule keeps anything.
    pub fn keeps_nothing(self) -> bool {
        self == Self::default()
    }

    /// Returns the rules that keep each backup, in the order of the backups; none for a backup that is not
    /// kept.
    ///
    /// The newest backups are those with the most writes of their history, whatever their times are. A clock
    /// that was wrong keeps more backups, but never fewer than the rules state.
    pub(crate) fn reasons(self, backups: &[&Backup]) -> Vec<Vec<&'static str>> {
        let mut reasons = vec![Vec::new(); backups.len()];
        let indexes: HashMap<&str, usize> =
            backups.iter().enumerate().map(|(index, backup)| (&*backup.name, index)).collect();
        for line in lines(backups) {
            let mut keep = |backup: &Backup, reason| {
                if let Some(&index) = indexes.get(&*backup.name) {
                    reasons[index].push(reason);
                }
            };
            for backup in line.iter().rev().take(self.last as usize) {
                keep(backup, "last");
            }
            for (count, name, period) in self.rules() {
                for backup in newest_of_periods(&line, count, period) {
                    keep(backup, name);
                }
            }
            if let Some(backup) = doubtful(&line) {
                keep(backup, "order unknown");
            }
        }
        reasons
    }

    fn rules(self) -> [(u32, &'static str, Period); 3] {
        const HOUR: u64 = 3_600_000_000;
        fn day(micros: u64) -> u64 {
            micros / (24 * HOUR)
        }
        // 1970 began on a Thursday.
        [
            (self.hourly, "hourly", |micros| micros / HOUR),
            (self.daily, "daily", day),
            (self.weekly, "weekly", |micros| (day(micros) + 3) / 7),
        ]
    }
}

/// Returns the newest backups of the last periods that have one.
///
/// A backup whose period is later than that of a newer backup was made when the clock was ahead, or before it
/// was set back. It is kept as well, but does not count, because it would displace the backup of a period
/// that the rule promises.
fn newest_of_periods<'a>(line: &[&'a Backup], count: u32, period: Period) -> Vec<&'a Backup> {
    let (mut kept, mut counted) = (Vec::new(), 0);
    let mut seen = HashSet::new();
    let mut earliest = u64::MAX;
    for backup in line.iter().rev() {
        if counted == count {
            break;
        }
        let this = period(backup.time_micros);
        if seen.insert(this) {
            kept.push(*backup);
        }
        if this < earliest {
            earliest = this;
            counted += 1;
        }
    }
    kept
}

/// Returns the backup with the last time of a line whose manifests have no ordinals, if another backup has
/// more writes: either may be the newest state of the database.
fn doubtful<'a>(line: &[&'a Backup]) -> Option<&'a Backup> {
    let newest = line.last().filter(|newest| newest.ordinal == 0)?;
    let latest = line.iter().max_by_key(|backup| (backup.time_micros, &backup.name))?;
    (latest.name != newest.name).then_some(*latest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::parse_utc;

    fn backup(time: &str, database: &str) -> Backup {
        Backup {
            schema: 1,
            name: time.into(),
            database: database.into(),
            path: String::new(),
            time: time.into(),
            time_micros: parse_utc(time).unwrap(),
            sequence: parse_utc(time).unwrap(),
            ordinal: 1,
            history: "a".into(),
            origin: None,
            engine: String::new(),
            keyspaces: Vec::new(),
            bytes: 0,
            files: Vec::new(),
        }
    }

    fn kept(retention: Retention, times: &[&str]) -> Vec<String> {
        let backups: Vec<Backup> = times.iter().map(|time| backup(time, "a")).collect();
        let reasons = retention.reasons(&backups.iter().collect::<Vec<_>>());
        let kept = backups.iter().zip(reasons).filter(|(_, reasons)| !reasons.is_empty());
        kept.map(|(backup, reasons)| format!("{} {}", backup.name, reasons.join(" "))).collect()
    }

    const TIMES: &[&str] = &[
        "2026-11-08T23:59:59Z",
        "2026-11-09T00:00:00Z",
        "2026-11-15T12:00:00Z",
        "2026-11-16T12:00:00Z",
        "2026-11-17T10:00:00Z",
        "2026-11-17T10:30:00Z",
        "2026-11-17T11:00:00Z",
        "2026-11-17T11:59:00Z",
    ];

    #[test]
    fn each_rule_keeps_the_newest_of_its_periods() {
        assert_eq!(
            kept(Retention::last(2), TIMES),
            ["2026-11-17T11:00:00Z last", "2026-11-17T11:59:00Z last"]
        );
        assert_eq!(
            kept(Retention::default().hourly(3), TIMES),
            [
                "2026-11-16T12:00:00Z hourly",
                "2026-11-17T10:30:00Z hourly",
                "2026-11-17T11:59:00Z hourly"
            ]
        );
        assert_eq!(
            kept(Retention::default().daily(2), TIMES),
            ["2026-11-16T12:00:00Z daily", "2026-11-17T11:59:00Z daily"]
        );
        // The 16th of November 2026 is a Monday.
        assert_eq!(
            kept(Retention::default().weekly(3), TIMES),
            [
                "2026-11-08T23:59:59Z weekly",
                "2026-11-15T12:00:00Z weekly",
                "2026-11-17T11:59:00Z weekly"
            ]
        );
        assert_eq!(kept(Retention::last(1).daily(1).weekly(1), TIMES).len(), 1);
        assert_eq!(kept(Retention::last(100).daily(100), TIMES).len(), TIMES.len());
        assert!(
            Retention::default().keeps_nothing() && kept(Retention::default(), TIMES).is_empty()
        );
    }

    #[test]
    fn databases_do_not_count_for_each_other() {
        let backups = [
            backup(TIMES[0], "a"),
            backup(TIMES[1], "b"),
            backup(TIMES[2], "b"),
            backup(TIMES[3], "b"),
        ];
        let reasons = Retention::last(1).reasons(&backups.iter().collect::<Vec<_>>());
        let kept: Vec<bool> = reasons.iter().map(|reasons| !reasons.is_empty()).collect();
        assert_eq!(kept, [true, false, false, true]);
    }

    /// Backups of a restored copy displaced those of the original.
    #[test]
    fn a_restored_copy_and_its_original_do_not_count_for_each_other() {
        let copy = Backup { path: "/restored".into(), ..backup(TIMES[1], "a") };
        let reasons = Retention::last(1).reasons(&[&backup(TIMES[0], "a"), &copy]);
        assert_eq!(reasons, [["last"], ["last"]]);
    }
}
