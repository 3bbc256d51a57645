//! Tests that busy keyspaces do not starve each other of merges and flushes.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{Background, Event, Keyspace, KeyspaceOptions, Options};
use terrane_policy::Scheduler;
use terrane_testkit::{Rng, StopOnDrop, run_guarded, seed_from_env};

use crate::support::{DIR, in_memory};

const NAMES: [&str; 3] = ["a", "b", "c"];
const SCHEDULERS: [&str; 5] = ["single", "fair", "greedy", "greedy(2)", "gear"];

fn design(scheduler: &str) -> String {
    format!(
        "tiering T=3; buffer=2KiB; table=2KiB; scheduler={scheduler}; delay=6; stop=9; buffers=4"
    )
}

/// The events of all jobs: the keyspace, whether it was a merge, and whether it began.
type JobList = Arc<Mutex<Vec<(String, bool, bool)>>>;

/// Opens three keyspaces, and lists the events of their jobs.
fn open(options: Options, scheduler: &str) -> (terrane::Db, Vec<Keyspace>, JobList) {
    let jobs = JobList::default();
    let list = Arc::clone(&jobs);
    let options = options.on_event(move |event| {
        let job = match &event.event {
            Event::JobBegun { keyspace, .. } => (keyspace.clone(), true, true),
            Event::JobEnded { keyspace, .. } => (keyspace.clone(), true, false),
            Event::FlushBegun { keyspace, .. } => (keyspace.clone(), false, true),
            Event::FlushEnded { keyspace, .. } => (keyspace.clone(), false, false),
            _ => return,
        };
        list.lock().unwrap().push(job);
    });
    let db = options.open(DIR).unwrap();
    let design = KeyspaceOptions::new().design(design(scheduler).parse().unwrap());
    let spaces = NAMES.map(|name| db.keyspace(name, design.clone()).unwrap());
    (db, spaces.into(), jobs)
}

fn put(space: &Keyspace, rng: &mut Rng) {
    space.put(rng.below(5000).to_be_bytes(), [7; 100]).unwrap();
}

/// The test runs the engine's jobs one by one. The first keyspace is written until it always needs
/// several merges; the others need one now and then. No keyspace waits for more merges or flushes of
/// the others than the bound allows.
#[test]
fn no_keyspace_waits_for_more_jobs_of_others_than_the_bound() {
    for scheduler in SCHEDULERS {
        let (db, spaces, jobs) = open(in_memory().0, scheduler);
        let bound = scheduler.parse::<Scheduler>().unwrap().merges_waited_max(3) as usize;
        let mut rng = Rng::new(seed_from_env(3));
        // For each keyspace, how many jobs of others ended since it began to need a flush or a merge.
        let mut waited = [[0usize; 2]; 3];
        let mut done = [[0usize; 2]; 3];
        for _ in 0..500 {
            for (space, puts) in spaces.iter().zip([60, 12, 3]) {
                // A stopped writer would do background work itself, so skip this keyspace then.
                let stalls = |space: &Keyspace| {
                    let shape = space.tree().shape;
                    shape.level(0).runs.len() > 5 || space.tree().immutable_memtables > 2
                };
                (0..puts).take_while(|_| !stalls(space)).for_each(|_| put(space, &mut rng));
            }
            let needs = |space: &Keyspace| {
                let due = space.tree().shape.level(0).runs.len() >= 3;
                [space.tree().immutable_memtables > 0, due]
            };
            let before: Vec<[bool; 2]> = spaces.iter().map(needs).collect();
            jobs.lock().unwrap().clear();
            if !db.run_background_job().unwrap() {
                continue;
            }
            for (keyspace, is_merge, begins) in jobs.lock().unwrap().iter() {
                let kind = usize::from(*is_merge);
                for (at, name) in NAMES.iter().enumerate() {
                    if name == keyspace {
                        waited[at][kind] = 0;
                        done[at][kind] += usize::from(*begins);
                    } else if !begins && before[at][kind] {
                        waited[at][kind] += 1;
                        let count = waited[at][kind];
                        assert!(count <= bound.max(3), "{scheduler}: {name} waited for {count}");
                    }
                }
            }
            for (at, needed) in spaces.iter().map(needs).enumerate() {
                (0..2).filter(|kind| !needed[*kind]).for_each(|kind| waited[at][kind] = 0);
            }
        }
        assert!(done.iter().flatten().all(|count| *count > 10), "{scheduler}: {done:?}");
    }
}

/// Two keyspaces are written as fast as possible until the third, whose writers stop as soon as its
/// merges fall behind, has made all its writes. It used to be stopped while the others were busy.
#[test]
fn writers_of_a_keyspace_proceed_while_others_are_busy() {
    for scheduler in SCHEDULERS {
        run_guarded(move || {
            let options = in_memory().0.background(Background::Threads).compaction_threads(1);
            let (_db, spaces, jobs) = open(options.flush_threads(2), scheduler);
            let is_done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let is_done = &is_done;
                for (space, seed) in spaces.iter().zip(1..3) {
                    scope.spawn(move || {
                        let mut rng = Rng::new(seed);
                        while !is_done.load(Ordering::SeqCst) {
                            put(space, &mut rng);
                        }
                    });
                }
                let _stop = StopOnDrop(is_done);
                let mut rng = Rng::new(3);
                (0..1500).for_each(|_| put(&spaces[2], &mut rng));
            });
            let jobs = jobs.lock().unwrap();
            let merges = |name| jobs.iter().filter(|job| job.0 == name && job.1 && job.2).count();
            let merges = NAMES.map(merges);
            assert!(merges[2] >= 4, "{scheduler}: {merges:?}");
            assert!(merges[0].max(merges[1]) <= merges[2] * 50, "{scheduler}: {merges:?}");
        });
    }
}

/// A flush waits in a listener until another flush has begun.
#[test]
fn memtables_of_several_keyspaces_are_flushed_at_the_same_time() {
    run_guarded(|| {
        let flushing = Arc::new((Mutex::new((0usize, 0usize)), std::sync::Condvar::new()));
        let seen = Arc::clone(&flushing);
        let options = in_memory().0.background(Background::Threads).flush_threads(2);
        let db = options
            .on_event(move |event| {
                let (counts, changed) = &*seen;
                let mut counts = counts.lock().unwrap();
                match &event.event {
                    Event::FlushBegun { .. } => {
                        *counts = (counts.0 + 1, counts.1.max(counts.0 + 1));
                        changed.notify_all();
                        // Flushes come in pairs, so the wait ends.
                        drop(changed.wait_while(counts, |counts| counts.1 < 2).unwrap());
                    }
                    Event::FlushEnded { .. } => counts.0 -= 1,
                    _ => {}
                }
            })
            .open(DIR)
            .unwrap();
        let spaces = NAMES.map(|name| db.keyspace(name, KeyspaceOptions::new()).unwrap());
        spaces.iter().for_each(|space| space.put("k", "v").unwrap());
        std::thread::scope(|scope| {
            for space in &spaces {
                scope.spawn(|| space.flush().unwrap());
            }
        });
        // The events of the ends follow the flushes.
        db.close().unwrap();
        // Two of the small memtables may share a flush, so all three may be flushed at the same time.
        let (running, most) = *flushing.0.lock().unwrap();
        assert!(running == 0 && most >= 2, "{running} running, {most} at most");
    });
}
