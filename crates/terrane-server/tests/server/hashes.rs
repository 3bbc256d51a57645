//! Hashes: every command, with strings alongside, in transactions, and the stored data.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrane::{KeyspaceOptions, Options};
use terrane_server::Config;

use crate::commands::script;
use crate::support::TestServer;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn fields() {
    let server = TestServer::start();
    script(
        &mut server.client(),
        "hset h a 1 b 2 a 3 => 2
         hget h a => 3
         hset h a 4 c 5 => 1
         hlen h => 3
         hgetall h => [a 4 b 2 c 5]
         hkeys h => [a b c]
         hvals h => [4 2 5]
         hmget h a x c => [4 (nil) 5]
         hmget none a b => [(nil) (nil)]
         hexists h a => 1
         hexists h x => 0
         hexists none x => 0
         hstrlen h a => 1
         hstrlen h x => 0
         hsetnx h a 9 => 0
         hsetnx h d 9 => 1
         hsetnx new d 9 => 1
         hmset h e 1 f 2 => OK
         hlen h => 6
         hdel h e f f x => 2
         hlen h => 4
         hdel none a => 0
         hdel new d => 1
         exists new => 0
         type new => none
         hlen new => 0
         hgetall new => []
         hget none a => (nil)
         hset h a => -ERR wrong number of arguments for 'hset' command
         hset h a 1 b => -ERR wrong number of arguments for 'hset' command
         hset n  1 => 1
         hget n  => 1
         hincrby h n 5 => 5
         hincrby h n -7 => -2
         hincrby h n x => -ERR value is not an integer or out of range
         hset h text x max 9223372036854775807 => 2
         hincrby h text 1 => -ERR hash value is not an integer
         hincrby h max 1 => -ERR increment or decrement would overflow
         hincrbyfloat h f 1.5 => 1.5
         hincrbyfloat h f -0.25 => 1.25
         hincrbyfloat h text 1 => -ERR hash value is not a float
         hincrbyfloat h f x => -ERR value is not a valid float",
    );
}

#[test]
fn hashes_are_values_like_others() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "hset h a 1 b 2 => 2
         set s 1 => OK
         type h => hash
         exists h s none => 2
         keys * => [h s]
         dbsize => 2
         scan 0 => [0 [h s]]
         scan 0 type hash => [0 [h]]
         scan 0 type STRING => [0 [s]]
         scan 0 type list => [0 []]
         scan 0 match h* => [0 [h]]
         object encoding h => listpack
         object refcount h => 1
         memory usage h => 88
         expire h 100 => 1
         ttl h => 100
         hset h c 3 => 1
         ttl h => 100
         expire h 50 gt => 0
         expire h 200 gt => 1
         rename h g => OK
         exists h => 0
         ttl g => 200
         hgetall g => [a 1 b 2 c 3]
         persist g => 1
         persist g => 0
         ttl g => -1
         hset h x 1 => 1
         renamenx h g => 0
         rename h g => OK
         hgetall g => [x 1]
         rename g s => OK
         type s => hash
         set g string => OK
         rename g s => OK
         type s => string
         del s => 1",
    );
}

#[test]
fn hashes_are_copied_moved_and_removed() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "set s 1 => OK
         hset h a 1 => 1
         pexpire h 100000 => 1
         copy h c => 1
         hset c b 2 => 1
         hgetall h => [a 1]
         hgetall c => [a 1 b 2]
         ttl c => 100
         copy h c => 0
         copy s c replace => 1
         type c => string
         copy h c replace => 1
         copy h far db 2 => 1
         move c 2 => 1
         exists c => 0
         select 2 => OK
         hgetall far => [a 1]
         hgetall c => [a 1]
         ttl c => 100
         dbsize => 2
         flushdb => OK
         dbsize => 0
         hgetall c => []
         select 0 => OK
         del h s => 2
         exists h => 0
         hset h a 1 => 1
         unlink h => 1
         hset h a 1 => 1
         expire h -1 => 1
         exists h => 0
         dbsize => 0
         randomkey => (nil)
         hset h a 1 => 1
         randomkey => h
         flushall => OK
         hlen h => 0",
    );
    let long = "x".repeat(65);
    client.run(&format!("hset long a {long}"));
    assert_eq!(client.run("object encoding long"), "hashtable");
    for number in 0..129 {
        client.run(&format!("hset many {number} x"));
    }
    assert_eq!(client.run("object encoding many"), "hashtable");
}

