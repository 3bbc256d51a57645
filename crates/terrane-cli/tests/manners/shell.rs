//! Scripts of the shell.

use crate::support::{command, done, path, run_to_end};

#[test]
fn a_batch_happens_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let good = "put gone 1\nbatch\nput a 1\nput b 2\ndel gone\nend\nscan\n";
    assert_eq!(done(&["shell", &db], good), "ok\nok\na\t1\nb\t2\n");
    let (code, out, error) = run_to_end(&["shell", &db], "batch\nput c 3\nput d\nend\ncount\n");
    assert_eq!((code, &out[..]), (1, "2\n"));
    assert!(error.contains("line 3: usage: 'put KEY VALUE'"), "{error}");
    assert!(error.contains("line 4: the batch was not written"), "{error}");
    let (code, out, error) = run_to_end(&["shell", &db], "batch\nput e 5\n");
    assert_eq!((code, &out[..]), (1, ""));
    assert!(error.contains("was not written"), "{error}");
    assert_eq!(done(&["shell", &db], "batch\nput f 1\nabort\ncount\n"), "ok\n2\n");
}

#[test]
fn every_command_of_a_script_answers_in_json() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script =
        "put a 1\nget a\nget b\nput 0xff \"x\\ty\"\nscan\ncount a..b\nnonsense\ndel ..\ncount\n";
    let (code, out, _) = run_to_end(&["shell", &db, "--json"], script);
    assert_eq!(code, 1);
    assert_eq!(
        out,
        r#"{"schema":1,"ok":true}
{"schema":1,"value":"1"}
{"schema":1,"value":null}
{"schema":1,"ok":true}
{"key":"a","value":"1"}
{"key":{"hex":"ff"},"value":"x\ty"}
{"schema":1,"entries":2}
{"schema":1,"count":1}
{"schema":1,"error":"unknown command 'nonsense'; 'help' lists all commands","line":7}
{"schema":1,"ok":true}
{"schema":1,"count":0}
"#
    );
    for what in ["stats", "tree", "keyspaces"] {
        let answer = done(&["shell", &db, "--json", "-c", what], "");
        let object: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(object["schema"], 1, "{what}");
    }
}

#[test]
fn statistics_are_printed_as_open_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let text = done(&["shell", &db], "put a 1\nget a\nstats --openmetrics\n");
    let metrics = text.strip_prefix("ok\n1\n").unwrap();
    assert!(metrics.starts_with("# TYPE terrane_writes counter\n"), "{metrics}");
    assert!(metrics.contains("\nterrane_writes_total 1\n"), "{metrics}");
    assert!(metrics.ends_with("\n# EOF\n"), "{metrics}");
    let answer = done(&["shell", &db, "--json", "-c", "stats --openmetrics"], "");
    let object: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert!(object["openmetrics"].as_str().unwrap().ends_with("# EOF\n"), "{answer}");
    assert!(done(&["shell", &db, "-c", "help stats"], "").contains("stats [--openmetrics]"));
}

#[test]
fn keyspaces_are_separate() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script = "put a 1\nuse logs\nput l 1\nput m 2\ncount\nkeyspaces\n";
    assert_eq!(done(&["shell", &db], script), "ok\nok\nok\nok\n2\ndefault\nlogs\n");
    assert_eq!(done(&["dump", &db, "--keyspace", "logs"], ""), "l\t1\nm\t2\n");
    let (_, out, note) = run_to_end(&["dump", &db], "");
    assert!(out == "a\t1\n" && note.contains("logs"), "{out} {note}");
    let (code, _, error) = run_to_end(&["dump", &db, "--keyspace", "none"], "");
    assert!(code == 1 && error.contains("default, logs"), "{code} {error}");
}

