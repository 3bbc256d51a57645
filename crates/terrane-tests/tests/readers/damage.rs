//! Damage is reported as damage, whether there is a writer or not.

use std::path::{Path, PathBuf};

use terrane::{Db, ErrorKind, inspect};
use terrane_testkit::StopOnDrop;

use crate::workload::options;

/// Returns the newest file with this ending.
fn newest(dir: &Path, ending: &str) -> PathBuf {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = names.filter(|path| path.to_str().unwrap().ends_with(ending));
    named.max().unwrap()
}

fn write(db: &Db, round: u32) {
    for number in 0..1000u32 {
        db.put(number.to_be_bytes(), format!("{round:0100}")).unwrap();
    }
}

/// Checks that a read-only opening and a verification report corruption in this file.
fn check_damage(dir: &Path, file: &Path) {
    let error = Db::open_read_only(dir).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().contains(name), "{error}");
    let problems = inspect::verify(dir, &mut |_| {}).unwrap().problems;
    assert!(problems.iter().any(|problem| problem.path == file), "{problems:?}");
}

#[test]
fn a_damaged_log_is_damaged_while_the_writer_appends_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().log_segment_bytes(4 << 20).open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    write(&db, 0);
    let log = newest(dir.path(), ".log");
    let mut bytes = std::fs::read(&log).unwrap();
    // Damages the last record, which no table contains.
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[end - 20] ^= 1;
    std::os::unix::fs::FileExt::write_all_at(
        &std::fs::OpenOptions::new().write(true).open(&log).unwrap(),
        &bytes[end - 20..=end - 20],
        end as u64 - 20,
    )
    .unwrap();
    // The database continues to work, because it does not read its log.
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if is_done.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                db.put("later", format!("{round}")).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let _stop = StopOnDrop(&is_done);
        while !db.contains("later").unwrap() {
            std::thread::yield_now();
        }
        check_damage(dir.path(), &log);
    });
    drop(db);
    check_damage(dir.path(), &log);
}

#[test]
fn a_missing_table_is_missing_next_to_a_writer_and_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path()).unwrap();
    write(&db, 0);
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    let table = newest(dir.path(), ".sst");
    std::fs::remove_file(&table).unwrap();
    let check = || {
        let error = Db::open_read_only(dir.path()).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(error.to_string().contains(".sst"), "{error}");
        let problems = inspect::verify(dir.path(), &mut |_| {}).unwrap().problems;
        assert!(problems.iter().any(|problem| problem.path == table), "{problems:?}");
    };
    check();
    drop(db);
    check();
}
