//! `terrane stats`, next to the process that has the database open.

use terrane::Options;

use crate::support::{done, path, run_to_end};

#[test]
fn the_numbers_of_the_files_are_shown_while_the_database_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "db");
    let design = "leveling; values=separate(100)".parse().unwrap();
    let db = Options::new().design(design).open(&place).unwrap();
    for number in 0..1_000u32 {
        db.put(number.to_be_bytes(), [7; 200]).unwrap();
        db.get(number.to_be_bytes()).unwrap();
    }
    db.delete("gone").unwrap();
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.put("in the log", "only").unwrap();
    let stats = db.stats();

    let text = done(&["stats", &place], "");
    assert!(text.contains("1,000, 0 tombstones") && text.contains("in 1 table, "), "{text}");
    assert!(text.contains("1 write not in tables yet"), "{text}");
    assert!(text.contains("1,001 writes (1 delete), 1,000 gets (1,000 found)"), "{text}");
    assert!(text.contains("separated values"), "{text}");
    assert!(text.contains("Not in the files"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");

    let object: serde_json::Value =
        serde_json::from_str(&done(&["stats", &place, "--json"], "")).unwrap();
    assert_eq!((&object["schema"], &object["source"]), (&1.into(), &"files".into()));
    for metric in stats.stored_metrics() {
        if metric.name != "oldest_tombstone_micros" {
            assert_eq!(object[metric.name], serde_json::json!(metric.value), "{}", metric.name);
        }
    }
    // Numbers that only the process knows are absent, instead of 0.
    assert!(object.get("gets").is_none() && object.get("memtable_bytes").is_none());
    assert_eq!(object["writes_in_log"], 1);
    assert_eq!(object["remembered_operations"]["gets_found"], 1_000);

    let metrics = done(&["stats", &place, "--openmetrics"], "");
    let line = format!("\nterrane_table_bytes {}\n", stats.table_bytes);
    assert!(metrics.contains(&line) && metrics.ends_with("\n# EOF\n"), "{metrics}");
    assert!(!metrics.contains("terrane_gets"), "{metrics}");
}

#[test]
fn stats_of_no_database_and_of_two_formats_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "nothing");
    let (code, out, error) = run_to_end(&["stats", &place], "");
    assert_eq!((code, &out[..]), (1, ""));
    assert!(error.contains("nothing"), "{error}");
    let (code, ..) = run_to_end(&["stats", &place, "--json", "--openmetrics"], "");
    assert_eq!(code, 2);
}
