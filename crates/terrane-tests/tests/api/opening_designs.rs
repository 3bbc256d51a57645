//! Opening with a design for new databases only, opening with a design change, and options for a
//! new database.

use std::sync::{Arc, Mutex};

use terrane::storage::{Crash, MemoryStorage, Storage, Survival};
use terrane::{
    Background, Db, Design, Durability, Error, ErrorKind, Event, KeyspaceOptions, OpenMode, Options,
};

use crate::support::{DIR, in_memory, pairs, small_design};

fn tiered() -> Design {
    "tiering T=3; buffer=4KiB; table=4KiB; block=512B".parse().unwrap()
}

/// Collects the events of an opening.
fn listening(options: Options) -> (Options, Arc<Mutex<Vec<Event>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let options = options.on_event(move |event| sink.lock().unwrap().push(event.event.clone()));
    (options, events)
}

/// Writes several runs, closes the database, and returns its contents.
fn filled(options: &Options) -> Vec<(String, String)> {
    let db = options.clone().design(tiered()).open(DIR).unwrap();
    for number in 0..600u32 {
        db.put(format!("{:04}", number * 389 % 1000), "x".repeat(50)).unwrap();
    }
    let pairs = pairs(db.iter().unwrap());
    db.close().unwrap();
    pairs
}

#[test]
fn a_design_for_a_new_database_applies_once_and_is_no_error_later() {
    let (options, _) = in_memory();
    let open = |design: Design| options.clone().design_if_new(design).open(DIR).unwrap();
    assert_eq!(open(tiered()).design(), tiered());
    assert_eq!(open(small_design()).design(), tiered());
    let db = open(small_design());
    let space = |design| db.keyspace("s", KeyspaceOptions::new().design_if_new(design)).unwrap();
    assert_eq!(space(small_design()).design(), small_design());
    assert_eq!(space(tiered()).design(), small_design());
    assert!(db.events().iter().all(|one| !matches!(one.event, Event::DesignChanged { .. })));
}

#[test]
fn an_opening_changes_the_design_and_reports_the_forecast() {
    let (options, _) = in_memory();
    let before = filled(&options);
    let (options, events) = listening(options);
    let open = || options.clone().design_or_change(small_design()).open(DIR).unwrap();
    let db = open();
    assert_eq!(
        (db.design(), db.default_keyspace().design_before()),
        (small_design(), Some(tiered()))
    );
    let found = events.lock().unwrap().iter().find_map(|event| match event {
        Event::DesignChanged { keyspace, before, after, forecast, .. } => {
            assert_eq!((keyspace.as_str(), before), ("default", &tiered().to_string()));
            assert_eq!(*after, small_design().to_string());
            *forecast
        }
        _ => None,
    });
    let forecast = found.expect("a forecast");
    assert!(forecast.compactions > 0 && forecast.bytes_rewritten > 10_000, "{forecast:?}");
    assert!(forecast.runs_before > forecast.runs_after, "{forecast:?}");
    db.wait_for_compactions().unwrap();
    assert!(db.tree().shape.run_count() as u64 <= forecast.runs_after + 1, "{}", db.tree());
    assert_eq!(pairs(db.iter().unwrap()), before);
    drop(db);
    // The design is the requested one now.
    events.lock().unwrap().clear();
    assert_eq!(open().design(), small_design());
    assert!(events.lock().unwrap().is_empty(), "{events:?}");
}

#[test]
fn opening_a_keyspace_changes_its_design_unless_the_database_is_read_only() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    let change = |design| KeyspaceOptions::new().design_or_change(design);
    let space = db.keyspace("s", change(tiered())).unwrap();
    space.put("key", "value").unwrap();
    space.flush().unwrap();
    let again = db.keyspace("s", change(small_design())).unwrap();
    assert_eq!((again.design(), space.design()), (small_design(), small_design()));
    let changed = db.events().into_iter().filter_map(|event| match event.event {
        Event::DesignChanged { keyspace, forecast, .. } => Some((keyspace, forecast.is_some())),
        _ => None,
    });
    assert_eq!(changed.collect::<Vec<_>>(), [("s".to_owned(), true)]);
    db.close().unwrap();
    let db = options.design_or_change(tiered()).open_read_only(DIR).unwrap();
    let space = db.keyspace("s", change(tiered())).unwrap();
    assert_eq!((db.design() == tiered(), space.design()), (false, small_design()));
}

