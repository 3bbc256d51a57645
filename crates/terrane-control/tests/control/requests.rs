//! Every request and its effect.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use terrane::{Db, ErrorKind, IoBudget, KeyspaceOptions, inspect};
use terrane_control::{Bytes, Format, Item, Reply, Request, execute};

use crate::support::{CancelAfter, served};

fn report(reply: Reply) -> String {
    match reply {
        Reply::Report { text } => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reports_are_those_of_the_process_that_has_the_database_open() {
    let served = served();
    served.db.put("a", "1").unwrap();
    served.db.get("a").unwrap();
    let stats = |format| report(served.ask(&Request::Stats { format }).unwrap());
    assert!(stats(Format::Text).contains("writes"), "{}", stats(Format::Text));
    let json: Value = serde_json::from_str(&stats(Format::Json)).unwrap();
    assert_eq!((&json["writes"], &json["gets"]), (&1.into(), &1.into()));
    assert!(stats(Format::OpenMetrics).ends_with("# EOF\n"));
    let tree = |format| Request::Tree { keyspace: Some("default".into()), format };
    let text = report(served.ask(&tree(Format::Text)).unwrap());
    assert_eq!(text, served.db.tree().to_string());
    let json: Value =
        serde_json::from_str(&report(served.ask(&tree(Format::Json)).unwrap())).unwrap();
    assert_eq!(json[0]["memtable_entries"], 1);
    let client = served.client();
    let info = client.info();
    assert_eq!((info.pid, info.protocol), (std::process::id(), 1));
    assert_eq!(served.ask(&Request::Ping).unwrap(), Reply::Info(info.clone()));
}

#[test]
fn flushes_and_compactions_are_carried_out() {
    let served = served();
    let other = served.db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for round in 0..3 {
        served.db.put("a", [round; 100]).unwrap();
        other.put("b", [round; 100]).unwrap();
        let reply = served.ask(&Request::Flush { keyspace: None }).unwrap();
        assert!(
            matches!(reply, Reply::Flushed { entries: 2, memtable_bytes: 1.., .. }),
            "{reply:?}"
        );
    }
    let range = Request::Compact {
        keyspace: None,
        from: Some(Bytes(vec![b'a', 0xff])),
        to: Some(Bytes(b"b".to_vec())),
    };
    served.ask(&range).unwrap();
    let runs = || (served.db.tree().shape.run_count(), other.tree().shape.run_count());
    assert_eq!(runs(), (3, 3));
    let all = |keyspace| Request::Compact { keyspace, from: None, to: None };
    served.ask(&all(Some("other".into()))).unwrap();
    assert_eq!(runs(), (3, 1));
    let Reply::Compacted(compacted) = served.ask(&all(None)).unwrap() else { panic!() };
    assert_eq!((runs(), compacted.tables), ((1, 1), 2));
    assert!(compacted.table_bytes < compacted.table_bytes_before, "{compacted:?}");
    assert!(compacted.compaction_bytes_written > 0, "{compacted:?}");
}

#[test]
fn a_checkpoint_is_whole() {
    let served = served();
    served.db.put("a", "1").unwrap();
    let copies = tempfile::tempdir().unwrap();
    let dir = copies.path().join("copy");
    let reply = served.ask(&Request::Checkpoint { dir: dir.clone() }).unwrap();
    assert!(matches!(reply, Reply::Checkpointed { bytes: 1.., .. }), "{reply:?}");
    assert!(inspect::verify(&dir, &mut |_| {}).unwrap().problems.is_empty());
    assert_eq!(Db::open(&dir).unwrap().get("a").unwrap().unwrap(), "1");
    let error = served.ask(&Request::Checkpoint { dir }).unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Invalid), "{error}");
    let error = served.ask(&Request::Checkpoint { dir: "relative".into() }).unwrap_err();
    assert!(error.text.contains("absolute"), "{error}");
}

