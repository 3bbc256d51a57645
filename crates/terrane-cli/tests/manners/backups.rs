//! `terrane backup`: a drill, bad input, damage, and two processes.

use std::path::Path;

use crate::support::{Talk, done, interrupt, path, run_to_end};

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&done(&[args, &["--json"]].concat(), "")).unwrap()
}

#[test]
fn a_database_is_backed_up_verified_pruned_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (db, repository) = (path(dir.path(), "db"), path(dir.path(), "repository"));
    done(&["shell", &db], "put a 1\nput b 2\nflush\n");
    let first = json(&["backup", "create", &db, &repository]);
    done(&["shell", &db], "put a 3\nput c 4\nflush\n");
    let second = json(&["backup", "create", &db, &repository, "--verify", "--rate", "100MB/s"]);
    assert_eq!(
        (&first["schema"], &first["sequence"], &second["sequence"]),
        (&1.into(), &2.into(), &4.into())
    );
    assert_eq!(first["bytes"], first["stored_bytes"]);
    assert!(second["stored_bytes"].as_u64() < second["bytes"].as_u64());
    let (first, second) = (first["backup"].as_str().unwrap(), second["backup"].as_str().unwrap());

    let listed = done(&["backup", "list", &repository], "");
    let names: Vec<&str> =
        listed.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, [first, second], "{listed}");
    let lines = done(&["backup", "list", &repository, "--json"], "");
    assert_eq!(lines.lines().count(), 2);
    let verified = done(&["backup", "verify", &repository], "");
    assert!(verified.starts_with("ok: 2 backups with"), "{verified}");

    let restored = path(dir.path(), "restored");
    done(&["backup", "restore", &repository, &restored, "--verify"], "");
    assert_eq!(done(&["dump", &restored], ""), "a\t3\nb\t2\nc\t4\n");
    let old = path(dir.path(), "old");
    // The name of a backup begins with its time.
    let time = format!(
        "{}-{}-{}T{}:{}:{}",
        &first[..4],
        &first[4..6],
        &first[6..8],
        &first[9..11],
        &first[11..13],
        &first[13..22]
    );
    done(&["backup", "restore", &repository, &old, "--at", &time], "");
    assert_eq!(done(&["dump", &old], ""), "a\t1\nb\t2\n");

    let planned = done(&["backup", "prune", &repository, "--keep-last", "1"], "");
    assert!(planned.contains(&format!("remove  {first}")), "{planned}");
    assert!(planned.contains(&format!("keep    {second}  last")), "{planned}");
    assert!(planned.contains("--yes removes them"), "{planned}");
    assert_eq!(done(&["backup", "list", &repository], "").lines().count(), 3);
    let pruned = json(&["backup", "prune", &repository, "--keep-last", "1", "--yes"]);
    assert_eq!((&pruned["removed"][0], &pruned["is_done"]), (&first.into(), &true.into()));
    assert_eq!(done(&["backup", "list", &repository], "").lines().count(), 2);
    let again = done(&["backup", "verify", &repository], "");
    assert!(again.starts_with("ok: 1 backup with") && again.lines().count() == 1, "{again}");
}

#[test]
fn bad_input_is_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let (db, repository) = (path(dir.path(), "db"), path(dir.path(), "repository"));
    let (none, new) = (path(dir.path(), "none"), path(dir.path(), "new"));
    done(&["shell", &db], "put a 1\n");
    done(&["backup", "create", &db, &repository], "");
    for (args, exit, told) in [
        (&["create", &none, &repository][..], 1, "no database in"),
        (&["create", &db, &db], 1, "is not a backup repository"),
        (&["create", &db, "s3://bucket/x"], 1, "built without object stores"),
        (&["create", &db, &repository, "--rate", "0"], 2, "positive number of bytes per second"),
        (&["list", &none], 1, "no backup repository in"),
        (&["verify", &repository, "20991231"], 1, "no backup '20991231'"),
        (&["restore", &repository, &db], 1, "is not empty"),
        (&["restore", &repository, &new, "--at", "soon"], 2, "expected a time in UTC"),
        (&["restore", &repository, &new, "--at", "2001-01-01T00:00:00Z"], 1, "no backup from 2001"),
        (
            &["restore", &repository, &new, "--at", "2001-01-01T00:00:00Z", "--backup", "x"],
            2,
            "cannot be used with",
        ),
        (&["prune", &repository], 2, "--keep-last"),
        (
            &["prune", &repository, "--keep-last", "1", "--database", "zz"],
            1,
            "no backup of database zz",
        ),
    ] {
        let (code, out, error) = run_to_end(&[&["backup"], args].concat(), "");
        let flat = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == exit && out.is_empty() && flat.contains(told), "{args:?}: {code} {error}");
    }
    assert!(!Path::new(&new).exists());
}

