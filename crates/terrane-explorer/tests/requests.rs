//! Tests of the answers to single requests.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};
use terrane_explorer::answer;
use terrane_policy::Design;
use terrane_policy::catalogue::ALL;

fn ok(request: &Value) -> Value {
    let answer: Value = serde_json::from_str(&answer(&request.to_string())).unwrap();
    answer.get("ok").unwrap_or_else(|| panic!("{request}: {answer}")).clone()
}

fn error(request: &str) -> String {
    let answer: Value = serde_json::from_str(&answer(request)).unwrap();
    answer["error"].as_str().unwrap_or_else(|| panic!("{request}: {answer}")).to_owned()
}

/// Every value of every menu makes a design of each of some designs, or is refused with a reason.
#[test]
fn menus_and_text_say_the_same() {
    let catalogue = ok(&json!({ "call": "catalogue" }));
    let (mut accepted, mut refused) = (0, 0);
    for text in [
        "balanced",
        "leveling",
        "tiering T=4; memtable=auto",
        "lethe; base=256MiB",
        "hybrid runs=3,1,last:1; filter=5",
    ] {
        for choice in catalogue["choices"].as_array().unwrap() {
            let key = choice["key"].as_str().unwrap();
            for value in choice["values"].as_array().unwrap() {
                let request = json!({ "call": "change", "text": text, "key": key, "value": value });
                let answer: Value = serde_json::from_str(&answer(&request.to_string())).unwrap();
                let Some(changed) = answer.get("ok") else {
                    refused += 1;
                    assert!(answer["error"].as_str().unwrap().len() > 20, "{answer}");
                    continue;
                };
                accepted += 1;
                let design: Design = changed["text"].as_str().unwrap().parse().unwrap();
                let again = ok(&json!({ "call": "design", "text": design.to_string() }));
                assert_eq!(&again, changed, "{request}");
                let settings = again["settings"].as_array().unwrap();
                if key != "name" {
                    // All other settings are as before; the runs of level 0 may follow T.
                    let kept = |described: &Value| {
                        let mut settings = described["settings"].as_array().unwrap().clone();
                        settings.retain(|setting| setting[0] != key);
                        (described["eagerness"].clone(), settings)
                    };
                    let before = ok(&json!({ "call": "design", "text": text }));
                    assert_eq!(kept(&again), kept(&before), "{request}");
                }
                let shown = settings.iter().find(|setting| setting[0] == *key);
                if let Some(shown) = shown {
                    assert_eq!(&shown[1], value, "{request}");
                }
            }
        }
    }
    assert!(accepted > 200 && refused > 10, "{accepted} accepted, {refused} refused");
}

#[test]
fn a_size_ratio_takes_the_runs_of_level_0_along_only_if_they_followed() {
    let change = |text: &str, key: &str, value: &str| {
        let request = json!({ "call": "change", "text": text, "key": key, "value": value });
        ok(&request)["text"].as_str().unwrap().to_owned()
    };
    assert!(change("tiering T=4", "T", "6").starts_with("tiering T=6 L0=6 "));
    assert!(change("tiering T=4 L0=10", "T", "6").starts_with("tiering T=6 L0=10 "));
    let leveled = change("tiering T=4; filter=5; memtable=auto; buffer=8MiB", "name", "leveling");
    for kept in ["leveling T=10 ", "filter=5", "memtable=auto", "buffer=8MiB"] {
        assert!(leveled.contains(kept), "{leveled}");
    }
}

#[test]
fn all_named_designs_are_described() {
    let catalogue = ok(&json!({ "call": "catalogue" }));
    assert_eq!(catalogue["designs"].as_array().unwrap().len(), ALL.len());
    for entry in ALL {
        let described = ok(&json!({ "call": "design", "text": entry.name }));
        let text = described["text"].as_str().unwrap();
        assert_eq!(text.parse::<Design>().unwrap(), (entry.design)(), "{}", entry.name);
    }
}

