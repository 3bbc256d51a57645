//! Databases in use by other processes, paths without a database, and compactions.

use std::path::Path;

use crate::support::{Talk, done, path, run_to_end};

#[test]
fn a_database_in_use_can_be_read_but_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut shell = Talk::with(&["shell", &db, "--no-control"], dir.path());
    shell.say("put a 1");
    assert_eq!(shell.answer(), "ok");
    for args in [
        &["shell", &db, "-c", "count"][..],
        &["compact", &db],
        &["checkpoint", &db, &path(dir.path(), "copy")],
        &["load", &db, "-"],
        &["cs265", "--db", &db],
        &["design", "set", &db, "tiering"],
    ] {
        let (code, _, error) = run_to_end(args, "");
        assert_eq!(code, 5, "{args:?}: {error}");
        assert!(error.contains(&format!("process {}", shell.child.id())), "{error}");
    }
    assert_eq!(done(&["dump", &db], ""), "a\t1\n");
    assert_eq!(done(&["shell", &db, "--read-only", "-c", "get a"], ""), "1\n");
    let (code, _, error) = run_to_end(&["shell", &db, "--read-only", "-c", "put a 2"], "");
    assert!(code == 1 && error.contains("read-only"), "{code} {error}");
    let tree = done(&["inspect", "tree", &db], "");
    let memtable = tree.lines().find(|line| line.starts_with("memtable")).unwrap();
    assert!(memtable.ends_with(" 1"), "{tree}");
}

/// An operator that only the application knows.
#[derive(Debug)]
struct Own;

impl terrane::MergeOperator for Own {
    fn name(&self) -> &str {
        "app.own"
    }

    fn combine(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].concat())
    }
}

#[test]
fn a_database_with_an_operator_of_its_application_is_looked_after() {
    let dir = tempfile::tempdir().unwrap();
    let (db, copy) = (path(dir.path(), "db"), path(dir.path(), "copy"));
    let options = || terrane::Options::new().merge_operator(Own);
    let opened = options().open(&db).unwrap();
    let own = opened.keyspace("own", terrane::KeyspaceOptions::new()).unwrap();
    own.set_merge_operator("app.own").unwrap();
    own.put("k", "1").unwrap();
    own.merge("k", "2").unwrap();
    own.merge("alone", "3").unwrap();
    opened.put("x", "y").unwrap();
    drop((own, opened));
    for args in [
        &["stats", &db][..],
        &["keyspace", "list", &db],
        &["inspect", "tree", &db, "--keyspace", "own"],
        &["verify", &db],
        &["checkpoint", &db, &copy],
        &["compact", &db],
        &["shell", &db, "--read-only", "-c", "get x"],
        &["design", "set", &db, "tiering"],
    ] {
        done(args, "");
    }
    assert_eq!(done(&["dump", &copy], ""), "x\ty\n");
    let (code, out, error) = run_to_end(&["dump", &db, "--keyspace", "own"], "");
    assert!(code == 1 && out == "alone\t3\n", "{code} {out}");
    assert!(error.contains("key 'k', which app.own cannot combine"), "{error}");
    done(&["keyspace", "rename", &db, "own", "other"], "");
    let opened = options().open(&db).unwrap();
    let own = opened.keyspace("other", terrane::KeyspaceOptions::new()).unwrap();
    assert_eq!(own.get("k").unwrap().unwrap(), b"12");
}

#[test]
fn compacting_a_range_leaves_no_old_version_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put a 1\nput b 1\nflush\nput a 2\ndel b\nput c 3\nflush\n");
    let tree = |db: &str| -> serde_json::Value {
        serde_json::from_str(&done(&["inspect", "tree", db, "--json"], "")).unwrap()
    };
    assert_eq!(tree(&db)["tables"], 2);
    let told_json = done(&["compact", &db, "--json"], "");
    let compacted: serde_json::Value = serde_json::from_str(&told_json).unwrap();
    assert_eq!((&compacted["schema"], &compacted["tables"]), (&1.into(), &1.into()));
    assert_eq!(tree(&db)["tables"], 1);
    assert_eq!(done(&["dump", &db], ""), "a\t2\nc\t3\n");
    done(&["compact", &db, "a", "c"], "");
    for bad in [&["compact", &db, "a"][..], &["compact", &db, "'a", "c"], &["compact"]] {
        assert_eq!(run_to_end(bad, "").0, 2, "{bad:?}");
    }
    assert_eq!(run_to_end(&["compact", &path(dir.path(), "none")], "").0, 1);
}

#[test]
fn paths_without_a_database_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (none, file) = (path(dir.path(), "none"), path(dir.path(), "file"));
    std::fs::write(&file, "text").unwrap();
    for place in [&none, &file] {
        for args in [
            &["verify", place][..],
            &["dump", place],
            &["compact", place],
            &["repair", place],
            &["checkpoint", place, &path(dir.path(), "copy")],
            &["inspect", "tree", place],
            &["inspect", "manifest", place],
            &["inspect", "log", place],
            &["shell", place, "--read-only", "-c", "count"],
        ] {
            let (code, out, error) = run_to_end(args, "");
            assert!(code == 1 && out.is_empty(), "{args:?}: {code} {out} {error}");
            assert!(error.starts_with("error: ") && error.contains(place), "{args:?}: {error}");
        }
    }
    assert_eq!(run_to_end(&["inspect", "table", &file], "").0, 1);
    assert!(!Path::new(&none).exists());
    assert!(!Path::new(&path(dir.path(), "copy")).exists());
}

