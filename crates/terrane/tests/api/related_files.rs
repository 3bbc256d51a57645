//! Damage that only several files show together: opening for writing, opening read-only and
//! verification refuse it with the same words.

use std::fs;
use std::path::{Path, PathBuf};

use terrane::{Db, ErrorKind, KeyspaceOptions, OpenMode, Options, inspect};

/// Returns the frame pairs of a manifest: each edit with its copy.
fn frame_pairs(manifest: &[u8]) -> Vec<Vec<u8>> {
    let (mut pairs, mut at) = (Vec::new(), 0);
    while at < manifest.len() {
        let len = u32::from_le_bytes(manifest[at + 8..at + 12].try_into().unwrap()) as usize;
        let end = at + 2 * (16 + len);
        pairs.push(manifest[at..end].to_vec());
        at = end;
    }
    pairs
}

fn manifest_path(dir: &Path) -> PathBuf {
    let name = fs::read_to_string(dir.join("CURRENT")).unwrap();
    dir.join(name.trim_end())
}

/// Checks that all three ways to read a database refuse it, and returns their words.
fn refused(dir: &Path) -> String {
    let error = Db::open_read_only(dir).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let text = error.to_string();
    let problems = inspect::verify(dir, &mut |_| {}).unwrap().problems;
    let reported: Vec<String> = problems.iter().map(|problem| problem.what.clone()).collect();
    let found = reported.iter().any(|what| {
        let (part, detail) = what.split_once(": ").unwrap_or((what, ""));
        text.starts_with(part) && text.contains(&format!(": {detail}; restore"))
    });
    assert!(found, "verification reports {reported:?}, and not '{text}'");
    let writing = Options::new().open_mode(OpenMode::MustExist).open(dir).unwrap_err();
    assert_eq!(writing.to_string(), text);
    assert_eq!(writing.kind(), ErrorKind::Corruption);
    text
}

/// Verification said that such a database is whole, and opening read-only showed an old state of
/// it without a keyspace.
#[test]
fn a_manifest_that_lost_its_last_edits_is_refused_in_every_way() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let db = Db::open(&dir).unwrap();
    db.put("a", "1").unwrap();
    for name in ["other", "third"] {
        let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        keyspace.put("b", "2").unwrap();
    }
    db.flush().unwrap();
    drop(db);
    let path = manifest_path(&dir);
    let whole = fs::read(&path).unwrap();
    let pairs = frame_pairs(&whole);
    assert!(pairs.len() > 4, "{}", pairs.len());
    for kept in 1..pairs.len() {
        fs::write(&path, pairs[..kept].concat()).unwrap();
        let text = refused(&dir);
        assert!(text.contains("corrupt manifest"), "{kept}: {text}");
    }
    fs::write(&path, whole).unwrap();
    assert!(inspect::verify(&dir, &mut |_| {}).unwrap().problems.is_empty());
    let db = Db::open_read_only(&dir).unwrap();
    assert_eq!(db.keyspaces().len(), 3);
}

#[test]
fn a_missing_table_and_a_short_one_are_refused_in_every_way() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let db = Db::open(&dir).unwrap();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    let names = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let table = names.into_iter().find(|path| path.extension().is_some_and(|end| end == "sst"));
    let table = table.unwrap();
    let whole = fs::read(&table).unwrap();
    fs::write(&table, &whole[..whole.len() - 1]).unwrap();
    assert!(refused(&dir).contains("bytes long, and was written with"));
    fs::remove_file(&table).unwrap();
    assert!(refused(&dir).contains("the file is missing"));
}
