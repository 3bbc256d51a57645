//! Designs and options, listed and changed.

use std::path::Path;

use crate::support::{done, path, run_to_end};

#[test]
fn a_design_can_be_shown_and_set() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db, "--design", "tiering T=4", "-c", "put a 1"], "");
    assert!(done(&["design", "show", "--db", &db], "").contains("tiering T=4"));
    let (code, _, error) = run_to_end(&["shell", &db, "--design", "leveling", "-c", "count"], "");
    assert!(code != 0 && error.contains("design"), "{code} {error}");
    done(&["design", "set", &db, "lazy-leveling"], "");
    let shown = done(&["design", "show", "--db", &db, "--json"], "");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["name"], &shown["keyspace"]), (&"lazy-leveling".into(), &"default".into()));
    assert_eq!(done(&["shell", &db, "-c", "get a"], ""), "1\n");
    for line in done(&["design", "list", "--json"], "").lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["schema"], 1);
        let text = entry["design"].as_str().unwrap();
        assert!(done(&["design", "show", text, "--json"], "").contains(text), "{text}");
    }
    assert_eq!(run_to_end(&["design", "show"], "").0, 2);
    assert_eq!(run_to_end(&["design", "show", "tiering T=0"], "").0, 2);
}

#[test]
fn the_design_space_is_listed_counted_and_changed_with_a_notice() {
    let list = done(&["design", "list"], "");
    let line = list.lines().find(|line| line.starts_with("lethe ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let expected = ["tombstone-ttl+level-saturation", "file", "expired-ttl+least-overlap"];
    assert_eq!(words[1..], [&["leveling"][..], &expected].concat());
    assert!(done(&["design", "show", "lethe"], "").contains("compared with the original:"));
    let counted = done(&["design", "enumerate"], "");
    let total: String = counted.chars().take_while(|c| !c.is_whitespace()).collect();
    assert!(total.replace(',', "").parse::<u64>().unwrap() > 10_000, "{counted}");
    let some = done(&["design", "enumerate", "random", "--list", "--limit", "3"], "");
    assert_eq!(some.lines().filter(|line| line.contains("random")).count(), 3);
    // A word must match a whole name, and `--limit` implies `--list`.
    let leveling = done(&["design", "enumerate", "leveling", "--limit", "3"], "");
    assert_eq!(leveling.lines().filter(|line| line.starts_with("leveling; ")).count(), 3);
    done(&["design", "show", leveling.lines().next().unwrap()], "");
    let counted = done(&["design", "enumerate", "leveling"], "");
    assert!(counted.contains(" 0 lazy-leveling"), "{counted}");
    assert_eq!(run_to_end(&["design", "enumerate", "levelling"], "").0, 2);
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "mine.toml"));
    done(&["shell", &db, "--design", "tiering T=4", "-c", "put a 1"], "");
    std::fs::write(&file, done(&["design", "show", "tsa", "--toml"], "")).unwrap();
    let told_before = done(&["design", "set", &db, &format!("@{file}"), "--dry-run"], "");
    assert!(told_before.contains("sorted runs: 1 before"), "{told_before}");
    assert!(done(&["design", "show", "--db", &db], "").contains("tiering T=4"));
    done(&["design", "set", &db, &format!("@{file}"), "--converge"], "");
    assert!(done(&["design", "show", "--db", &db], "").contains("tsa:"));
    assert!(done(&["inspect", "jobs", &db], "").contains("because of"));
    assert!(done(&["inspect", "deletes", &db], "").contains("violations: none"));
    assert!(done(&["inspect", "key", &db, "a"], "").contains("put of 1 B in L1"));
    assert!(done(&["inspect", "key", &db, "b"], "").contains("no version"));
    std::fs::write(&file, "T = 4").unwrap();
    assert_eq!(run_to_end(&["design", "show", &format!("@{file}")], "").0, 2);
}

#[test]
fn options_are_listed_with_their_flags_and_a_bad_value_is_a_usage_error() {
    for line in done(&["options", "list", "--json"], "").lines() {
        let option: serde_json::Value = serde_json::from_str(line).unwrap();
        let flag = option["flag"].as_str().unwrap();
        assert!(done(&["shell", "--help"], "").contains(flag), "{flag}");
    }
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    assert_eq!(run_to_end(&["shell", &db, "--read-mode", "psychic"], "").0, 2);
    assert_eq!(run_to_end(&["shell", &db, "--memory-budget", "7"], "").0, 2);
    assert!(!Path::new(&db).exists());
    let stats = done(&["shell", &db, "--create", "--durability", "sync", "-c", "stats"], "");
    assert!(stats.contains("durability          sync"), "{stats}");
}

#[test]
fn size_tiered_designs_have_no_levels_and_one_that_never_merges_is_refused() {
    let shown = done(&["design", "show", "asterixdb-prefix"], "");
    assert!(shown.contains("no levels") && !shown.contains("capacity"), "{shown}");
    let json = done(&["design", "show", "asterixdb-prefix", "--json"], "");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["levels"].as_array().unwrap().len(), json["levels"][0]["capacity_bytes"].is_null()),
        (1, true)
    );
    assert!(done(&["design", "show", "leveling"], "").contains("capacity"));
    let never = "tiering; granularity=run; trigger=prefix(8MiB); buffer=64MiB";
    let (code, _, error) = run_to_end(&["design", "show", never], "");
    assert!(code == 2 && error.contains("above the buffer of 64MiB"), "{code} {error}");
}

#[test]
fn design_errors_name_the_accepted_text() {
    for (design, part) in [
        ("leveling; memtable=hash-vector", "as in 'hash-vector(buckets=100000)'"),
        ("leveling; memtable=hash-vector(buckets=many)", "as in 'hash-vector(buckets=100000)'"),
        (
            "leveling; memtable=hash-skiplist(prefix=6)",
            "as in 'hash-skiplist(prefix=6,buckets=100000)'",
        ),
        ("T=4", "as in 'leveling T=4'"),
        ("levelling", "unknown design 'levelling'; did you mean 'leveling'?"),
        ("tiering; trigger=prefix(x)", "as in 'prefix(1GiB,5,1.2)'"),
        ("leveling; buffer=big", "found 'buffer=big', expected a number of bytes"),
        ("leveling; triger=run-count", "unknown setting 'triger'; did you mean 'trigger'?"),
    ] {
        let (code, _, error) = run_to_end(&["design", "show", design], "");
        assert!(code == 2 && error.contains(part), "{design}: {code} {error}");
    }
    done(&["design", "show", "tiering; granularity=run; trigger=prefix()"], "");
    done(&["design", "show", "leveling; memtable=hash-vector(buckets=100K)"], "");
}
