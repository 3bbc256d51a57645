//! The order of random backups, compared with the model that created them.

use std::collections::BTreeSet;

use terrane_testkit::{Rng, seed_from_env};

use super::*;
use crate::manifest::{BackedUpFile, Origin};

fn backup(name: &str, history: &str, sequence: u64) -> Backup {
    Backup {
        schema: 1,
        name: name.into(),
        database: "d".into(),
        path: "/db".into(),
        time: String::new(),
        time_micros: 0,
        sequence,
        ordinal: 1,
        history: history.into(),
        origin: None,
        engine: String::new(),
        keyspaces: Vec::new(),
        bytes: 0,
        files: Vec::new(),
    }
}

fn after(backup: Backup, history: &str, sequence: u64) -> Backup {
    let origin = Origin { history: history.into(), sequence, backup: None };
    Backup { origin: Some(origin), ..backup }
}

fn names(backups: &[&Backup]) -> Vec<String> {
    backups.iter().map(|backup| backup.name.clone()).collect()
}

/// A database in the model: the numbers of its writes, which are distinct among all databases.
struct Copy {
    history: String,
    origin: Option<Origin>,
    writes: Vec<u64>,
}

/// Random backups, each with the writes that it has.
struct History(Vec<(Backup, Vec<u64>)>);

impl History {
    /// Writes, backs up and restores at random, with a clock that jumps.
    fn random(rng: &mut Rng) -> Self {
        let mut copies = vec![Copy { history: "d".into(), origin: None, writes: Vec::new() }];
        let mut backups: Vec<(Backup, Vec<u64>)> = Vec::new();
        let mut next = 0;
        for ordinal in 1..12 {
            let index = rng.below(copies.len() as u64) as usize;
            let copy = &mut copies[index];
            for _ in 0..rng.below(4) {
                next += 1;
                copy.writes.push(next);
            }
            let made = Backup {
                ordinal,
                time_micros: rng.below(1000),
                origin: copy.origin.clone(),
                ..backup(&format!("b{ordinal}"), &copy.history, copy.writes.len() as u64)
            };
            backups.push((made, copy.writes.clone()));
            if rng.percent(20) {
                let (from, writes) = backups[rng.below(backups.len() as u64) as usize].clone();
                let origin = Origin {
                    history: from.history,
                    sequence: from.sequence,
                    backup: Some(from.name),
                };
                let history = format!("h{ordinal}");
                copies.push(Copy { history, origin: Some(origin), writes });
            }
        }
        Self(backups)
    }

    fn backups(&self) -> Vec<&Backup> {
        self.0.iter().map(|(backup, _)| backup).collect()
    }

    fn writes(&self, name: &str) -> &[u64] {
        &self.0.iter().find(|(backup, _)| backup.name == name).unwrap().1
    }

    /// Returns the forks that are reported, after checking each.
    fn reported_forks(&self) -> usize {
        let mut count = 0;
        for notice in notices(&self.backups()) {
            if let Notice::Fork { later, earlier, common, .. } = notice {
                let (later, earlier) = (self.writes(&later), self.writes(&earlier));
                let same = later.iter().zip(earlier).take_while(|(one, other)| one == other);
                let same = same.count();
                assert_eq!(same as u64, common);
                assert!(later.len() > same && earlier.len() > same);
                count += 1;
            }
        }
        count
    }
}

/// A backup precedes another in a line if and only if the other has its writes, and a fork is reported if and
/// only if there is one.
#[test]
fn the_order_is_that_of_the_writes_whatever_the_clock_says() {
    let seed = seed_from_env(300);
    let mut forks = 0;
    for round in 0..300 {
        let history = History::random(&mut Rng::new(seed + round));
        let place = format!("seed {seed}+{round}");
        let all = history.backups();
        let lines = lines(&all);
        for pair in lines.iter().flat_map(|line| line.windows(2)) {
            let (earlier, later) = (history.writes(&pair[0].name), history.writes(&pair[1].name));
            assert!(later.starts_with(earlier), "{place}: {} {}", pair[0].name, pair[1].name);
        }
        let is_fork = |one: &Backup, other: &Backup| {
            let (one, other) = (history.writes(&one.name), history.writes(&other.name));
            !one.starts_with(other) && !other.starts_with(one)
        };
        let has_fork = all.iter().any(|one| all.iter().any(|other| is_fork(one, other)));
        assert!(has_fork || lines.len() == 1, "{place}");
        let reported = history.reported_forks();
        assert_eq!(reported > 0, has_fork, "{place}");
        forks += reported;
        // It is the last of the line of the last backup, which has no write that it lacks.
        let newest = newest(&all).unwrap();
        assert!(history.writes(&newest.name).starts_with(history.writes("b11")), "{place}");
        let reversed: Vec<Backup> = all.iter().rev().map(|backup| (*backup).clone()).collect();
        let sorted = sort(&reversed);
        let sorted: BTreeSet<String> = sorted.into_iter().map(|backup| backup.name).collect();
        assert_eq!(sorted, names(&all).into_iter().collect(), "{place}");
    }
    assert!(forks > 50, "seed {seed}: {forks}");
}