#[test]
fn designs_are_predicted_changed_and_restored() {
    let served = served();
    let before = served.db.design().to_string();
    let design = Some("leveling T=4".to_owned());
    let keyspace = || "default".to_owned();
    let forecast = Request::Forecast { keyspace: keyspace(), design: design.clone() };
    let Reply::Forecast(predicted) = served.ask(&forecast).unwrap() else { panic!() };
    assert_eq!((predicted.forecast.jobs, predicted.design_before.as_str()), (0, before.as_str()));
    assert_eq!(served.db.design().to_string(), before);
    let set = |design| Request::SetDesign { keyspace: keyspace(), design, converge: true };
    let Reply::DesignSet { design, is_cancelled } = served.ask(&set(design)).unwrap() else {
        panic!()
    };
    assert_eq!((served.db.design().to_string(), is_cancelled), (design, false));
    served.ask(&set(None)).unwrap();
    assert_eq!(served.db.design().to_string(), before);
    let error = served.ask(&set(Some("levelling".into()))).unwrap_err();
    assert_eq!((error.kind(), error.option), (Some(ErrorKind::Invalid), Some("design".to_owned())));
}

#[test]
fn keyspaces_are_listed_renamed_and_dropped() {
    let served = served();
    served.db.keyspace("users", KeyspaceOptions::new()).unwrap().put("a", "1").unwrap();
    served.db.flush().unwrap();
    let rename = |from: &str, to: &str| Request::RenameKeyspace {
        keyspace: from.into(),
        new_name: to.into(),
    };
    assert_eq!(served.ask(&rename("users", "people")).unwrap(), Reply::Renamed);
    let Reply::Keyspaces { keyspaces } = served.ask(&Request::Keyspaces).unwrap() else { panic!() };
    let people = keyspaces.iter().find(|one| one.keyspace == "people").unwrap();
    assert_eq!((people.entries, people.tables), (1, 1));
    let drop = |name: &str| Request::DropKeyspace { keyspace: name.into() };
    let error = served.ask(&drop("users")).unwrap_err();
    assert!(error.text.ends_with("existing keyspaces: default, people"), "{error}");
    for refused in [drop("default"), rename("default", "other"), rename("people", "default")] {
        assert_eq!(served.ask(&refused).unwrap_err().kind(), Some(ErrorKind::Invalid));
    }
    assert!(matches!(served.ask(&drop("people")).unwrap(), Reply::Dropped { table_bytes: 1.. }));
    assert_eq!(served.db.keyspaces(), ["default"]);
}

#[test]
fn the_io_budget_is_changed() {
    let served = served();
    let set = |text: &str| served.ask(&Request::SetIoBudget { io_budget: text.into() });
    let Reply::Options(options) = set("50MiB").unwrap() else { panic!() };
    assert_eq!(served.db.io_budget(), IoBudget::Total(50 << 20));
    assert_eq!(options.io_budget, served.db.io_budget().to_string());
    assert_eq!(served.ask(&Request::Options).unwrap(), Reply::Options(options));
    for bad in ["1", "much"] {
        assert_eq!(set(bad).unwrap_err().option.as_deref(), Some("io_budget"), "{bad}");
    }
}

#[test]
fn events_are_those_so_far_or_as_they_happen() {
    let served = served();
    served.db.put("a", "1").unwrap();
    served.db.flush().unwrap();
    let events = |last, follow| Request::Events { last, follow };
    let mut items = Vec::new();
    served.client().ask(&events(None, false), &mut items).unwrap();
    let number = served.db.events().len();
    assert_eq!(items.len(), number);
    let Some(Item::Event(event)) = items.last() else { panic!() };
    assert_eq!((event.event.as_str(), event.number), ("flush-ended", number as u64));
    assert_eq!(event.details["tables"], 1);
    let mut one = Vec::new();
    served.client().ask(&events(Some(1), false), &mut one).unwrap();
    assert_eq!(one, items[number - 1..]);
    // Two more events, and then the client cancels.
    let mut following = CancelAfter { reports: 2, ..CancelAfter::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            served.db.put("a", "2").unwrap();
            served.db.flush().unwrap();
        });
        let reply = served.client().ask(&events(Some(0), true), &mut following).unwrap();
        assert_eq!(reply, Reply::Ended { missed: 0 });
    });
    let numbers = following.items.iter().map(|item| match item {
        Item::Event(event) => event.number,
        other => panic!("{other:?}"),
    });
    assert_eq!(numbers.take(2).collect::<Vec<_>>(), [number as u64 + 1, number as u64 + 2]);
}