#[test]
fn commands_of_other_types_are_refused() {
    let server = TestServer::start();
    let mut client = server.client();
    script(&mut client, "hset h a 1 => 1\n set s 1 => OK\n setex t 100 x => OK");
    for command in [
        "get h",
        "getset h 1",
        "getdel h",
        "getex h",
        "set h 1 get",
        "append h 1",
        "strlen h",
        "getrange h 0 1",
        "setrange h 0 1",
        "incr h",
        "incrbyfloat h 1",
        "setbit h 1 1",
        "getbit h 1",
        "bitcount h",
        "bitpos h 1",
        "bitop not x h",
        "hset s a 1",
        "hsetnx s a 1",
        "hget s a",
        "hmget s a",
        "hgetall s",
        "hkeys s",
        "hvals s",
        "hdel s a",
        "hexists s a",
        "hlen s",
        "hstrlen s a",
        "hincrby s a 1",
        "hincrbyfloat s a 1",
        "hrandfield s",
        "hscan s 0",
    ] {
        assert_eq!(client.run(command), WRONG_TYPE, "{command}");
    }
    script(
        &mut client,
        "mget h s => [(nil) 1]
         setnx h 1 => 0
         msetnx h 1 new 1 => 0
         hgetall h => [a 1]
         set h 1 nx => (nil)
         set h 1 xx => OK
         type h => string
         hset h2 a 1 => 1
         mset h2 1 x 1 => OK
         get h2 => 1
         hset h3 a 1 => 1
         expire h3 100 => 1
         set h3 1 keepttl => OK
         ttl h3 => 100
         hset h4 a 1 => 1
         setex h4 100 1 => OK
         get h4 => 1
         hset t a 1 => *
         ttl t => 100",
    );
}

#[test]
fn random_fields() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "hrandfield none => (nil)
         hrandfield none 3 => []
         hset h a 1 b 2 c 3 => 3
         hrandfield h 5 => [a b c]
         hrandfield h 5 withvalues => [a 1 b 2 c 3]
         hrandfield h 0 => []
         hrandfield h x => -ERR value is not an integer or out of range
         hrandfield h 1 foo => -ERR syntax error
         hrandfield h -9223372036854775808 => *
         hrandfield h -1048577 => -ERR the reply is longer than 268435456 bytes or 1048576 fields; ask for fewer
         hrandfield h 9223372036854775807 withvalues => -ERR value is out of range
         hello 3 => *
         hrandfield h 5 withvalues => [[a 1] [b 2] [c 3]]
         hgetall h => [a 1 b 2 c 3]",
    );
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 3 {
        seen.insert(client.run("hrandfield h"));
    }
    assert_eq!(seen.into_iter().collect::<String>(), "abc");
    assert_eq!(client.run("hrandfield h -7").split(' ').count(), 7);
    assert_eq!(client.run("hrandfield h 2").split(' ').count(), 2);
}

#[test]
fn a_scan_returns_every_field_once() {
    let server = TestServer::start();
    let mut client = server.client();
    for number in 0..95 {
        client.run(&format!("hset h field:{number:02} {number}"));
    }
    let (mut cursor, mut found, mut calls) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = client.run(&format!("hscan h {cursor} count 10"));
        let (next, rest) = reply.trim_matches(['[', ']']).split_once(" [").unwrap();
        found.extend(rest.split(' ').step_by(2).map(str::to_owned));
        cursor = next.to_owned();
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    let all: Vec<String> = (0..95).map(|number| format!("field:{number:02}")).collect();
    assert_eq!((found, calls), (all, 10));
    script(
        &mut client,
        "hscan h 0 match *:0[12] count 1000 => [0 [field:01 1 field:02 2]]
         hscan h 0 match *:0[12] count 1000 novalues => [0 [field:01 field:02]]
         hscan none 0 => [0 []]
         hscan h x => -ERR invalid cursor
         hscan h 0 count 0 => -ERR syntax error
         hscan h 0 foo => -ERR syntax error
         hscan h 7 => -ERR cursor 7 is unknown or too old; begin again with HSCAN key 0",
    );
}

#[test]
fn transactions_and_watches_see_hashes() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.run("hset old a 1");
    assert_eq!(client.run("multi"), "OK");
    for command in [
        "hset h a 1 b 2",
        "hincrby h a 5",
        "hdel h b",
        "hgetall h",
        "get h",
        "keys *",
        "del old",
        "hget old a",
        "hset old b 1",
        "hgetall old",
        "rename old new",
        "hgetall new",
        "expire new 100",
        "ttl new",
        "set h x",
        "hlen h",
        "type h",
        "hset h2 a 1",
        "copy h2 h3",
        "hlen h3",
    ] {
        assert_eq!(client.run(command), "QUEUED", "{command}");
        assert_eq!(other.run("exists h new h3"), "0");
    }
    assert_eq!(
        client.run("exec"),
        format!(
            "[2 6 1 [a 6] {WRONG_TYPE} [h old] 1 (nil) 1 [b 1] OK [b 1] 1 100 OK {WRONG_TYPE} string 1 1 1]"
        )
    );
    assert_eq!(other.run("keys *"), "[h h2 h3 new]");
    for (change, fails) in [
        ("hset w a 2", true),
        ("hset w a 2 b 3", true),
        ("hdel w nothing", false),
        ("hget w a", false),
        ("hsetnx w a 1", false),
        ("hincrby w a 1", true),
        ("expire w 100", true),
        ("rename w elsewhere", true),
        ("del w", true),
        ("set w 1", true),
    ] {
        client.run("del w");
        client.run("hset w a 1");
        client.run("watch w");
        other.run(change);
        client.run("multi");
        client.run("ping");
        assert_eq!(client.run("exec"), if fails { "(nil)" } else { "[PONG]" }, "{change}");
    }
}

