//! Damage that only a comparison of several files shows.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{done, path, run_to_end};

fn manifest(db: &Path) -> PathBuf {
    db.join(fs::read_to_string(db.join("CURRENT")).unwrap().trim_end())
}

/// Verification said "ok" and exited with 0, and a read-only shell showed an old state.
#[test]
fn a_manifest_that_lost_edits_has_the_same_words_and_exit_code_in_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put a 1\nflush\nput a 2\n");
    let manifest = manifest(Path::new(&db));
    let whole = fs::read(&manifest).unwrap();
    // The last edit and its copy.
    let mut ends = vec![0];
    while let Some(&at) = ends.last().filter(|&&at| at < whole.len()) {
        let len = u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
        ends.push(at + 2 * (16 + len));
    }
    fs::write(&manifest, &whole[..ends[ends.len() - 2]]).unwrap();
    let words = "the log knows of version";
    for args in [
        &["shell", &db, "-c", "get a"][..],
        &["shell", &db, "--read-only", "-c", "get a"],
        &["dump", &db],
        &["verify", &db],
        &["verify", &db, "--after-power-loss"],
    ] {
        let (code, out, error) = run_to_end(args, "");
        assert_eq!(code, 4, "{args:?}: {out} {error}");
        assert!(out.contains(words) || error.contains(words), "{args:?}: {out} {error}");
    }
    fs::write(&manifest, &whole).unwrap();
    assert_eq!(done(&["shell", &db, "--read-only", "-c", "get a"], ""), "2\n");
    assert!(done(&["verify", &db], "").starts_with("ok"));
    assert_eq!(done(&["shell", &db, "--after-power-loss", "-c", "get a"], ""), "2\n");
}