#[test]
fn commands_find_a_log_that_is_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (db, wal) = (path(dir.path(), "db"), path(dir.path(), "wal"));
    terrane::Options::new().log_dir((&wal).into()).open(&db).unwrap().put("a", "1").unwrap();
    let is_segment = |name: &std::path::PathBuf| name.extension().is_some_and(|end| end == "log");
    let segments = |dir: &str| {
        let entries = std::fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(is_segment).count()
    };
    assert_eq!((segments(&db), segments(&wal)), (0, 1));
    assert!(done(&["inspect", "log", &db], "").contains("000001.log"));
    assert!(done(&["inspect", "key", &db, "a"], "").contains("log"));
    done(&["verify", &db], "");
    assert_eq!(done(&["shell", &db, "--read-only", "-c", "get a"], ""), "1\n");
    let (copy, repaired) = (path(dir.path(), "copy"), path(dir.path(), "repaired"));
    done(&["checkpoint", &db, &copy], "");
    done(&["repair", &db, &repaired], "");
    for whole in [&db, &copy, &repaired] {
        assert_eq!(done(&["dump", whole], ""), "a\t1\n", "{whole}");
    }
    std::fs::rename(&wal, path(dir.path(), "away")).unwrap();
    for args in [&["dump", &db][..], &["inspect", "log", &db], &["verify", &db]] {
        let (code, output, error) = run_to_end(args, "");
        let words = output + &error;
        assert!(code != 0 && words.contains("log_dir"), "{args:?} {code} {words}");
    }
}

/// Each database of a benchmark has to leave the directory to the next one.
#[test]
fn benchmarks_leave_no_log_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let wal = path(dir.path(), "wal");
    let flags = ["--log-dir", &wal, "--design", "tiering", "--design", "leveling"];
    let bench = ["bench", "--num", "2000", "--workload", "fillrandom", "--repeat", "2"];
    done(&[&bench[..], &flags].concat(), "");
    assert_eq!(std::fs::read_dir(&wal).unwrap().count(), 0);
    let stability = ["stability", "--records", "2000", "--testing", "0.3", "--running", "0.3"];
    done(&[&stability[..], &flags].concat(), "");
    assert_eq!(std::fs::read_dir(&wal).unwrap().count(), 0);
}

#[test]
fn keyspaces_are_listed_renamed_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put d 1\nuse typo\nput a 1\nput b 2\nuse 'two words'\n");
    let list = done(&["keyspace", "list", &db], "");
    let rows: Vec<Vec<&str>> =
        list.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows[0], ["keyspace", "entries", "tables"]);
    assert_eq!((&rows[1][..2], &rows[3][..2]), (&["default", "1"][..], &["typo", "2"][..]));
    assert!(list.contains("'two words'"), "{list}");
    let (code, out, told) = run_to_end(&["keyspace", "rename", &db, "typo", "users"], "");
    assert_eq!((code, &*out, &*told), (0, "", "renamed keyspace typo to users\n"));
    assert_eq!(done(&["dump", &db, "--keyspace", "users"], ""), "a\t1\nb\t2\n");
    let (code, out, told) = run_to_end(&["keyspace", "drop", &db, "two words"], "");
    assert_eq!((code, &*out), (0, ""));
    assert_eq!(told, "dropped keyspace 'two words' with 0 B of tables\n");
    let json = done(&["keyspace", "list", &db, "--json"], "");
    let names: Vec<String> = json
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["keyspace"].to_string()
        })
        .collect();
    assert_eq!(names, ["\"default\"", "\"users\""]);
    for (args, hint) in [
        (&["drop", &db, "missing"][..], "existing keyspaces: default, users"),
        (&["rename", &db, "missing", "x"], "existing keyspaces: default, users"),
        (&["rename", &db, "users", "default"], "another keyspace has"),
        (&["drop", &db, "default"], "the default keyspace cannot be dropped"),
        (&["rename", &db, "default", "x"], "the default keyspace cannot be renamed"),
        (&["list", "missing"], "no database in 'missing'"),
    ] {
        let (code, _, error) = run_to_end(&[&["keyspace"], args].concat(), "");
        assert!(code == 1 && error.contains(hint) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn the_shell_renames_and_drops_keyspaces() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script = "use a\nput k 1\nrename a b\nput l 2\ncount\nuse c\ndrop c\nput d 0\nkeyspaces\n";
    assert_eq!(done(&["shell", &db], script), "ok\nok\nok\nok\n2\nok\nok\nok\ndefault\nb\n");
    assert_eq!(done(&["dump", &db], ""), "d\t0\n");
    for (line, hint) in [("rename b", "usage"), ("drop missing", "existing keyspaces")] {
        let (code, out, error) = run_to_end(&["shell", &db, "-c", line], "");
        assert!(code == 1 && (out + &error).contains(hint), "{line}: {error}");
    }
}