#[test]
fn samples_count_what_happens_in_their_interval() {
    let served = served();
    served.make_slow();
    let db = served.db.clone();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writing = std::thread::spawn(move || {
        while stopped.try_recv().is_err() {
            for number in 0..100u32 {
                db.put(number.to_le_bytes(), "value").unwrap();
                db.get(number.to_le_bytes()).unwrap();
            }
            // With this budget flushes are slow, and full memtables would stop the writes.
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let mut items = Vec::new();
    let request = Request::Top { interval_millis: 300, count: Some(2), details: false };
    served.client().ask(&request, &mut items).unwrap();
    stop.send(()).unwrap();
    writing.join().unwrap();
    assert_eq!(items.len(), 2);
    for item in &items {
        let Item::Sample(sample) = item else { panic!("{item:?}") };
        assert!((250_000..5_000_000).contains(&sample.interval_micros), "{sample:?}");
        assert!(sample.per_second.writes > 100.0 && sample.per_second.gets > 100.0, "{sample:?}");
        let get = sample.latencies.iter().find(|latency| latency.name == "get").unwrap();
        assert!(get.count > 0 && get.p50_micros <= get.p999_micros, "{sample:?}");
        assert!(sample.trees[0].levels[0].runs >= 3, "{sample:?}");
        assert!(sample.memory.memtables > 0 && sample.memory.budget > sample.memory.memtables);
        assert_eq!((sample.health.as_str(), &sample.error), ("ok", &None));
        assert!(sample.write_amplification.is_some(), "{sample:?}");
    }
    let error =
        served.ask(&Request::Top { interval_millis: 1, count: None, details: false }).unwrap_err();
    assert!(error.text.contains("100 to 3600000"), "{error}");
}

#[test]
fn a_sample_of_an_idle_database_has_no_ratios_and_no_latencies() {
    let dir = tempfile::tempdir().unwrap();
    let mut sampler = terrane_control::Sampler::new(&Db::open(dir.path()).unwrap());
    let sample = sampler.sample();
    assert_eq!((sample.write_amplification, sample.cache_hits), (None, None));
    assert_eq!(sample.latencies.iter().filter(|latency| latency.name == "get").count(), 0);
    let json = serde_json::to_value(&sample).unwrap();
    assert_eq!(json.get("write_amplification"), Some(&Value::Null));
}

#[test]
fn a_database_of_this_process_gives_the_same_answers() {
    let served = served();
    served.db.put("a", "1").unwrap();
    served.db.flush().unwrap();
    let requests = [
        Request::Keyspaces,
        Request::Options,
        Request::Tree { keyspace: None, format: Format::Json },
        Request::DropKeyspace { keyspace: "none".into() },
        Request::Forecast { keyspace: "default".into(), design: None },
        Request::Forecast { keyspace: "default".into(), design: Some("T=1".into()) },
        Request::Checkpoint { dir: served.dir.path().to_owned() },
        Request::Cancel,
    ];
    for request in &requests[..7] {
        let here = execute(&served.db, request, &mut Vec::new());
        assert_eq!(here, served.ask(request), "{request:?}");
    }
}

/// Looking up keyspaces while one of them was dropped created it again.
#[test]
fn looking_at_keyspaces_creates_none() {
    let served = served();
    let is_done = AtomicBool::new(false);
    let returned = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                execute(&served.db, &Request::Keyspaces, &mut Vec::new()).unwrap();
            }
        });
        let returned = (0..400).any(|_| {
            served.db.keyspace("passing", KeyspaceOptions::new()).unwrap();
            assert!(served.db.drop_keyspace("passing").unwrap());
            std::thread::sleep(std::time::Duration::from_millis(2));
            served.db.keyspaces().len() > 1
        });
        is_done.store(true, Ordering::Relaxed);
        returned
    });
    assert!(!returned, "a dropped keyspace exists again");
}