#[test]
fn locks_that_nobody_stores_again_are_removed_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let (db, repository) = (path(dir.path(), "db"), path(dir.path(), "repository"));
    done(&["shell", &db], "put a 1\n");
    done(&["backup", "create", &db, &repository], "");
    assert!(done(&["backup", "unlock", &repository], "").starts_with("no locks in"));
    std::fs::write(dir.path().join("repository/locks/damaged.json"), "?").unwrap();
    let (code, _, error) = run_to_end(&["backup", "create", &db, &repository], "");
    assert!(code == 5 && error.contains("unlock"), "{code} {error}");
    assert!(done(&["backup", "unlock", &repository], "").starts_with("kept    locks/damaged.json"));
    let removed = json(&["backup", "unlock", &repository, "--all"]);
    assert_eq!(
        (&removed["lock"], &removed["is_removed"]),
        (&"locks/damaged.json".into(), &true.into())
    );
    done(&["backup", "create", &db, &repository], "");
}

#[test]
fn damage_has_its_exit_code_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (db, repository) = (path(dir.path(), "db"), path(dir.path(), "repository"));
    done(&["shell", &db], "put a 1\nflush\n");
    let created = json(&["backup", "create", &db, &repository]);
    // A table that the next backup needs, too.
    let manifest = format!("repository/backups/{}.json", created["backup"].as_str().unwrap());
    let manifest = std::fs::read_to_string(dir.path().join(manifest)).unwrap();
    let manifest: serde_json::Value =
        serde_json::from_str(manifest.lines().next().unwrap()).unwrap();
    let files = manifest["files"].as_array().unwrap();
    let table = files.iter().find(|file| file["xxh3"].is_string()).unwrap();
    let hash = table["sha256"].as_str().unwrap();
    let name = format!("{hash}-{}", table["bytes"]);
    std::fs::write(dir.path().join("repository/objects").join(&hash[..2]).join(&name), "other")
        .unwrap();
    let (code, out, _) = run_to_end(&["backup", "verify", &repository], "");
    assert!(code == 4 && out.contains(&name), "{code} {out}");
    assert!(out.contains(created["backup"].as_str().unwrap()), "{out}");
    let new = path(dir.path(), "new");
    let (code, _, error) = run_to_end(&["backup", "restore", &repository, &new], "");
    assert!(code == 4 && error.contains("cannot be restored"), "{code} {error}");
    let (code, _, error) = run_to_end(&["shell", &new, "-c", "count"], "");
    assert!(code == 1 && error.contains("unfinished"), "{code} {error}");
    done(&["backup", "create", &db, &repository, "--verify-all"], "");
    let verified = done(&["backup", "verify", &repository], "");
    assert!(verified.starts_with("ok: 2 backups"), "{verified}");
    done(&["backup", "restore", &repository, &path(dir.path(), "newer")], "");
}

#[cfg(unix)]
#[test]
fn an_interrupted_backup_leaves_nothing_beside_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let (db, repository) = (path(dir.path(), "db"), path(dir.path(), "repository"));
    let value = "x".repeat(1000);
    let lines: String = (0..500).map(|key| format!("{key}\t{value}{key}\n")).collect();
    done(&["load", &db, "-"], &lines);
    let slow = ["backup", "create", &db, &repository, "--rate", "10KB/s"];
    let mut child = Talk::with(&slow, dir.path());
    // A file is in `tmp` while it is copied.
    let tmp = dir.path().join("repository/tmp");
    while std::fs::read_dir(&tmp).map_or(0, Iterator::count) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(child.child.try_wait().unwrap().is_none());
    }
    interrupt(&child.child);
    assert_eq!(child.child.wait().unwrap().code(), Some(130));
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(done(&["backup", "list", &repository], "").lines().count(), 1);
    done(&["backup", "create", &db, &repository], "");
}

#[cfg(unix)]
#[test]
fn a_database_in_use_is_backed_up_if_its_process_serves_a_socket() {
    let dir = tempfile::tempdir().unwrap();
    let (name, repository) = (path(dir.path(), "db"), path(dir.path(), "repository"));
    let db = terrane::Db::open(&name).unwrap();
    db.put("a", "1").unwrap();
    let create = ["backup", "create", &name, &repository];
    let (code, _, error) = run_to_end(&create, "");
    assert!(code == 5 && error.contains("process"), "{code} {error}");
    let socket = terrane_control::ControlSocket::serve(&db).unwrap();
    done(&create, "");
    drop(socket);
    db.put("b", "2").unwrap();
    let new = path(dir.path(), "new");
    done(&["backup", "restore", &repository, &new], "");
    assert_eq!(done(&["dump", &new], ""), "a\t1\n");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}
