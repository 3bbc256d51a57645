//! Databases from files, and files from databases.

use std::fmt::Write as _;

use crate::support::{done, path, run_to_end};

#[test]
fn all_bytes_survive_being_dumped_and_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let first = path(dir.path(), "first");
    let mut rng = terrane_testkit::Rng::new(5);
    let mut script = String::from("put '' ''\n");
    for byte in 0..=255_u8 {
        writeln!(script, "put 0x{byte:02x} 0x{:016x}", rng.bits()).unwrap();
        writeln!(script, "put 0x78{byte:02x}5c 0x{byte:02x}").unwrap();
    }
    done(&["shell", &first], &script);
    let whole = done(&["shell", &first, "-c", "scan"], "");
    assert_eq!(whole.lines().count(), 513);
    for format in ["tsv", "jsonl"] {
        let second = path(dir.path(), format);
        let dumped = done(&["dump", &first, "--format", format], "");
        assert_eq!(dumped.lines().count(), 513, "{format}");
        done(&["load", &second, "-", "--format", format], &dumped);
        assert!(done(&["shell", &second, "-c", "scan"], "") == whole, "{format}");
    }
    // A CSV file has the bytes as they are.
    let (file, third) = (path(dir.path(), "all.csv"), path(dir.path(), "third"));
    done(&["dump", &first, &file], "");
    assert!(std::fs::read(&file).unwrap().starts_with(b"key,value\n"));
    done(&["load", &third, &file], "");
    assert!(done(&["shell", &third, "-c", "scan"], "") == whole, "csv");
}

/// SIGXFSZ ended the command without a word.
#[cfg(unix)]
#[test]
fn a_dump_beyond_the_limit_for_the_size_of_files_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "dump.tsv"));
    let entries: Vec<String> = (0..5000).map(|n| format!("key{n}\tvalue{n}\n")).collect();
    done(&["load", &db, "-"], &entries.concat());
    let program = env!("CARGO_BIN_EXE_terrane");
    let script = format!("ulimit -f 16; exec '{program}' dump '{db}' '{file}'");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("File too large"), "{error}");
}

/// An expiry time far in the future, in microseconds since 1970.
const EXPIRY: u64 = 7_000_000_000_000_000;

#[test]
fn expiry_times_survive_being_dumped_and_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let first = path(dir.path(), "first");
    let header = "key\tvalue\texpires_at_micros";
    let left = format!("{header}\na\t1\t{EXPIRY}\nb\t2\t\nc\t\\\\e5\t{}\n", EXPIRY + 1);
    done(&["load", &first, "-"], &format!("{left}d\texpired\t5\n"));
    assert_eq!(done(&["dump", &first], ""), left);
    // Every command ignores an expired value.
    assert_eq!(done(&["shell", &first, "-c", "count", "-c", "count prefix d"], ""), "3\n0\n");
    assert_eq!(done(&["shell", &first, "-c", "get a", "-c", "get c"], ""), "1\n\\e5\n");
    for format in ["tsv", "csv", "jsonl"] {
        let dumped = done(&["dump", &first, "--format", format], "");
        for sorted in [&[][..], &["--sorted"]] {
            let second = path(dir.path(), &format!("{format}{}", sorted.len()));
            let load = [&["load", &second, "-", "--format", format], sorted].concat();
            done(&load, &dumped);
            assert_eq!(done(&["dump", &second], ""), left, "{format}");
        }
    }
    let (code, _, error) = run_to_end(&["dump", &first, "--format", "pairs"], "");
    assert!(code == 1 && error.contains("the value of a has an expiry time"), "{code} {error}");
    let json: serde_json::Value = serde_json::from_str(
        done(&["dump", &first, "--format", "jsonl"], "").lines().next().unwrap(),
    )
    .unwrap();
    assert_eq!(json["expires_at_micros"], EXPIRY);
}

#[test]
fn the_tree_shows_which_values_expire() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(
        &["load", &db, "-", "--sorted"],
        &format!("key\tvalue\texpires_at_micros\na\t1\t{EXPIRY}\nb\t2\t\nc\t3\t{EXPIRY}\n"),
    );
    let tree = done(&["inspect", "tree", &db], "");
    let expected = "values that expire: 2 of 3 entries, in 1 table\n  from 2191-10-2";
    assert!(tree.contains(expected), "{tree}");
    let json: serde_json::Value =
        serde_json::from_str(&done(&["inspect", "tree", &db, "--json"], "")).unwrap();
    let levels = json["levels"].as_array().unwrap();
    let runs = levels.iter().flat_map(|level| level["runs"].as_array().unwrap());
    let table = &runs.last().unwrap()["tables"][0];
    assert_eq!((&table["expiring"], &table["expire_until_micros"]), (&2.into(), &EXPIRY.into()));

    let plain = path(dir.path(), "plain");
    done(&["load", &plain, "-", "--sorted"], "a\t1\n");
    assert!(!done(&["inspect", "tree", &plain], "").contains("values that expire"));
}

