//! Commands that read a database while this process writes it, or that nobody may write.

#[cfg(unix)]
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{KeyspaceOptions, Options, WriteBatch};
use terrane_testkit::StopOnDrop;

#[cfg(unix)]
use crate::support::run_to_end;
use crate::support::{done, path};

#[test]
fn commands_read_a_database_that_is_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "db");
    let design = "1-leveling T=4 L0=2 base=256KiB; buffer=64KiB; table=64KiB";
    let options = Options::new().design(design.parse().unwrap()).log_segment_bytes(64 << 10);
    let db = options.log_bytes_max(1 << 20).open(&place).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    db.put("first", "here").unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0u64.. {
                if is_done.load(Ordering::SeqCst) {
                    break;
                }
                let mut batch = WriteBatch::new();
                batch.put(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), [7; 200]);
                batch.put_in(&other, (number % 1000).to_be_bytes(), [8; 200]);
                db.write(&batch).unwrap();
            }
        });
        let _stop = StopOnDrop(&is_done);
        for _ in 0..4 {
            let found = done(&["shell", "--read-only", &place, "-c", "get first"], "");
            assert_eq!(found.trim(), "here");
            assert!(done(&["verify", &place], "").starts_with("ok: "));
            done(&["dump", &place, "--keyspace", "other"], "");
            for what in ["tree", "jobs", "manifest", "deletes", "log"] {
                done(&["inspect", what, &place], "");
            }
            assert!(done(&["inspect", "key", &place, "first"], "").contains("put"));
        }
    });
}

/// Makes directories writable again, so that they can be removed.
#[cfg(unix)]
struct Writable<'a>(&'a [&'a str]);

#[cfg(unix)]
impl Drop for Writable<'_> {
    fn drop(&mut self) {
        for dir in self.0 {
            let _ = std::fs::set_permissions(dir, PermissionsExt::from_mode(0o755));
        }
    }
}

/// A mounted snapshot of a volume is the natural source of a backup, but its lock could not be taken.
#[cfg(unix)]
#[test]
fn a_database_that_may_only_be_read_is_copied_with_what_is_only_in_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let (volume, place) = (path(dir.path(), "volume"), path(dir.path(), "volume/db"));
    let db = Options::new().open(&place).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    db.put("logged", "2").unwrap();
    drop(db);
    let dirs = [volume.as_str(), place.as_str()];
    let _writable = Writable(&dirs);
    for dir in dirs {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o555)).unwrap();
    }
    for file in std::fs::read_dir(&place).unwrap() {
        std::fs::set_permissions(file.unwrap().path(), PermissionsExt::from_mode(0o444)).unwrap();
    }
    if std::fs::File::create(format!("{volume}/probe")).is_ok() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: this user may write everywhere");
        return;
    }
    let contents = "flushed\t1\nlogged\t2\n";
    let copy = path(dir.path(), "copy");
    done(&["checkpoint", &place, &copy], "");
    assert_eq!(done(&["dump", &copy], ""), contents);

    let (repository, restored) = (path(dir.path(), "repository"), path(dir.path(), "restored"));
    let (code, _, error) = run_to_end(&["backup", "create", &place, &repository], "");
    assert!(code == 1 && error.contains("--temporary"), "{code}: {error}");
    let temporary = path(dir.path(), "temporary");
    std::fs::create_dir(&temporary).unwrap();
    let create = ["backup", "create", &place, &repository, "--temporary", &temporary];
    done(&create, "");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    done(&["backup", "restore", &repository, &restored], "");
    assert_eq!(done(&["dump", &restored], ""), contents);
    // The second backup stores no table again.
    let again = done(&[&create[..], &["--json", "--after-power-loss"]].concat(), "");
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert!(again["stored_bytes"].as_u64() < again["bytes"].as_u64(), "{again}");
}
