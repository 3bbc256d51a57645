//! Files of other programs: no row is lost in silence.

use std::io::Write;
use std::process::Command;

use terrane_testkit::wait_until;

use crate::support::{command, done, path, run, run_to_end};

/// Populations became times in 1970: all rows were "loaded", and none was visible.
#[test]
fn a_column_of_numbers_does_not_make_rows_invisible() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "cities.csv"));
    std::fs::write(&file, "name,country,population\nLisbon,PT,517802\nPorto,PT,231800\n").unwrap();
    let (code, _, error) = run_to_end(&["load", &db, &file], "");
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("line 1: found 3 columns") && error.contains("--key 1"), "{error}");
    let (code, _, error) =
        run_to_end(&["load", &db, &file, "--key", "name", "--value", "population"], "");
    assert_eq!(code, 0, "{error}");
    assert!(
        error.starts_with("loaded 2 entries") && error.contains("the header in line 1"),
        "{error}"
    );
    assert_eq!(done(&["dump", &db], ""), "Lisbon\t517802\nPorto\t231800\n");
    // An expiry time is visible as such.
    let args =
        ["load", &db, &file, "--key", "name", "--value", "country", "--expiry", "population"];
    let (_, _, error) = run_to_end(&args, "");
    assert!(error.contains("2 entries have already expired and are not visible"), "{error}");
    let json: serde_json::Value =
        serde_json::from_str(&done(&[&args[..], &["--json"]].concat(), "")).unwrap();
    assert_eq!((&json["entries"], &json["expired"]), (&2.into(), &2.into()));
}

#[test]
fn a_stopped_load_names_the_line_to_go_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "all.csv"));
    let whole = |bad: &str| format!("key,value\na,1\nb,2\n{bad}\nd,4\ne,5\n");
    std::fs::write(&file, whole("c,\"5 inch")).unwrap();
    let (code, _, error) = run_to_end(&["load", &db, &file], "");
    assert_eq!(code, 1, "{error}");
    for part in ["loaded 2 entries", "--from-line 4", "the quote opened in line 4 is not closed"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(done(&["dump", &db], ""), "a\t1\nb\t2\n");
    std::fs::write(&file, whole("c,\"5\"\" inch\"")).unwrap();
    let (_, _, error) = run_to_end(&["load", &db, &file, "--from-line", "4"], "");
    assert!(error.starts_with("loaded 3 entries") && error.contains("2 earlier rows"), "{error}");
    assert_eq!(done(&["dump", &db], ""), "a\t1\nb\t2\nc\t5\" inch\nd\t4\ne\t5\n");
}

#[test]
fn files_of_other_systems_are_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let utf_16: Vec<u8> =
        "\u{feff}name;size\r\ncaf\u{e9};5\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let excel = ["load", &db, "-", "--format", "csv", "--delimiter", ";", "--header"];
    assert!(run(&excel, &utf_16).status.success());
    assert_eq!(done(&["dump", &db], ""), "caf\u{e9}\t5\n");
    for (args, input, expected) in [
        (&["--keys-only"][..], "pear\napple\n", "apple\t\npear\t\n"),
        (&["--raw"], "C:\\new\t\\N\n", "C:\\\\new\t\\\\N\n"),
        (&["--format", "jsonl", "--key", "id", "--value", "*"], "{\"id\":7}\n", "7\t{\"id\":7}\n"),
        (&["--null", "skip"], "a\t\\N\nb\t1\n", "b\t1\n"),
    ] {
        let db = path(dir.path(), args[args.len() - 1]);
        done(&[&["load", &db, "-"], args].concat(), input);
        assert_eq!(done(&["dump", &db], ""), expected, "{args:?}");
    }
    for args in [
        &["--format", "pairs", "--key", "1"][..],
        &["--format", "csv", "--raw"],
        &["--format", "jsonl", "--header"],
        &["--no-header", "--key", "name"],
        &["--encoding", "latin-9000"],
        &["--delimiter", "ab"],
    ] {
        assert_eq!(run_to_end(&[&["load", &db, "-"], args].concat(), "").0, 2, "{args:?}");
    }
}

#[test]
fn dumps_have_keys_only_raw_lines_and_devices() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put a 'C:\\new'\nput b 2\n");
    assert_eq!(done(&["dump", &db, "--keys-only"], ""), "a\nb\n");
    assert_eq!(done(&["dump", &db, "--keys-only", "--format", "csv"], ""), "key\na\nb\n");
    assert_eq!(done(&["dump", &db, "--raw"], ""), "a\tC:\\new\nb\t2\n");
    done(&["shell", &db], "put b 0x0a\n");
    let (code, _, error) = run_to_end(&["dump", &db, "--raw"], "");
    assert!(code == 1 && error.contains("the entry of b has a tab, a line end"), "{code} {error}");
    assert_eq!(run_to_end(&["dump", &db, "--raw", "--format", "csv"], "").0, 2);
    if cfg!(unix) {
        done(&["dump", &db, "/dev/null", "--force"], "");
    }
}

#[test]
fn an_interrupted_load_says_what_it_loaded() {
    for signal in ["-INT", "-TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let db = path(dir.path(), "db");
        let mut child = command(&["load", &db, "-"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\t1\nb\t2\nc").unwrap();
        let is_loaded = || run(&["shell", &db, "--read-only", "-c", "count"], b"").stdout == b"2\n";
        wait_until(is_loaded, || "the load never writes".into());
        assert!(
            Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{error}");
        let expected = "interrupted while loading -; loaded 2 entries; go on with --from-line 3\n";
        assert_eq!(error, expected, "{signal}");
        drop(stdin);
    }
}
