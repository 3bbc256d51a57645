//! Tests that one request has the same answer everywhere: `testdata/answers.txt` has the hashes of the answers
//! to `testdata/requests.jsonl`. The tests of the page compute them in a browser.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use terrane_explorer::answer;
use terrane_policy::catalogue::ALL;
use terrane_testkit::Rng;

/// The number of simulations.
const SETUPS: usize = 200;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Compares a file with what it should contain; with `TERRANE_REWRITE`, writes it.
fn assert_file(name: &str, expected: &str) {
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        fs::write(file(name), expected).unwrap();
    }
    let found = fs::read_to_string(file(name)).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).position(|(one, other)| one != other);
    assert!(
        found == expected,
        "{name} differs, first in line {differs:?}; TERRANE_REWRITE=1 writes it"
    );
}

/// Returns a simulation of a design of the catalogue, small enough to take milliseconds.
fn simulation(rng: &mut Rng, number: usize) -> Value {
    let buffer = *rng.pick(&["1MiB", "4MiB"]);
    let design = format!("{}; buffer={buffer}; table=1MiB", ALL[number % ALL.len()].name);
    let arrival = match rng.below(3) {
        0 => "closed".to_owned(),
        1 => format!("constant({})", rng.between(100, 20_000)),
        _ => format!("burst({},20s,{},5s)", rng.between(100, 2000), rng.between(3000, 40_000)),
    };
    let share = |rng: &mut Rng| f64::from(*rng.pick(&[0u32, 0, 5, 20]));
    json!({
        "call": "simulate",
        "design": design,
        "workload": {
            "records": rng.between(1000, 50_000),
            "key_bytes": 16,
            "record_bytes": rng.between(40, 2000),
            "skew": rng.pick(&["uniform", "zipf(0.99)", "zipf(1.2)"]),
            "arrival": arrival,
            "writers": rng.between(1, 8),
            "update": 60,
            "insert": share(rng),
            "delete": share(rng),
            "get": share(rng),
            "missing": share(rng),
            "scan": share(rng),
            "scan_entries": 10,
            "cold": 0.5,
            "ttl_seconds": if rng.percent(25) { json!(rng.between(5, 60)) } else { Value::Null },
        },
        "machine": {
            "budget": if rng.percent(80) { json!(rng.between(2, 60) * 1_000_000) } else { Value::Null },
            "slots": rng.between(1, 4),
            "device_bytes_per_second": null,
            "write_seconds": null,
            "flush_seconds": null,
            "merge_seconds": null,
            "request_seconds": null,
        },
        "start": rng.pick(&["auto", "empty", "loaded", "settled"]),
        "seed": rng.below(1000),
        "seconds": 15,
        "windows": 15,
        "tables_max": 20_000,
        "trace_max": 1_000_000,
    })
}

/// Returns the requests: simulations of all designs, and each other kind.
fn requests() -> Vec<Value> {
    let mut rng = Rng::new(36);
    let mut requests: Vec<Value> = (0..SETUPS).map(|number| simulation(&mut rng, number)).collect();
    requests.push(json!({ "call": "catalogue" }));
    requests.extend(ALL.iter().map(|entry| json!({ "call": "design", "text": entry.name })));
    let points = json!({
        "call": "points", "records": 1e8, "record_bytes": 128.0, "buffer": "64MiB", "marked": ["leveling"],
    });
    requests.push(points);
    requests
        .push(json!({ "call": "levels", "text": "leveling", "levels": [[2.0, 1e6], [1.0, 1e9]] }));
    requests
}

#[test]
fn answers_are_the_same_on_every_platform() {
    let (mut lines, mut hashes) = (String::new(), String::new());
    let mut events = 0;
    for request in requests() {
        let request = request.to_string();
        let answer = answer(&request);
        let parsed: Value = serde_json::from_str(&answer).unwrap();
        assert!(parsed.get("error").is_none(), "{request}: {answer}");
        events += parsed["ok"]["events"].as_array().map_or(0, Vec::len);
        writeln!(lines, "{request}").unwrap();
        let hash: String =
            Sha256::digest(answer).iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(hashes, "{hash}").unwrap();
    }
    assert!(events > 20_000, "{events} events are few");
    assert_file("requests.jsonl", &lines);
    assert_file("answers.txt", &hashes);
}