#[test]
fn errors_are_sentences() {
    for (request, part) in [
        ("", "EOF"),
        ("{}", "call"),
        (r#"{"call":"delete-everything"}"#, "unknown variant"),
        (r#"{"call":"design","text":"levling"}"#, "did you mean 'leveling'"),
        (r#"{"call":"design","text":"leveling; T=1"}"#, "T=1"),
        (
            r#"{"call":"points","records":-1,"record_bytes":1,"buffer":"1MiB","marked":[]}"#,
            "positive",
        ),
        (r#"{"call":"points","records":1,"record_bytes":1,"buffer":"x","marked":[]}"#, "x"),
    ] {
        assert!(error(request).contains(part), "{request}: {}", error(request));
    }
}

fn simulation(change: impl FnOnce(&mut Value)) -> Value {
    let mut request = json!({
        "call": "simulate", "design": "leveling; buffer=1MiB", "start": "empty", "seed": 1, "seconds": 10,
        "windows": 10, "tables_max": 1000, "trace_max": 100_000,
        "workload": {
            "records": 10_000, "key_bytes": 16, "record_bytes": 100, "skew": "uniform", "arrival": "constant(5000)",
            "writers": 1, "update": 1, "insert": 0, "delete": 0, "get": 0, "missing": 0, "scan": 0,
            "scan_entries": 1, "cold": 1, "ttl_seconds": null,
        },
        "machine": {
            "budget": 1e7, "slots": 2, "device_bytes_per_second": null, "write_seconds": null,
            "flush_seconds": null, "merge_seconds": null, "request_seconds": null,
        },
    });
    change(&mut request);
    request
}

#[test]
fn a_simulation_has_events_windows_and_results() {
    let played = ok(&simulation(|_| ()));
    assert_eq!(played["windows"]["at"], json!((1..=10).map(f64::from).collect::<Vec<_>>()));
    let rate = played["results"]["rate"].as_f64().unwrap();
    assert!((rate - 5000.0).abs() < 1.0, "{rate}");
    assert_eq!(played["windows"]["offered"][3], 5000.0);
    let events = played["events"].as_array().unwrap();
    let count = |kind: &str| events.iter().filter(|event| event[1] == kind).count();
    assert_eq!((count("start"), count("flush"), count("flushed")), (1, 6, 6));
    assert_eq!(played["results"]["flushes"], 6);
    // A full trace ends, and the rest of the answer is whole.
    let short = ok(&simulation(|request| request["trace_max"] = 10.into()));
    assert!(short["trace_ended"].as_f64().unwrap() < 10.0);
    assert_eq!(short["results"], played["results"]);
}

/// The space is that of the records that exist: none is expired, and an empty tree has only what was written.
#[test]
fn space_is_relative_to_the_records_that_exist() {
    let last = |request: Value| {
        let played = ok(&request);
        let space = played["windows"]["space_amplification"].as_array().unwrap();
        space.last().unwrap().as_f64().unwrap()
    };
    let expiring = last(simulation(|request| {
        request["workload"]["records"] = 10_000_000.into();
        (request["workload"]["update"], request["workload"]["insert"]) = (0.into(), 1.into());
        request["workload"]["ttl_seconds"] = 4.into();
        (request["design"], request["seconds"]) = ("tiering T=4; buffer=1MiB".into(), 60.into());
    }));
    assert!((0.8..4.0).contains(&expiring), "{expiring}");
    let fresh = last(simulation(|request| {
        request["workload"]["records"] = 10_000_000.into();
    }));
    assert!((0.5..2.0).contains(&fresh), "{fresh}");
}

#[test]
fn the_offered_rate_of_a_window_is_its_mean() {
    let played = ok(&simulation(|request| {
        request["workload"]["arrival"] = "burst(1000,0.75s,5000,0.25s)".into();
    }));
    for offered in played["windows"]["offered"].as_array().unwrap() {
        assert!((offered.as_f64().unwrap() - 2000.0).abs() < 100.0, "{offered}");
    }
}

#[test]
fn merges_that_do_not_end_have_their_progress() {
    let played = ok(&simulation(|request| request["machine"]["budget"] = 250_000.into()));
    let events = played["events"].as_array().unwrap();
    let last = events.iter().rfind(|event| event[1] == "merge").expect("a merge");
    let is_of_last = |event: &&Value| event[2] == last[2];
    assert!(!events.iter().any(|event| event[1] == "merged" && event[2] == last[2]), "it ended");
    let share = events.iter().filter(is_of_last).rfind(|event| event[1] == "share").unwrap();
    assert_eq!(share[0], 10.0, "{share}");
}

#[test]
fn bad_simulations_are_refused() {
    let set = |path: &str, value: Value| {
        let request = simulation(|request| *request.pointer_mut(path).unwrap() = value);
        error(&request.to_string())
    };
    for (path, value, part) in [
        ("/design", json!("tiering T=0"), "T=0"),
        ("/seconds", json!(0), "time"),
        ("/seconds", json!(1e300), "time"),
        ("/windows", json!(1e9), "windows"),
        ("/start", json!("half"), "start"),
        ("/workload/records", json!(0), "records"),
        ("/workload/records", json!(1e300), "records"),
        ("/workload/record_bytes", json!(0), "size of a record"),
        ("/workload/skew", json!("normal"), "normal"),
        ("/workload/arrival", json!("constant(-1)"), "constant(-1)"),
        ("/workload/update", json!(0), "needs updates"),
        ("/workload/update", json!(-1), "share"),
        ("/workload/cold", json!(2), "cold"),
        ("/workload/ttl_seconds", json!(0), "time to live"),
        ("/machine/budget", json!(0), "budget"),
        ("/machine/write_seconds", json!(-1), "time"),
    ] {
        let error = set(path, value.clone());
        assert!(error.contains(part), "{path} {value}: {error}");
    }
}

#[test]
fn a_simulation_begins_with_given_runs() {
    let with = |runs: Value| simulation(|request| request["runs"] = runs);
    let played = ok(&with(json!([[500, 400], [], [9000]])));
    let event = &played["events"][0];
    assert_eq!(event[1], "start");
    // Run, level and entries of each table, by run.
    let mut runs: Vec<(u64, u64, f64)> = Vec::new();
    for table in event[2].as_array().unwrap() {
        let (run, level) = (table[1].as_u64().unwrap(), table[2].as_u64().unwrap());
        match runs.iter_mut().find(|known| (known.0, known.1) == (run, level)) {
            Some(known) => known.2 += table[6].as_f64().unwrap(),
            None => runs.push((run, level, table[6].as_f64().unwrap())),
        }
    }
    runs.sort_by(|one, other| (one.1, other.0).cmp(&(other.1, one.0)));
    let levels: Vec<u64> = runs.iter().map(|run| run.1).collect();
    assert_eq!(levels, [0, 0, 2]);
    for ((.., entries), wanted) in runs.iter().zip([500.0, 400.0, 9000.0]) {
        assert!((entries - wanted).abs() < wanted * 0.02, "{runs:?}");
    }
    for (runs, part) in [
        (json!([[0]]), "the number of entries of a run is 0"),
        (json!([[-5]]), "the number of entries of a run is -5"),
        (json!(vec![json!([]); 65]), "at most 64 levels"),
        (json!([vec![1; 5000]]), "at most 64 levels and 4096 runs"),
    ] {
        assert!(error(&with(runs).to_string()).contains(part));
    }
}
