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