#[test]
fn a_history_that_lacks_nothing_continues_the_line_of_its_origin() {
    let first = backup("first", "d", 10);
    let second = after(backup("second", "h", 15), "d", 10);
    assert_eq!(lines(&[&second, &first]).len(), 1);
    assert!(notices(&[&first, &second]).is_empty());
    // The original is written as well.
    let other = Backup { ordinal: 3, ..backup("other", "d", 12) };
    let all = [&first, &second, &other];
    assert_eq!(lines(&all).len(), 2);
    let told = notices(&all)[0].to_string();
    assert!(told.contains("since sequence number 10: second does not have"), "{told}");
    // The same backup was restored twice.
    let twice = Backup { ordinal: 4, ..after(backup("twice", "i", 12), "d", 10) };
    assert_eq!(lines(&[&first, &second, &twice]).len(), 3);
    assert_eq!(notices(&[&first, &second, &twice]).len(), 1);
    assert_eq!(newest(&[&twice, &first, &second]).unwrap().name, "twice");
}

#[test]
fn histories_that_a_forged_manifest_puts_in_a_circle_end() {
    let one = after(backup("one", "a", 5), "b", 3);
    let two = after(backup("two", "b", 6), "a", 4);
    assert_eq!(lines(&[&one, &two]).concat().len(), 2);
    assert!(!notices(&[&one, &two]).is_empty());
}

/// Manifests of the first format have no ordinal, so the time is the only other witness.
#[test]
fn times_that_contradict_sequences_are_reported() {
    let old = |name: &str, sequence, time_micros| Backup {
        ordinal: 0,
        time_micros,
        ..backup(name, "d", sequence)
    };
    let (first, second) = (old("first", 1, 900), old("second", 2, 100));
    assert_eq!(names(&lines(&[&second, &first])[0]), ["first", "second"]);
    assert_eq!(newest(&[&second, &first]).unwrap().name, "second");
    let told = notices(&[&first, &second])[0].to_string();
    assert!(told.contains("was restored to an older state"), "{told}");
    let (first, second) = (Backup { ordinal: 1, ..first }, Backup { ordinal: 2, ..second });
    let told = notices(&[&first, &second])[0].to_string();
    assert!(told.contains("the clock was set back between first and second"), "{told}");
}

#[test]
fn tables_of_another_writer_show_another_history() {
    let file = |name: &str| BackedUpFile {
        name: name.into(),
        bytes: 1,
        sha256: String::new(),
        xxh3: None,
        is_final: true,
    };
    let files = vec![file("00000004-00000000000000aa.sst"), file("00000009-00000000000000bb.sst")];
    let before = Backup { files, ..backup("before", "d", 10) };
    let state = |sequence, tables: &[&str]| State {
        sequence,
        tables: tables.iter().map(|table| (*table).to_owned()).collect(),
    };
    assert!(!may_follow(&before, &state(9, &[])));
    assert!(may_follow(&before, &state(10, &[])));
    // A compaction of the same opening may have taken its number earlier.
    assert!(may_follow(&before, &state(11, &["00000008-00000000000000bb.sst"])));
    assert!(may_follow(&before, &state(11, &["00000010-00000000000000cc.sst"])));
    assert!(may_follow(&before, &state(11, &["00000004-00000000000000aa.sst"])));
    assert!(!may_follow(&before, &state(99, &["00000006-00000000000000cc.sst"])));
}
