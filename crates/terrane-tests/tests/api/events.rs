//! Tests events: the calls of the listener, and the list that `events` returns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrane::storage::{Fault, FaultStorage, Operation, Storage};
use terrane::{Background, BackgroundWork, Event, FlushReason, LoggedEvent, ManualClock, Options};
use terrane_testkit::wait_until;

use crate::support::{DIR, in_memory, small_design};

type EventList = Arc<Mutex<Vec<LoggedEvent>>>;

fn listen(options: Options) -> (Options, EventList) {
    let events_heard = EventList::default();
    let listener = Arc::clone(&events_heard);
    (options.on_event(move |event| listener.lock().unwrap().push(event.clone())), events_heard)
}

#[test]
fn flushes_compactions_and_design_changes_emit_events_in_order_with_reasons() {
    let (options, events_heard) = listen(in_memory().0);
    let db = options.clone().design(small_design()).open(DIR).unwrap();
    for round in 0..4 {
        for key in ["a", "b", "c"] {
            db.put(key, format!("{round}")).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_compactions().unwrap();
    db.set_design("leveling; buffer=4KiB; table=4KiB".parse().unwrap()).unwrap();
    let events = db.events();
    assert_eq!(*events_heard.lock().unwrap(), events);
    assert!(events.iter().zip(1..).all(|(event, number)| event.number == number));
    let Event::FlushBegun { keyspace, reason, entries, bytes, .. } = &events[0].event else {
        panic!("{events:?}");
    };
    assert_eq!((keyspace.as_str(), *reason, *entries), ("default", FlushReason::Requested, 3));
    assert!(*bytes > 0);
    let Event::FlushEnded { begun, tables, written_bytes, failure, .. } = &events[1].event else {
        panic!("{events:?}");
    };
    assert_eq!((*begun, *tables, failure), (Some(1), 1, &None));
    assert!(*written_bytes > 0);
    let job = events.iter().find_map(|logged| match &logged.event {
        Event::JobEnded {
            begun, why, what, read_bytes, written_bytes, predicted_bytes, ..
        } => {
            Some((*begun, why.clone(), what.clone(), *read_bytes, *written_bytes, *predicted_bytes))
        }
        _ => None,
    });
    let (begun, why, what, read, written, predicted) = job.unwrap();
    let begin = &events[usize::try_from(begun.unwrap()).unwrap() - 1].event;
    assert!(matches!(begin, Event::JobBegun { what: begun, .. } if *begun == what), "{begin}");
    assert!(why.starts_with("run-count") && what.contains("into L1"), "{why}; {what}");
    assert!(read > written && written > 0 && predicted >= read, "{read} {written} {predicted}");
    let last = &events.last().unwrap().event;
    let Event::DesignChanged { before, after, .. } = last else { panic!("{last}") };
    assert!(before.starts_with("1-leveling") && after.starts_with("leveling"), "{last}");
    // Each opening numbers its events from 1.
    db.close().unwrap();
    let closed = events_heard.lock().unwrap().len();
    let db = options.open(DIR).unwrap();
    assert_eq!(events_heard.lock().unwrap()[closed..], db.events());
}

#[test]
fn repeated_failures_emit_one_event() {
    let (options, memory) = in_memory();
    let storage = FaultStorage::new(Arc::new(memory));
    let options = options.storage(Arc::new(storage.clone())).background(Background::Threads);
    let (options, events_heard) = listen(options.design(small_design()));
    let db = options.open(DIR).unwrap();
    storage.set(Some(Fault {
        operation: Some(Operation::Append),
        path_contains: ".sst".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::StorageFull,
    }));
    db.put("a", "1").unwrap();
    assert!(db.flush().is_err());
    // The flush thread retries automatically.
    wait_until(|| storage.fired() > 4, || format!("{} attempts", storage.fired()));
    storage.set(None);
    // A flush would fail if an earlier attempt reported its failure during the flush.
    let recovers = |logged: &LoggedEvent| matches!(logged.event, Event::WorkRecovered { .. });
    wait_until(|| events_heard.lock().unwrap().iter().any(recovers), || "no recovery".into());
    db.flush().unwrap();
    db.close().unwrap();
    let events: Vec<Event> = events_heard
        .lock()
        .unwrap()
        .iter()
        .map(|events_heard| events_heard.event.clone())
        .collect();
    let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
    let ends =
        |event: &Event| matches!(event, Event::WorkRecovered { work: BackgroundWork::Flush, .. });
    assert_eq!(count(ends), 1, "{events:?}");
    let begins = |event: &Event| matches!(event, Event::WorkFailed { .. });
    assert_eq!(count(begins), 1, "{events:?}");
    let fails = |event: &Event| matches!(event, Event::FlushEnded { failure: Some(_), .. });
    assert_eq!(count(fails), 1, "{events:?}");
    let succeeds = |event: &Event| {
        matches!(event, Event::FlushEnded { failure: None, begun: None, tables: 1, .. })
    };
    assert_eq!(count(succeeds), 1, "{events:?}");
}

#[test]
fn a_late_delete_emits_one_event() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let (options, events_heard) = listen(in_memory().0.design(small_design()).clock(clock.clone()));
    let db = options.delete_persistence(Duration::from_secs(100)).open(DIR).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    let _holds_it = db.snapshot();
    db.delete("a").unwrap();
    db.flush().unwrap();
    clock.advance(Duration::from_secs(101));
    for _ in 0..3 {
        while db.run_background_job().unwrap() {}
    }
    let is_late =
        |events_heard: &LoggedEvent| matches!(events_heard.event, Event::DeletesLate { .. });
    let late: Vec<LoggedEvent> = events_heard
        .lock()
        .unwrap()
        .iter()
        .filter(|events_heard| is_late(events_heard))
        .cloned()
        .collect();
    let [late] = &late[..] else { panic!("{late:?}") };
    let Event::DeletesLate { age_micros, threshold_micros, .. } = late.event else { panic!() };
    assert_eq!((age_micros, threshold_micros), (101_000_000, 100_000_000));
}

/// Only tombstones used to cause this event.
#[test]
fn a_late_dead_value_emits_one_event() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let (options, storage) = in_memory();
    let (options, events_heard) = listen(options.clock(clock.clone()));
    let design =
        "leveling; buffer=4KiB; values=separate(64,garbage=100%,space=100)".parse().unwrap();
    let options = options.design(design).delete_persistence(Duration::from_secs(100));
    let db = options.open(DIR).unwrap();
    db.put("a", [1; 100]).unwrap();
    db.put("b", [2; 100]).unwrap();
    db.close().unwrap();
    // The file cannot be removed, because a value in it cannot be read.
    let names = storage.list(DIR.as_ref()).unwrap();
    let file = names.into_iter().find(|name| name.ends_with(".val")).unwrap();
    let path = std::path::Path::new(DIR).join(file);
    let mut bytes = storage.read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
    let db = options.open(DIR).unwrap();
    db.delete("a").unwrap();
    db.flush().unwrap();
    let late = || {
        while db.run_background_job().unwrap() {}
        let heard = events_heard.lock().unwrap();
        let all = heard.iter().map(|logged| logged.event.clone());
        all.filter(|event| matches!(event, Event::DeadValuesLate { .. })).collect::<Vec<_>>()
    };
    clock.advance(Duration::from_secs(70));
    assert_eq!((late(), db.stats().table_tombstones), (vec![], 0));
    clock.advance(Duration::from_secs(20));
    assert_eq!(late(), []);
    clock.advance(Duration::from_secs(11));
    db.put("c", "1").unwrap();
    db.compact_range(..).unwrap();
    let [Event::DeadValuesLate { age_micros, threshold_micros, .. }] = late()[..] else {
        panic!("{:?}", late())
    };
    assert_eq!((age_micros, threshold_micros), (101_000_000, 100_000_000));
}

#[test]
fn a_listener_that_panics_harms_nothing() {
    let options = in_memory().0.on_event(|_| panic!("it is a test"));
    let db = options.open(DIR).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    assert_eq!(db.events().len(), 2);
    assert!(db.stats().error.is_none());
}
