//! The guarantee of an answer: with each durability, after a crash and after a failed sync.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Storage, Survival};
use terrane::{Durability, Options};
use terrane_server::Config;

use crate::support::{TestServer, encoded};

const DIR: &str = "db";

fn failing_sync(after: u64) -> Fault {
    Fault {
        operation: Some(Operation::Sync),
        path_contains: ".log".into(),
        after,
        is_permanent: false,
        error: std::io::ErrorKind::Other,
    }
}

#[test]
fn what_a_failed_sync_leaves_undecided_is_answered_with_an_error() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).durability(Durability::Sync);
    let db = options.open(DIR).unwrap();
    let server = TestServer::of(db, Config { workers: 1, ..Config::default() });
    let mut client = server.client();
    assert_eq!(client.run("set a 1"), "OK");
    storage.set(Some(failing_sync(0)));
    // Commands that show no values, and reads before the write, keep their replies, in order.
    let requests = [
        &["get", "a"][..],
        &["set", "b", "2"],
        &["ping"],
        &["get", "b"],
        &["incr", "c"],
        &["keys", "*"],
        &["setnx", "b", "3"],
        &["echo", "x"],
    ];
    client.send(&requests.iter().flat_map(|request| encoded(request)).collect::<Vec<u8>>());
    let replies: Vec<String> = requests.iter().map(|_| client.reply()).collect();
    let lost = "-MISCONF data written or read may be lost, because it could not be synced: ";
    assert_eq!((&*replies[0], &*replies[2], &*replies[7]), ("1", "PONG", "x"));
    assert!([1, 3, 4, 5, 6].iter().all(|at| replies[*at].starts_with(lost)), "{replies:?}");
    // A transaction is one answer. Unsynced data stays in memory, so reads are refused, too.
    client.send(b"multi\r\nset d 1\r\nexec\r\nget b\r\nmulti\r\nget b\r\nexec\r\n");
    let replies: Vec<String> = (0..7).map(|_| client.reply()).collect();
    assert_eq!((&*replies[0], &*replies[1], &*replies[5]), ("OK", "QUEUED", "QUEUED"));
    assert!([2, 3, 6].iter().all(|at| replies[*at].starts_with("-MISCONF")), "{replies:?}");
    assert!(client.run("info terrane").contains("failed:1"));
    assert!(server.client().run("get a").starts_with(lost), "in another connection");
}

#[test]
fn a_synced_answer_survives_a_power_failure_also_if_it_is_that_of_a_read() {
    let memory = Arc::new(MemoryStorage::new(7));
    let options = |storage: Arc<dyn Storage>| Options::new().storage(storage);
    let db = options(Arc::clone(&memory) as _).durability(Durability::Sync).open(DIR).unwrap();
    let server = TestServer::of(db, Config { workers: 3, ..Config::default() });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || {
                    let mut client = server.client();
                    let mut count = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        let (command, expected) = match thread {
                            0 => ("incr shared".to_owned(), (count + 1).to_string()),
                            _ => (format!("set {thread} {}", count + 1), "OK".to_owned()),
                        };
                        assert_eq!(client.run(&command), expected);
                        count += 1;
                    }
                })
            })
            .collect();
        let mut reader = server.client();
        for _ in 0..30 {
            // Every value read was durable when the reply was sent.
            let seen: Vec<u64> = (0..4)
                .map(|thread| {
                    let key = if thread == 0 { "shared".to_owned() } else { thread.to_string() };
                    reader.run(&format!("get {key}")).parse().unwrap_or(0)
                })
                .collect();
            let lost = Crash::Power(Survival { percent: 0, seed: 0 });
            let image = memory.crash_point().image(lost);
            let after = options(Arc::new(image)).open(DIR).unwrap();
            for (thread, seen) in seen.iter().enumerate() {
                let key = if thread == 0 { "shared".to_owned() } else { thread.to_string() };
                let value = after.get(&key).unwrap();
                let value = value.map_or(0, |value| {
                    std::str::from_utf8(&value).unwrap().parse::<u64>().unwrap()
                });
                assert!(value >= *seen, "{key} was {seen}, and is {value} after the crash");
            }
        }
        is_over.store(true, Ordering::SeqCst);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}

#[test]
fn writes_that_arrive_together_share_a_sync() {
    let options = Options::new().storage(Arc::new(MemoryStorage::new(3)));
    let db = options.durability(Durability::Sync).open(DIR).unwrap();
    let server = TestServer::of(db, Config { workers: 1, ..Config::default() });
    let mut client = server.client();
    client.run("set a 0");
    let syncs = || server.db.stats().log_syncs;
    let before = syncs();
    let mut pipeline = Vec::new();
    for number in 0..500 {
        pipeline.extend(encoded(&["set", "a", &number.to_string()]));
    }
    client.stream.get_mut().write_all(&pipeline).unwrap();
    for _ in 0..500 {
        assert_eq!(client.reply(), "OK");
    }
    let made = syncs() - before;
    assert!((1..=20).contains(&made), "{made} syncs for 500 writes");
}

#[test]
fn a_write_in_a_thread_of_its_own_is_answered_after_its_sync() {
    let memory = Arc::new(MemoryStorage::new(9));
    let storage = FaultStorage::new(Arc::clone(&memory) as _);
    let options = Options::new().storage(Arc::new(storage.clone())).durability(Durability::Sync);
    let db = options.open(DIR).unwrap();
    let server = TestServer::of(db, Config { workers: 1, ..Config::default() });
    let mut client = server.client();
    let len = 5 << 20;
    assert_eq!(client.call(&["set", "a", &"x".repeat(len)]), "OK");
    assert_eq!(client.run("append a y"), (len + 1).to_string());
    let image = memory.crash_point().image(Crash::Power(Survival { percent: 0, seed: 0 }));
    let after = Options::new().storage(Arc::new(image)).open(DIR).unwrap();
    assert_eq!(after.get("a").unwrap().unwrap().len(), len + 1);
    storage.set(Some(failing_sync(0)));
    let lost = client.run("append a y");
    assert!(lost.starts_with("-MISCONF"), "{lost}");
    let read = server.client().run("strlen a");
    assert!(read.starts_with("-MISCONF"), "{read}");
}
