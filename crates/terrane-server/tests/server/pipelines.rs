//! Clients that send many requests before they read, and clients that end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use terrane::{Durability, Options};
use terrane_server::Config;

use crate::support::{TestServer, encoded};

/// Returns a number from `INFO`.
fn number(info: &str, name: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn a_client_that_ends_its_side_is_answered_and_closed() {
    let server = TestServer::start();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(b"ping\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut replies = Vec::new();
        stream.read_to_end(&mut replies).unwrap();
        assert_eq!(replies, b"+PONG\r\n");
    }
}

#[test]
fn everything_that_was_sent_before_the_end_is_done() {
    let server = TestServer::start();
    let count = 50_000;
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        writer.write_all(&encoded(&["incr", "n"]).repeat(count)).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    thread.join().unwrap();
    assert!(replies.ends_with(format!(":{count}\r\n").as_bytes()));
    assert_eq!(server.client().run("get n"), count.to_string());
}

#[test]
fn requests_are_read_no_faster_than_they_are_answered() {
    let server = TestServer::start();
    let (mut fast, mut other) = (server.client(), server.client());
    fast.send(b"client reply off\r\n");
    let mut writer = fast.stream.get_ref().try_clone().unwrap();
    let count = 500_000;
    let thread = std::thread::spawn(move || {
        let batch = b"set a 1\r\n".repeat(1000);
        for _ in 0..count / 1000 {
            writer.write_all(&batch).unwrap();
        }
    });
    let begun = Instant::now();
    loop {
        let info = other.run("info");
        let buffers = number(&info, "client_buffers:");
        assert!(buffers <= 256 << 10, "{buffers} bytes were read and not processed");
        if number(&info, "total_commands_processed:") > count {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    thread.join().unwrap();
}

#[test]
fn writes_without_replies_are_synced_and_change_no_reply_of_others() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).durability(Durability::Sync);
    let db = options.open("db").unwrap();
    let server = TestServer::of(db, Config { workers: 1, ..Config::default() });
    let (mut silent, mut other) = (server.client(), server.client());
    assert_eq!(other.run("set a 0"), "OK");
    silent.send(b"client reply off\r\n");
    let syncs = || server.db.stats().log_syncs;
    let before = syncs();
    for number in 1..=10_u64 {
        silent.send_command(&["set", "a", &number.to_string()]);
        let begun = Instant::now();
        while syncs() < before + number {
            assert!(begun.elapsed() < Duration::from_secs(20), "the write is not synced");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    storage.set(Some(Fault {
        operation: Some(Operation::Sync),
        path_contains: ".log".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::Other,
    }));
    other.send(b"ping\r\nset b 1\r\necho 10\r\n");
    assert_eq!(other.reply(), "PONG");
    assert!(other.reply().starts_with("-MISCONF"));
    assert_eq!(other.reply(), "10");
}