#[test]
fn an_invalid_design_changes_nothing_and_leaves_the_directory_unlocked() {
    let (options, _) = in_memory();
    filled(&options);
    let discards: Design = "leveling; memtable=flodb(flush=discard)".parse().unwrap();
    let mut broken = small_design();
    broken.strategy.size_ratio = 1;
    for design in [discards, broken] {
        let error = options.clone().design_or_change(design).open(DIR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert_eq!(options.open(DIR).unwrap().design(), tiered());
    }
}

#[test]
fn options_for_a_new_database_do_not_change_an_existing_one_and_changes_are_reported() {
    let (options, _) = in_memory();
    let (options, events) = listening(options);
    let wanted = |durability: Durability, design: Design| {
        let new = Options::new().durability(durability).design(design).log_segment_bytes(1 << 20);
        options.clone().if_new(new)
    };
    let db = wanted(Durability::Sync, tiered()).open(DIR).unwrap();
    assert_eq!((db.durability(), db.design()), (Durability::Sync, tiered()));
    drop(db);
    let db = wanted(Durability::None, small_design()).open(DIR).unwrap();
    assert_eq!((db.durability(), db.design()), (Durability::Sync, tiered()));
    drop(db);
    assert!(events.lock().unwrap().is_empty(), "{events:?}");
    drop(options.clone().durability(Durability::Process).open(DIR).unwrap());
    let texts: Vec<_> = events.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["changed durability from sync to process"]);
}

#[test]
fn an_invalid_option_for_a_new_database_is_refused_before_any_file_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = Options::new().if_new(Options::new().compaction_threads(0));
    assert_eq!(options.open(&path).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!path.exists());
}

#[test]
fn the_refusal_of_another_design_is_data_and_one_line() {
    let (options, _) = in_memory();
    drop(options.clone().design(tiered()).open(DIR).unwrap());
    let mut wanted = tiered();
    wanted.strategy.size_ratio = 5;
    let error = options.design(wanted.clone()).open(DIR).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("T=3 instead of T=5;") && text.len() < 300, "{text}");
    let Error::OtherDesign(other) = error else { panic!("{error}") };
    assert_eq!(
        (other.keyspace.as_str(), &other.stored, &other.requested),
        ("default", &tiered(), &wanted)
    );
}

/// An opening that changes the design, and crashes at any call, leaves a database with one of the two
/// designs and all entries.
#[test]
fn a_crash_while_an_opening_changes_the_design_keeps_one_of_the_two() {
    let (options, storage) = in_memory();
    let before = filled(&options);
    storage.track_crash_points();
    storage.mark(0);
    drop(options.design_or_change(small_design()).open(DIR).unwrap());
    storage.mark(1);
    storage.sync_dir(DIR.as_ref()).unwrap();
    let mut found = [0, 0];
    for point in storage.take_crash_points() {
        for crash in [Crash::Process, Crash::Power(Survival { percent: 0, seed: 1 })] {
            let image: MemoryStorage = point.image(crash);
            let open = || -> Db {
                let options = Options::new().storage(Arc::new(image.clone()));
                options
                    .background(Background::Inline)
                    .open_mode(OpenMode::MustExist)
                    .open(DIR)
                    .unwrap()
            };
            let db = open();
            assert_eq!(pairs(db.iter().unwrap()), before);
            let is_new = db.design() == small_design();
            assert!(is_new || db.design() == tiered(), "{}", db.design());
            assert!(is_new || point.mark() == 0, "the change is lost");
            found[usize::from(is_new)] += 1;
        }
    }
    assert!(found[0] > 0 && found[1] > 0, "{found:?}");
}
