//! `SWAPDB`.

use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{KeyspaceOptions, Options};
use terrane_server::Config;

use crate::commands::script;
use crate::support::TestServer;

#[test]
fn databases_are_exchanged_for_all_clients() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    script(
        &mut client,
        "set a 0 => OK
         hset h f 0 => 1
         select 1 => OK
         set a 1 => OK
         set b 1 => OK
         swapdb 0 1 => OK
         get a => 0
         hget h f => 0
         exists b => 0
         select 0 => OK
         get a => 1
         exists h => 0
         dbsize => 2
         swapdb 0 0 => OK
         get a => 1
         swapdb 0 99 => -ERR DB index is out of range
         swapdb 0 x => -ERR value is not an integer or out of range
         copy a copied db 1 => 1
         move b 1 => 1
         select 1 => OK
         mget a copied b => [0 1 1]
         multi => OK
         swapdb 0 1 => -ERR Command 'swapdb' not allowed inside a transaction
         discard => OK
         flushdb => OK
         select 0 => OK
         get a => 1",
    );
    // The keyspaces of the engine keep their names.
    assert_eq!(other.run("get a"), "1");
    assert!(server.db.get("a").unwrap().is_none());
    assert!(server.db.keyspace("db1", KeyspaceOptions::new()).unwrap().get("a").unwrap().is_some());
    // Both databases have changed for clients that watch their keys.
    for (number, expected) in [("0", "(nil)"), ("1", "(nil)"), ("2", "[PONG]")] {
        script(&mut client, &format!("select {number} => OK\n watch a => OK"));
        assert_eq!(other.run("swapdb 0 1"), "OK");
        script(&mut client, &format!("multi => OK\n ping => QUEUED\n exec => {expected}"));
    }
}

#[test]
fn exchanged_databases_stay_so_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Options::new().open(dir.path().join("db")).unwrap();
    let mut server = TestServer::of(open(), Config::default());
    let set = "set a 0 => OK
         hset h f 0 => 1
         select 9 => OK
         set a 9 => OK
         swapdb 0 9 => OK
         swapdb 1 2 => OK
         swapdb 2 1 => OK";
    script(&mut server.client(), set);
    // The log holds the writes that are not in a table yet.
    server.end();
    server.db.clone().close().unwrap();
    let mut server = TestServer::of(open(), Config::default());
    let get = "get a => 9
         exists h => 0
         select 9 => OK
         get a => 0
         hget h f => 0";
    script(&mut server.client(), get);
    server.end();
    server.db.clone().close().unwrap();
    // Number 9 is beyond this server's databases, but number 0 still selects slot 9.
    let server = TestServer::of(open(), Config { databases: 2, ..Config::default() });
    script(
        &mut server.client(),
        "get a => 9
         select 9 => -ERR DB index is out of range
         swapdb 0 1 => OK
         get a => (nil)
         select 1 => OK
         get a => 9
         flushall => OK
         dbsize => 0",
    );
}

#[test]
fn rights_follow_the_keyspace() {
    let users = "app s3cret write:*\nreport pa55 read:default";
    let config = Config { users: users.parse().unwrap(), ..Config::default() };
    let server = TestServer::with(&Options::new(), config);
    let (mut app, mut report) = (server.client(), server.client());
    script(&mut app, "auth app s3cret => OK\n set a 0 => OK");
    script(
        &mut report,
        "auth report pa55 => OK
         get a => 0
         swapdb 0 1 => -NOPERM this user may only read, and 'swapdb' writes",
    );
    assert_eq!(app.run("swapdb 0 1"), "OK");
    script(
        &mut report,
        "get a => -NOPERM this user may not use the keyspace 'db1'
         select 1 => OK
         get a => 0",
    );
}

#[test]
fn no_write_is_lost_while_databases_are_exchanged() {
    let server = TestServer::start();
    let is_over = AtomicBool::new(false);
    let written: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|number| {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || {
                    let mut client = server.client();
                    client.run(&format!("select {}", number % 2));
                    let mut count = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        assert_ne!(client.run("incr n"), "0");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let mut client = server.client();
        (0..300).for_each(|_| assert_eq!(client.run("swapdb 0 1"), "OK"));
        is_over.store(true, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let mut client = server.client();
    let mut value = |number: u64| {
        client.run(&format!("select {number}"));
        client.run("get n").parse().unwrap_or(0)
    };
    assert_eq!(value(0) + value(1), written);
}

#[test]
fn a_transaction_sees_databases_before_or_after_an_exchange() {
    let server = TestServer::start();
    script(&mut server.client(), "set x 0 => OK\n select 1 => OK\n set x 1 => OK");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || {
                    let mut client = server.client();
                    let mut replies = std::collections::BTreeSet::new();
                    while !is_over.load(Ordering::SeqCst) {
                        client.send(b"select 0\r\nmulti\r\n");
                        (0..20).for_each(|_| client.send(b"get x\r\n"));
                        client.send(b"select 1\r\nget x\r\nexec\r\n");
                        (0..24).for_each(|_| drop(client.reply()));
                        replies.insert(client.reply());
                    }
                    replies
                })
            })
            .collect();
        let mut client = server.client();
        (0..1000).for_each(|_| assert_eq!(client.run("swapdb 0 1"), "OK"));
        is_over.store(true, Ordering::SeqCst);
        let of = |first: &str, last: &str| format!("[{} OK {last}]", [first; 20].join(" "));
        for reply in readers.into_iter().flat_map(|reader| reader.join().unwrap()) {
            assert!(reply == of("0", "1") || reply == of("1", "0"), "{reply}");
        }
    });
}
