//! The limit of the process for the size of a file. SIGXFSZ ended a process that wrote behind it.

use std::path::Path;
use std::process::Command;

use terrane_backup::{
    CheckpointWith, CreateOptions, Directory, RestoreOptions, Which, create, restore,
};

use crate::support::back_up;

/// The directory of the files of [`under_a_limit`], in the process that has the limit.
const DIR: &str = "TERRANE_BACKUP_LIMITS_DIR";

/// What a process does whose files may have 64 KiB at most, or less.
#[test]
fn under_a_limit() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let expect = |failed: Result<(), terrane_backup::Error>| {
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("bytes that the process may write to a file"), "{error}");
    };
    let checkpoint = CheckpointWith::new(dir.join("db"), |target: &Path| {
        Ok(std::fs::rename(dir.join("checkpoint"), target)?)
    });
    let second = Directory::new(dir.join("second"));
    expect(create(&checkpoint, &second, &CreateOptions::new()).map(drop));
    // Nothing incomplete is left.
    assert_eq!(std::fs::read_dir(second.path().join("tmp")).unwrap().count(), 0);
    let first = Directory::new(dir.join("first"));
    let target = dir.join("restored");
    expect(restore(&first, &Which::Latest, &target, &RestoreOptions::new()).map(drop));
}

#[test]
fn files_beyond_the_limit_for_their_size_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let db = terrane::Db::open(dir.path().join("db")).unwrap();
    let mut rng = terrane_testkit::Rng::new(1);
    for key in 0..1000_u32 {
        let value: Vec<u8> = (0..40).flat_map(|_| rng.bits().to_be_bytes()).collect();
        db.put(key.to_be_bytes(), value).unwrap();
    }
    db.flush().unwrap();
    back_up(&db, &Directory::new(dir.path().join("first")));
    db.checkpoint(dir.path().join("checkpoint")).unwrap();
    db.close().unwrap();
    let mut shell = Command::new("sh");
    // Shells count blocks of 512 or 1024 bytes.
    shell.args(["-c", "ulimit -f 64; exec \"$0\" limits::under_a_limit --exact"]);
    let output = shell.arg(std::env::current_exe().unwrap()).env(DIR, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{}: {text}", output.status);
    // Without the limit the restore goes on where it ended.
    let first = Directory::new(dir.path().join("first"));
    let target = dir.path().join("restored");
    restore(&first, &Which::Latest, &target, &RestoreOptions::new().verify()).unwrap();
    assert_eq!(terrane::Db::open(&target).unwrap().iter().unwrap().count(), 1000);
}