#[test]
fn load_errors_name_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    for (format, input, what) in [
        ("tsv", "a\t1\n\nno tab\nb\t2\n", "line 3: expected a tab"),
        ("tsv", "a\t1\nb\tC:\\dir\n", "line 2: invalid escape '\\d'"),
        ("jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\"}\n", "line 2: missing field"),
        ("jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n[\n", "line 2: "),
        ("csv", "key,value\na,1\nb\n", "line 3: found 1 column, but line 1 has 2"),
        ("csv", "key,value\na,1\nb,2,7\n", "line 3: found 3 columns, but line 1 has 2"),
        ("csv", "key,value,ends_micros\na,1,\nb,2,soon\n", "line 3: invalid expiry time 'soon'"),
        ("tsv", "a\t1\nb\t2\\e5\n", "line 2: invalid escape '\\e'"),
    ] {
        let (code, _, error) = run_to_end(&["load", &db, "-", "--format", format], input);
        assert!(code == 1 && error.contains(what), "{code} {error}");
        // Lines before the bad one are loaded, later ones are not.
        assert_eq!(done(&["dump", &db], ""), "a\t1\n");
    }
    let long = format!("{}\tv\n", "k".repeat(70_000));
    let (code, _, error) = run_to_end(&["load", &db, "-"], &long);
    assert!(code == 1 && error.contains("line 1: the key has 68.4 KiB"), "{code} {error}");
    assert_eq!(run_to_end(&["load", &db, "file.gz"], "").0, 2);
    assert_eq!(run_to_end(&["load", &db, &path(dir.path(), "none.tsv")], "").0, 1);
    assert_eq!(
        run_to_end(&["load", &db, dir.path().to_str().unwrap(), "--format", "tsv"], "").0,
        1
    );
}

#[test]
fn a_dump_overwrites_a_file_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "all.tsv"));
    done(&["shell", &db], "put a 1\nput b 2\nput c 3\n");
    std::fs::write(&file, "precious").unwrap();
    let (code, _, error) = run_to_end(&["dump", &db, &file], "");
    assert!(code == 1 && error.contains("--force"), "{code} {error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    done(&["dump", &db, &file, "--force", "--range", "b.."], "");
    assert_eq!(std::fs::read(&file).unwrap(), b"b\t2\nc\t3\n");
    assert_eq!(done(&["dump", &db, "--prefix", "a"], ""), "a\t1\n");
    assert_eq!(run_to_end(&["dump", &db, "--format", "pairs"], "").0, 1);
    assert_eq!(run_to_end(&["dump", &db, "--range", "b"], "").0, 2);
    assert_eq!(run_to_end(&["dump", &path(dir.path(), "none")], "").0, 1);
}

#[test]
fn manual_pages_tables_and_checkpoints_are_handled_together_or_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let pages = path(dir.path(), "man");
    done(&["man", "--out", &pages], "");
    let names: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name == "terrane-bench.1") && names.len() > 20, "{names:?}");
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put a 1\nflush\nput b 2\nflush\n");
    let copy = path(dir.path(), "copy");
    let line = done(&["checkpoint", &db, &copy, "--json"], "");
    let copied: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(copied["path"], copy);
    let tables: Vec<String> = std::fs::read_dir(&copy)
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".sst"))
        .collect();
    let args = ["inspect", "table", "--json"].into_iter().chain(tables.iter().map(String::as_str));
    let lines = done(&args.collect::<Vec<_>>(), "");
    assert_eq!(lines.lines().count(), tables.len());
    let text = path(dir.path(), "text");
    std::fs::write(&text, "a text of some length, which has no footer".repeat(9)).unwrap();
    let (code, _, error) = run_to_end(&["inspect", "table", &text], "");
    assert!(code == 1 && error.contains("is not a Terrane table"), "{code} {error}");
    assert_eq!(tables.len(), 2);
}