#[test]
fn a_hash_that_is_replaced_at_once_is_never_seen_empty() {
    let server = TestServer::start();
    server.client().run("hset h version 0 0 0");
    let until = Instant::now() + Duration::from_millis(300);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                let mut version = 1;
                while Instant::now() < until {
                    client.run("multi");
                    client.run("del h");
                    client.run(&format!("hset h version {version} {version} {version}"));
                    assert!(client.run("exec").ends_with("2]"));
                    version += 1;
                }
            });
        }
        let mut client = server.client();
        while Instant::now() < until {
            assert_ne!(client.run("hget h version"), "(nil)");
            let all = client.run("hgetall h");
            let words: Vec<&str> = all.trim_matches(['[', ']']).split(' ').collect();
            assert!(words.len() == 4 && words[0] == words[1] && words[3] == words[1], "{all}");
            assert_eq!(client.run("hlen h"), "2");
            assert!(client.run("hrandfield h").len() < 9);
        }
    });
}

#[test]
fn increments_of_fields_are_not_lost() {
    let server = TestServer::start();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for round in 0..200 {
                    client.run("hincrby h shared 1");
                    client.run(&format!("hset h {thread}:{round} x"));
                }
            });
        }
    });
    let mut client = server.client();
    assert_eq!(client.run("hget h shared"), "800");
    assert_eq!(client.run("hlen h"), "801");
    assert_eq!(client.run("hkeys h").split(' ').count(), 801);
}

/// Returns the number of stored entries of hashes in database 0.
fn stored(db: &terrane::Db) -> usize {
    let keyspace = db.keyspace("default.hashes", KeyspaceOptions::new()).unwrap();
    keyspace.iter().unwrap().count()
}

#[test]
fn nothing_is_left_of_hashes_that_were_removed_or_expired() {
    let server = TestServer::start();
    let mut client = server.client();
    client.run("set s 1");
    assert!(!server.db.keyspaces().iter().any(|name| name.contains("hashes")), "no hash yet");
    script(
        &mut client,
        "hset a x 1 y 2 => 2
         del a => 1
         hset a x 1 => 1
         expire a 100 => 1
         expire a 200 => 1
         set a 1 => OK
         hset b x 1 => 1
         expire b 100 => 1
         hset c x 1 y 2 => 2
         rename c b => OK
         hdel b x y => 2
         hset d x 1 => 1
         expire d 100 => 1
         persist d => 1
         unlink d s => 2
         hset e x 1 => 1
         move e 1 => 1",
    );
    assert_eq!(stored(&server.db), 0);
    for number in 0..50 {
        client.run(&format!("hset expiring:{number} x 1 y 2"));
        client.run(&format!("pexpire expiring:{number} 1"));
    }
    client.run("hset stays x 1");
    client.run("pexpire stays 1");
    std::thread::sleep(Duration::from_millis(5));
    client.run("hset stays z 3");
    // After the sweep, only the header of `stays` and its field remain.
    let begun = Instant::now();
    while stored(&server.db) > 2 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} entries are left",
            stored(&server.db)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(client.run("hgetall stays"), "[z 3]");
    assert_eq!(client.run("dbsize"), "2");
}

#[test]
fn a_key_that_changes_its_type_is_never_missing() {
    let server = TestServer::start();
    let is_over = AtomicBool::new(false);
    server.client().run("set k string");
    std::thread::scope(|scope| {
        let readers: Vec<_> = ["get k", "exists k", "hget k f", "type k"]
            .into_iter()
            .map(|command| {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || {
                    let mut client = server.client();
                    while !is_over.load(Ordering::SeqCst) {
                        let found = client.run(command);
                        assert!(!["(nil)", "0", "none"].contains(&&*found), "{command}: {found}");
                    }
                })
            })
            .collect();
        let mut writer = server.client();
        for _ in 0..700 {
            writer.run("hset h f value");
            assert_eq!(writer.run("rename h k"), "OK");
            assert_eq!(writer.run("set k string"), "OK");
        }
        is_over.store(true, Ordering::SeqCst);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn hashes_survive_the_end_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let db = Options::new().open(dir.path()).unwrap();
        let mut server = TestServer::of(db, Config::default());
        let mut client = server.client();
        let expected = if round == 0 { "[]" } else { "[a 1]" };
        assert_eq!(client.run("hgetall first"), expected);
        client.run("hset first a 1");
        // New hashes have generations that no field has.
        client.run(&format!("hset round:{round} x {round}"));
        for earlier in 0..=round {
            assert_eq!(client.run(&format!("hgetall round:{earlier}")), format!("[x {earlier}]"));
        }
        server.end();
        server.db.clone().close().unwrap();
    }
}
