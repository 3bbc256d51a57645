//! A crash at each operation of a leader: the batches that a follower of durable writes has seen are a
//! prefix of those that the leader still has, and the follower continues without a gap.

use std::sync::Arc;

use terrane::storage::{Crash, MemoryStorage, Survival};
use terrane::{Background, Durability};
use terrane_testkit::{Rng, print_counts, seed_from_env};

use crate::all;
use crate::model::{config, options, random_write};

const DIR: &str = "db";

/// Returns the number of images, and the number of those in which the leader has lost writes.
fn crash_everywhere(seed: u64) -> (u64, u64) {
    let mut rng = Rng::new(seed);
    let mut config = config(&mut rng);
    config.background = Background::Inline;
    config.durability = *rng.pick(&[Durability::Process, Durability::Process, Durability::Sync]);
    (config.memory_budget, config.log_segment_bytes) = (1 << 20, 64 << 10);
    let story = format!("seed {seed}, {}, {}", config.durability, config.design);
    let storage = MemoryStorage::new(seed);
    let db = options(&config, &storage).design(config.design.clone()).open(DIR).unwrap();
    db.keyspace("other", terrane::KeyspaceOptions::new()).unwrap();
    let (mut written, mut next) = (Vec::new(), 1);
    // How many batches a follower has seen, by mark.
    let mut followed = vec![0];
    storage.track_crash_points();
    storage.mark(0);
    let mut changes = db.changes(0).unwrap();
    for number in 0..45 {
        let (batch, texts) = random_write(&mut rng, &db, number);
        db.write(&batch).unwrap();
        written.push((next, next + texts.len() as u64 - 1, texts.join(", ")));
        next += texts.len() as u64;
        let mut seen = followed[number];
        match rng.below(8) {
            0 => db.flush().unwrap(),
            1 => seen += all(&mut changes).len(),
            _ => {}
        }
        followed.push(seen);
        storage.mark(number as u64 + 1);
    }
    drop(changes);
    let (mut images, mut lossy) = (0, 0);
    for (number, point) in storage.take_crash_points().iter().enumerate() {
        let seen = followed[point.mark() as usize];
        // None of the unsynced sectors survive, or some of them.
        let percent = if rng.percent(30) { 0 } else { rng.between(5, 95) };
        let power = Survival { percent, seed: rng.bits() };
        for crash in [Crash::Process, Crash::Power(power)] {
            let what = format!("{crash:?} {number} before '{}', {story}", point.operation());
            let image = point.image(crash);
            let opened = options(&config, &image).open(DIR);
            let db = opened.unwrap_or_else(|error| panic!("{error}\n{what}"));
            let found = all(&mut db.changes(0).unwrap());
            assert!(found.len() >= seen, "{} of {seen}, {what}", found.len());
            assert_eq!(found, written[..found.len()], "{what}");
            db.put("later", number.to_string()).unwrap();
            let position = seen.checked_sub(1).map_or(0, |last| written[last].1);
            let rest = all(&mut db.changes(position).unwrap());
            assert_eq!(rest[..rest.len() - 1], written[seen..found.len()], "{what}");
            let (first, _, text) = rest.last().unwrap();
            let before = found.last().map_or(0, |(_, last, _)| *last);
            assert_eq!(
                (*first, &text[..]),
                (before + 1, &format!("default: later = {number}")[..])
            );
            images += 1;
            lossy += u64::from(found.len() < point.mark() as usize);
        }
    }
    (images, lossy)
}

#[test]
fn a_follower_is_never_ahead_of_its_leader_after_a_crash() {
    let seed = seed_from_env(5200);
    let rounds = std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok());
    let (mut images, mut lossy) = (0, 0);
    for seed in seed..seed + rounds.unwrap_or(2) {
        let counts = crash_everywhere(seed);
        images += counts.0;
        lossy += counts.1;
    }
    print_counts(&[("images", images), ("lossy", lossy)]);
    assert!(lossy > 0, "no leader has lost a write");
}

/// A crash of the process alone: the kernel has the writes, so a follower may continue.
#[test]
fn following_unsynced_writes_survives_the_death_of_the_process() {
    let storage = MemoryStorage::new(7);
    let config = config(&mut Rng::new(7));
    let db = options(&config, &storage).open(DIR).unwrap();
    for number in 0..50 {
        db.put(number.to_string(), "1").unwrap();
    }
    let mut changes = db.changes(0).unwrap().include_unsynced();
    assert_eq!(all(&mut changes).len(), 50);
    let image = storage.crash_point().image(Crash::Process);
    let reopened = options(&config, &image).open(DIR).unwrap();
    reopened.put("later", "1").unwrap();
    let rest = all(&mut reopened.changes(50).unwrap());
    assert_eq!(rest, [(51, 51, "default: later = 1".to_owned())]);
    drop(Arc::new(db));
}
