//! What happens, told to who listens and to who asks later.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use terrane::storage::{Fault, FaultStorage, Operation};
use terrane::{Background, BackgroundWork, Event, FlushReason, LoggedEvent, ManualClock, Options};
use terrane_testkit::wait_until;

use crate::support::{DIR, in_memory, small_design};

type Told = Arc<Mutex<Vec<LoggedEvent>>>;

fn listen(options: Options) -> (Options, Told) {
    let told = Told::default();
    let listener = Arc::clone(&told);
    (options.on_event(move |event| listener.lock().unwrap().push(event.clone())), told)
}

#[test]
fn flushes_compactions_and_designs_are_told_in_order_with_reasons() {
    let (options, told) = listen(in_memory().0);
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
    assert_eq!(*told.lock().unwrap(), events);
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
    // Another opening begins anew.
    db.close().unwrap();
    let closed = told.lock().unwrap().len();
    let db = options.open(DIR).unwrap();
    assert_eq!(told.lock().unwrap()[closed..], db.events());
}

#[test]
fn trouble_is_told_once_however_often_work_is_tried() {
    let (options, memory) = in_memory();
    let storage = FaultStorage::new(Arc::new(memory));
    let options = options.storage(Arc::new(storage.clone())).background(Background::Threads);
    let (options, told) = listen(options.design(small_design()));
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
    // The flush thread retries by itself.
    wait_until(|| storage.fired() > 4, || format!("{} attempts", storage.fired()));
    storage.set(None);
    db.flush().unwrap();
    db.close().unwrap();
    let events: Vec<Event> = told.lock().unwrap().iter().map(|told| told.event.clone()).collect();
    let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
    let ends =
        |event: &Event| matches!(event, Event::TroubleEnded { work: BackgroundWork::Flush, .. });
    assert_eq!(count(ends), 1, "{events:?}");
    let begins = |event: &Event| matches!(event, Event::TroubleBegun { .. });
    assert_eq!(count(begins), 1, "{events:?}");
    let fails = |event: &Event| matches!(event, Event::FlushEnded { failure: Some(_), .. });
    assert_eq!(count(fails), 1, "{events:?}");
    let succeeds = |event: &Event| {
        matches!(event, Event::FlushEnded { failure: None, begun: None, tables: 1, .. })
    };
    assert_eq!(count(succeeds), 1, "{events:?}");
}

#[test]
fn a_delete_that_stays_too_long_is_told_once() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let (options, told) = listen(in_memory().0.design(small_design()).clock(clock.clone()));
    let db = options.delete_persistence(Duration::from_secs(100)).open(DIR).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.compact_range::<&str>(..).unwrap();
    let _holds_it = db.snapshot();
    db.delete("a").unwrap();
    db.flush().unwrap();
    clock.advance(Duration::from_secs(101));
    for _ in 0..3 {
        while db.run_background_job().unwrap() {}
    }
    let is_late = |told: &LoggedEvent| matches!(told.event, Event::DeletesLate { .. });
    let late: Vec<LoggedEvent> =
        told.lock().unwrap().iter().filter(|told| is_late(told)).cloned().collect();
    let [late] = &late[..] else { panic!("{late:?}") };
    let Event::DeletesLate { age_micros, threshold_micros, .. } = late.event else { panic!() };
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
