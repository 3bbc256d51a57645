//! `MULTI`, `EXEC`, `WATCH`, and commands that read and write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::TestServer;

#[test]
fn commands_between_multi_and_exec_happen_at_once_and_see_each_other() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.run("set expiring 1 ex 100");
    assert_eq!(client.run("multi"), "OK");
    for command in [
        "set a 1",
        "incr a",
        "get a",
        "lpop a",
        "set b x ex 100",
        "ttl b",
        "set expiring 2 keepttl",
        "ttl expiring",
        "incr b",
        "del a",
        "exists a",
        "keys *",
        "dbsize",
        "select 1",
        "set c 1",
        "mget a c",
    ] {
        let reply = client.run(command);
        if command == "lpop a" {
            assert!(reply.starts_with("-ERR unknown command"), "{reply}");
            assert!(client.run("exec").starts_with("-EXECABORT"));
            assert_eq!(client.run("multi"), "OK");
        } else {
            assert_eq!(reply, "QUEUED", "{command}");
        }
        assert_eq!(other.run("exists a b c"), "0");
    }
    assert_eq!(
        client.run("exec"),
        "[OK 100 OK 100 -ERR value is not an integer or out of range 0 0 [b expiring] 2 OK OK [(nil) 1]]"
    );
    assert_eq!(client.run("get c"), "1", "the database is selected after the transaction too");
    assert_eq!(other.run("ttl b"), "100");
}

#[test]
fn a_watched_key_that_changes_fails_exec() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.run("mset k 1 j 1");
    client.run("set expiring 1 px 30");
    // The change, and whether EXEC fails.
    for (watched, change, fails) in [
        ("k", "set k 2", true),
        ("k", "set k 2 nx", false),
        ("k", "get k", false),
        ("k", "set j 2", false),
        ("k j", "del j none", true),
        ("new", "append new x", true),
        ("k", "mset a 1 k 2", true),
        ("k", "rename k l", true),
        ("k", "set k 1", true),
        ("missing", "flushdb", false),
        ("k", "set k 1", true),
        ("missing k", "flushall", true),
        ("expiring", "ping", true),
    ] {
        client.run("set expiring 1 px 30");
        assert_eq!(client.run(&format!("watch {watched}")), "OK");
        other.run(change);
        std::thread::sleep(Duration::from_millis(if watched == "expiring" { 50 } else { 0 }));
        client.run("multi");
        client.run("set done 1");
        let expected = if fails { "(nil)" } else { "[OK]" };
        assert_eq!(client.run("exec"), expected, "{watched}, {change}");
        client.run("multi");
        assert_eq!(client.run("exec"), "[]", "the watch has ended");
    }
    client.run("watch k");
    other.run("set k 3");
    client.run("unwatch");
    client.run("multi");
    assert_eq!(client.run("exec"), "[]");
    client.run("watch k j");
    client.run("multi");
    for command in ["set k 3", "unwatch", "get k"] {
        assert_eq!(client.run(command), "QUEUED");
    }
    assert_eq!(client.run("exec"), "[OK OK 3]", "EXEC holds the locks of the watched keys");
    other.run("set j 4");
    client.run("multi");
    assert_eq!(client.run("exec"), "[]");
    client.run("watch k");
    other.run("select 1");
    other.run("set k 3");
    client.run("multi");
    assert_eq!(client.run("exec"), "[]", "the key of another database changed");
    client.run("watch k");
    client.run("set k 4");
    client.run("multi");
    assert_eq!(client.run("exec"), "(nil)", "changes of the client itself count");
}

#[test]
fn misuse_of_transactions_is_named() {
    let server = TestServer::start();
    let mut client = server.client();
    for (command, expected) in [
        ("exec", "-ERR EXEC without MULTI"),
        ("discard", "-ERR DISCARD without MULTI"),
        ("multi", "OK"),
        ("multi", "-ERR MULTI calls can not be nested"),
        ("watch a", "-ERR WATCH inside MULTI is not allowed"),
        ("debug sleep 1", "-ERR Command 'debug' not allowed inside a transaction"),
        ("exec", "-EXECABORT Transaction discarded because of previous errors."),
        ("multi", "OK"),
        ("set a 1", "QUEUED"),
        ("discard", "OK"),
        ("get a", "(nil)"),
        ("multi", "OK"),
        ("get", "-ERR wrong number of arguments for 'get' command"),
        ("exec", "-EXECABORT Transaction discarded because of previous errors."),
    ] {
        assert_eq!(client.run(command), expected, "{command}");
    }
}

#[test]
fn counters_lose_no_increment_among_connections_and_transactions() {
    let server = TestServer::start();
    let rounds = 300;
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for _ in 0..rounds {
                    match thread % 3 {
                        0 => drop(client.run("incr n")),
                        1 => {
                            client.send(b"multi\r\nincr n\r\nincr m\r\nexec\r\n");
                            for _ in 0..4 {
                                client.reply();
                            }
                        }
                        // Optimistic: read, then set unless the key has changed.
                        _ => loop {
                            client.run("watch n");
                            let value: i64 = client.run("get n").parse().unwrap_or(0);
                            client.run("multi");
                            client.run(&format!("set n {}", value + 1));
                            if client.run("exec") != "(nil)" {
                                break;
                            }
                        },
                    }
                }
            });
        }
    });
    let mut client = server.client();
    assert_eq!(client.run("get n"), (6 * rounds).to_string());
    assert_eq!(client.run("get m"), (2 * rounds).to_string());
}

#[test]
fn transactions_that_read_many_keys_succeed_among_writers() {
    let server = TestServer::start();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let mut client = server.client();
                for number in 0.. {
                    client.run(&format!("set {writer}:{} {number}", number % 1000));
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        let mut client = server.client();
        while client.run("dbsize") != "2000" {}
        let mut failed = Vec::new();
        for reads in ["dbsize", "scan 0 count 2000", "keys *", "mget 0:1 0:2 1:1 1:2", "get 0:7"] {
            for _ in 0..20 {
                let request = format!("multi\r\n{reads}\r\nset done 1\r\nexec\r\n");
                client.send(request.as_bytes());
                let replies: Vec<String> = (0..4).map(|_| client.reply()).collect();
                if !replies[3].ends_with(" OK]") {
                    failed.push(replies);
                }
            }
        }
        is_over.store(true, Ordering::SeqCst);
        assert!(failed.is_empty(), "{failed:?}");
    });
}
