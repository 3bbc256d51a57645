//! Commands that read a database while this process writes it.

use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{KeyspaceOptions, Options, WriteBatch};
use terrane_testkit::StopOnDrop;

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