#[test]
fn scans_have_ranges_limits_and_both_directions() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script = "put a 1\nput b 2\nput c 3\nput u:1 x\nput u:2 y\nput v z\n";
    done(&["shell", &db], script);
    for (line, answer) in [
        ("scan a..c", "a\t1\nb\t2\n"),
        ("scan b..=c", "b\t2\nc\t3\n"),
        ("scan ..b", "a\t1\n"),
        ("scan limit 2 reverse", "v\tz\nu:2\ty\n"),
        ("prefix u:", "u:1\tx\nu:2\ty\n"),
        ("prefix u: reverse limit 1", "u:2\ty\n"),
        ("count prefix u:", "2\n"),
        ("count x..", "0\n"),
        ("scan c..a", ""),
    ] {
        assert_eq!(done(&["shell", &db, "-c", line], ""), answer, "{line}");
    }
}

#[test]
fn names_of_other_stores_and_listings_of_keys_work() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script =
        "set a 1\ninsert b 2\nremove a\nexists a\nexists b\nkeys\nkeys b.. limit 1\n.tables\n";
    assert_eq!(done(&["shell", &db], script), "ok\nok\nok\n0\n1\nb\nb\ndefault\n");
    let keys = done(&["shell", &db, "--json", "-c", "keys"], "");
    assert_eq!(keys, "{\"schema\":1,\"key\":\"b\"}\n{\"schema\":1,\"entries\":1}\n");
    let (code, _, error) = run_to_end(&["shell", &db, "-c", "put a b c"], "");
    assert!(code == 1 && error.contains("put a 'b c'"), "{error}");
}

#[test]
fn a_shell_without_a_directory_keeps_its_keys_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let output = command(&["shell", "-c", "put a 1", "-c", "flush", "-c", "get a"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "ok\nok\n1\n");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let (code, _, error) = run_to_end(&["shell", "--read-only"], "");
    assert!(code == 2 && error.contains("<DB>"), "{error}");
}

/// A typing error in the path made a database of four MiB, and the answer was that the key is absent.
#[test]
fn a_command_that_only_reads_creates_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "none");
    for command in ["get a", "count", "scan", "tree", "stats", "options", "design", "flush"] {
        let (code, out, error) = run_to_end(&["shell", &db, "-c", command], "");
        assert_eq!((code, &out[..]), (1, ""), "{command}");
        assert!(error.contains("no database in") && error.contains(&db), "{command}: {error}");
        assert!(!dir.path().join("none").exists(), "{command}");
    }
    // Help needs none, and the first write creates it.
    let script = "help put\nget a\nput a 1\nget a\n";
    let (code, out, error) = run_to_end(&["shell", &db], script);
    assert!(code == 1 && out.ends_with("ok\n1\n"), "{code} {out}");
    assert!(error.contains("line 2: no database in"), "{error}");
    assert_eq!(done(&["shell", &db, "-c", "get a"], ""), "1\n");
    let created = path(dir.path(), "created");
    assert_eq!(done(&["shell", &created, "--create", "-c", "count"], ""), "0\n");
}

#[test]
fn the_shell_shows_and_changes_design_expiry_and_copies() {
    let dir = tempfile::tempdir().unwrap();
    let (db, copy) = (path(dir.path(), "db"), path(dir.path(), "copy"));
    let script = format!(
        "put a 1\nttl a\nttl b\nttl a 1h\nttl a\ndesign tiering T=4\ndesign\noptions\ncheckpoint '{copy}'\n"
    );
    let out = done(&["shell", &db], &script);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..4], ["ok", "(never)", "(nil)", "ok"]);
    assert!(lines[4].starts_with("59") || lines[4].starts_with("60"), "{out}");
    assert_eq!(lines[5], "ok");
    assert!(lines[6].starts_with("tiering T=4"), "{out}");
    assert!(lines[7].starts_with("durability     process"), "{out}");
    assert_eq!(done(&["shell", &copy, "-c", "get a"], ""), "1\n");
    // The database stands in the same place in all commands.
    assert!(done(&["design", "show", &db], "").contains("tiering T=4"));
    assert!(done(&["design", "show", "--db", &db], "").contains("tiering T=4"));
    let (code, _, error) = run_to_end(&["options", &db], "");
    assert!(code == 1 && error.contains("no process serves"), "{error}");
}
