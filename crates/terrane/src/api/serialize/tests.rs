//! Tests of round trips and of the JSON.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json, to_value};
use terrane_policy::Design;

use super::*;
use crate::files::storage::MemoryStorage;
use crate::{Background, Db, Options};

fn round_trip<T: Serialize + DeserializeOwned>(value: &T) -> T {
    from_value(to_value(value).unwrap()).unwrap()
}

/// A database with some contents in memory.
fn small() -> Db {
    let storage = Arc::new(MemoryStorage::new(1));
    let db = Options::new().storage(storage).background(Background::Inline).open("db").unwrap();
    for number in 0..200u8 {
        db.put([number, 255], [7; 100]).unwrap();
        db.get([number, 255]).unwrap();
    }
    db.put("text", "1").unwrap();
    db.flush().unwrap();
    db
}

#[test]
fn options_and_designs_are_their_texts() {
    let design: Design = "tiering T=4; buffer=8MiB".parse().unwrap();
    assert_eq!(
        (to_value(&design).unwrap(), round_trip(&design)),
        (json!(design.to_string()), design)
    );
    assert_eq!(to_value(Durability::Sync).unwrap(), json!("sync"));
    assert_eq!(from_value::<ReadMode>(json!("direct")).unwrap(), ReadMode::Direct);
    let error = from_value::<Durability>(json!("never")).unwrap_err().to_string();
    assert!(error.contains("never") && error.contains("durability"), "{error}");
}

#[test]
fn durations_and_counts_round_trip_and_merge() {
    let db = small();
    let latencies = db.stats().latencies;
    assert!(latencies.get.count() > 0 && latencies.flush.count() == 1);
    let mut merged = round_trip(&latencies);
    assert_eq!(merged, latencies);
    merged.merge(&latencies);
    assert_eq!(merged.get.count(), 2 * latencies.get.count());
    let operations = db.operations();
    assert_eq!(round_trip(&operations), operations);
    let level = LevelStats { get_blocks: 7, ..LevelStats::default() };
    assert_eq!(round_trip(&level), level);
    // Cells that no histogram has are refused, not allocated.
    let far = json!({"sum_nanos": 1, "max_nanos": 1, "cells": [[1_000_000_000_000_u64, 1]]});
    assert!(from_value::<Times>(far).is_err());
    let many = json!({"sum_nanos": 1, "max_nanos": 1, "cells": [[1, u64::MAX], [2, 1]]});
    assert!(from_value::<Times>(many).is_err());
}

#[test]
fn statistics_have_every_metric_by_name() {
    let stats = small().stats();
    let json = to_value(&stats).unwrap();
    for metric in stats.metrics() {
        assert_eq!(json[metric.name], to_value(metric.value).unwrap(), "{}", metric.name);
    }
    assert_eq!(json["latency_micros"]["flush"]["count"], 1);
    assert_eq!((&json["error"], &json["stalls_now"]), (&Value::Null, &json!([])));
    assert_eq!(to_value(stats.metrics()[0]).unwrap()["kind"], "counter");
}

#[test]
fn a_number_that_was_not_measured_is_null() {
    let storage = Arc::new(MemoryStorage::new(1));
    let db = Options::new().storage(storage).background(Background::Inline).open("db").unwrap();
    let json = to_value(db.stats()).unwrap();
    for name in ["write_amplification", "rewrite_amplification", "read_amplification"] {
        assert_eq!(json.get(name), Some(&Value::Null), "{name}");
    }
    let get = json!({"count": 0, "p50": null, "p90": null, "p99": null, "p999": null, "max": null, "mean": null});
    assert_eq!(json["latency_micros"]["get"], get);
    let json = to_value(small().stats()).unwrap();
    assert!(json["write_amplification"].as_f64().unwrap() > 0.0);
    assert!(json["latency_micros"]["flush"]["p50"].as_f64().unwrap() > 0.0);
}

#[test]
fn events_and_trees_are_objects() {
    let db = small();
    let events = to_value(db.events()).unwrap();
    let ended = events.as_array().unwrap().iter().find(|event| event["event"] == "flush-ended");
    assert_eq!(
        (&ended.unwrap()["keyspace"], &ended.unwrap()["tables"]),
        (&json!("default"), &json!(1))
    );
    let ingest = small();
    ingest.ingest([("a", "1"), ("b", "2")]).unwrap();
    let events = to_value(ingest.events()).unwrap();
    let ingested = events.as_array().unwrap().last().unwrap();
    assert_eq!(ingested["event"], "tables-ingested");
    assert_eq!((&ingested["entries"], &ingested["tables"]), (&json!(2), &json!(1)));
    let tree = to_value(db.tree()).unwrap();
    assert_eq!((&tree["keyspace"], &tree["admission"]), (&json!("default"), &json!("proceed")));
    let levels = tree["levels"].as_array().unwrap();
    let tables = levels.iter().flat_map(|level| level["runs"].as_array().unwrap());
    let tables: Vec<&Value> = tables.flat_map(|run| run["tables"].as_array().unwrap()).collect();
    assert_eq!(
        (&tables[0]["entries"], &tables[0]["start"]),
        (&json!(201), &json!({"hex": "00ff"}))
    );
}
