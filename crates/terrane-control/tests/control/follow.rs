//! The tables of a database, followed through their changes.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use terrane::{Db, IoBudget, Keyspace, KeyspaceOptions, Maintenance};
use terrane_control::tables::{PlacedTable, TableChanges};
use terrane_control::{Interest, Item, Progress, Request, Watch};

use crate::support::{DEADLINE, served};

const FOLLOW: Request = Request::Top { interval_millis: 100, count: None, details: true };

/// Passes items on until the receiver is gone.
struct PassOn(std::sync::mpsc::Sender<Item>, bool);

impl Watch for PassOn {
    fn item(&mut self, item: Item) {
        self.1 |= self.0.send(item).is_err();
    }

    fn progress(&mut self, _: &Progress) {}

    fn interest(&mut self) -> Interest {
        if self.1 { Interest::Cancelled } else { Interest::Waiting }
    }
}

/// The tables of each keyspace, put together from changes.
type Tables = BTreeMap<String, BTreeMap<u64, PlacedTable>>;

fn apply(tables: &mut Tables, changes: &TableChanges) {
    for tree in &changes.trees {
        let known = tables.entry(tree.keyspace.clone()).or_default();
        for id in &tree.removed {
            assert!(known.remove(id).is_some(), "table {id} of {} is not known", tree.keyspace);
        }
        for table in &tree.added {
            assert!(known.insert(table.table, table.clone()).is_none(), "{table:?} came twice");
        }
    }
    tables.retain(|_, known| !known.is_empty());
}

/// Returns the tables as the engine shows them: number, run, level, bytes and entries.
fn present(db: &Db) -> Vec<(String, Vec<[u64; 5]>)> {
    let of = |keyspace: &Keyspace| {
        let view = keyspace.tree();
        let mut rows = Vec::new();
        for (level, content) in view.shape.levels.iter().enumerate() {
            for run in &content.runs {
                rows.extend(run.tables.iter().map(|table| {
                    [table.id.0, run.id.0, level as u64, table.size_bytes, table.entries]
                }));
            }
        }
        rows.sort_unstable();
        (view.keyspace, rows)
    };
    let trees = Maintenance::of(db).keyspaces();
    trees.iter().map(of).filter(|(_, rows)| !rows.is_empty()).collect()
}

fn followed(tables: &Tables) -> Vec<(String, Vec<[u64; 5]>)> {
    let row =
        |table: &PlacedTable| [table.table, table.run, table.level, table.bytes, table.entries];
    tables.iter().map(|(name, of)| (name.clone(), of.values().map(row).collect())).collect()
}

/// Applies changes until the followed tables are those of the engine.
fn catch_up(db: &Db, items: &Receiver<Item>, tables: &mut Tables) {
    while followed(tables) != present(db) {
        if let Item::Tables(changes) = items.recv_timeout(DEADLINE).unwrap() {
            assert!(!changes.is_whole);
            apply(tables, &changes);
        }
    }
}

#[test]
fn changes_of_tables_add_up_to_the_tree() {
    let served = served();
    let db = &served.db;
    db.put([0xff; 400], "value").unwrap();
    db.flush().unwrap();
    let (sender, items) = channel();
    let mut client = served.client();
    let following = thread::spawn(move || client.ask(&FOLLOW, &mut PassOn(sender, false)));

    // All tables come first, before the sample.
    let Item::Tables(first) = items.recv_timeout(DEADLINE).unwrap() else { panic!("no tables") };
    assert!(first.is_whole);
    let table = &first.trees[0].added[0];
    assert_eq!((table.start.0.as_slice(), table.entries), (&[0xff; 256][..], 1));
    let mut tables = Tables::new();
    apply(&mut tables, &first);

    // Flushes, tables that move without being rewritten, a second keyspace.
    let other = db.keyspace("other", KeyspaceOptions::default()).unwrap();
    for round in 0..3 {
        db.put(format!("{round}"), "value").unwrap();
        other.put("key", "value").unwrap();
        db.flush().unwrap();
        other.flush().unwrap();
        catch_up(db, &items, &mut tables);
    }
    assert_eq!(tables.len(), 2);
    db.compact_range(..).unwrap();
    catch_up(db, &items, &mut tables);
    db.drop_keyspace("other").unwrap();
    catch_up(db, &items, &mut tables);
    assert_eq!(tables.len(), 1);

    // Nothing changes: only samples come.
    while items.try_recv().is_ok() {}
    let next = items.recv_timeout(DEADLINE).unwrap();
    assert!(matches!(next, Item::Sample(_)), "{next:?}");
    drop(items);
    following.join().unwrap().unwrap();
}

#[test]
fn jobs_come_with_their_tables_and_events_with_their_numbers() {
    let served = served();
    served.make_slow();
    let (sender, items) = channel();
    let mut client = served.client();
    let following = thread::spawn(move || client.ask(&FOLLOW, &mut PassOn(sender, false)));
    let compacting = {
        let db = served.db.clone();
        thread::spawn(move || db.compact_range(..))
    };
    let mut known: Vec<u64> = Vec::new();
    let mut events: Vec<u64> = Vec::new();
    let job = loop {
        match items.recv_timeout(DEADLINE).unwrap() {
            Item::Tables(changes) => {
                known.extend(
                    changes.trees.iter().flat_map(|tree| &tree.added).map(|table| table.table),
                );
                if let Some(job) = changes.jobs.into_iter().next() {
                    break job;
                }
            }
            Item::Event(event) => events.push(event.number),
            _ => {}
        }
    };
    assert_eq!(job.inputs.len(), 3);
    assert!(job.inputs.iter().all(|id| known.contains(id)), "{job:?} of {known:?}");
    assert_eq!(job.output_level, 1);
    // The job is in the samples under its number.
    let sample = loop {
        match items.recv_timeout(DEADLINE).unwrap() {
            Item::Sample(sample) => break sample,
            Item::Event(event) => events.push(event.number),
            _ => {}
        }
    };
    assert!(sample.jobs.iter().any(|one| one.view.id == Some(job.id)), "{sample:?}");
    // Each event comes once, the flushes of before the connection included.
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert!(events == expected && events.len() >= 6, "{events:?}");
    drop(items);
    served.db.set_io_budget(IoBudget::Unlimited).unwrap();
    compacting.join().unwrap().unwrap();
    following.join().unwrap().unwrap();
}
