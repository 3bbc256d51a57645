//! Commands that the server runs together: a pipeline gets the same answers as the same commands sent one by
//! one.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use terrane::{Durability, Options};
use terrane_server::Config;
use terrane_testkit::{Rng, seed_from_env};

use crate::support::{Client, TestServer, encoded};

fn one_worker() -> Config {
    Config { workers: 1, ..Config::default() }
}

/// Sends commands together, and returns their replies.
fn together(client: &mut Client, commands: &[Vec<String>]) -> Vec<String> {
    client.send(&commands.iter().flat_map(|command| encoded(command)).collect::<Vec<u8>>());
    commands.iter().map(|_| client.reply()).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn lines(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| words(line.trim())).collect()
}

/// Returns a command on one of a few keys: mostly of a kind that runs in groups.
fn random_command(rng: &mut Rng, client: usize) -> Vec<String> {
    let key = |rng: &mut Rng| format!("{client}:{}", rng.below(6));
    let number = |rng: &mut Rng| match rng.below(12) {
        0 => i64::MAX.to_string(),
        1 => i64::MIN.to_string(),
        2 => "text".to_owned(),
        other => (other as i64 - 7).to_string(),
    };
    let (one, two) = (key(rng), key(rng));
    words(&match rng.below(34) {
        0..7 => format!("get {one}"),
        7..11 => format!("set {one} {}", number(rng)),
        11..15 => format!("incr {one}"),
        15 => format!("decr {one}"),
        16..18 => format!("incrby {one} {}", number(rng)),
        18 => format!("decrby {one} {}", number(rng)),
        19..21 => format!("mset {one} {} {two} {}", number(rng), number(rng)),
        21 => format!("mset {one} 1 {two}"),
        22 => "get".to_owned(),
        23..25 => format!("hset {one} field {}", number(rng)),
        25 => format!("hincrby {one} field 3"),
        26 => format!("del {one} {two}"),
        27 => format!("set {one} {} ex 10000", number(rng)),
        28 => format!("expire {one} 20000"),
        29 => format!("expireat {one} 1"),
        30 => format!("select {}", rng.below(2)),
        31 => format!("set {one} 5 get"),
        32 => format!("append {one} {}", rng.below(10)),
        _ => format!("rename {one} {two}"),
    })
}

/// Returns the commands of a client, with transactions among them.
fn random_commands(rng: &mut Rng, client: usize, count: usize) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    while commands.len() < count {
        if rng.below(30) == 0 {
            commands.push(words("multi"));
            // `SELECT` and errors in a transaction are part of the test.
            let inside = rng.below(5);
            commands.extend((0..inside).map(|_| random_command(rng, client)));
            commands.push(words(if rng.below(4) == 0 { "discard" } else { "exec" }));
        } else {
            commands.push(random_command(rng, client));
        }
    }
    commands
}

/// Returns all keys and values of two databases, and the keys that expire.
fn contents(client: &mut Client) -> Vec<String> {
    let mut found = Vec::new();
    for db in 0..2 {
        client.run(&format!("select {db}"));
        for client_number in 0..3 {
            for key in (0..6).map(|key| format!("{client_number}:{key}")) {
                let value = match &*client.run(&format!("type {key}")) {
                    "hash" => client.run(&format!("hgetall {key}")),
                    _ => client.run(&format!("get {key}")),
                };
                let ttl: i64 = client.run(&format!("ttl {key}")).parse().unwrap();
                // A remaining time is not compared exactly.
                let ttl = if ttl > 0 { (ttl + 5000) / 10_000 } else { ttl };
                found.push(format!("{db} {key} {value} {ttl}"));
            }
        }
    }
    found
}

#[test]
fn pipelines_are_answered_as_the_same_commands_one_by_one() {
    let first = seed_from_env(11);
    for seed in first..first + 6 {
        let mut rng = Rng::new(seed);
        let grouped = TestServer::with(&Options::new(), one_worker());
        let single = TestServer::with(&Options::new(), one_worker());
        let scripts: Vec<_> = (0..3).map(|client| random_commands(&mut rng, client, 600)).collect();
        let mut clients: Vec<_> = scripts.iter().map(|_| grouped.client()).collect();
        let mut answers: Vec<Vec<String>> = vec![Vec::new(); scripts.len()];
        let mut positions = vec![0; scripts.len()];
        while (0..3).any(|at| positions[at] < scripts[at].len()) {
            let mut sent = [0; 3];
            for at in 0..3 {
                // Requests also arrive in parts.
                let end = (positions[at] + rng.below(80) as usize).min(scripts[at].len());
                let bytes: Vec<u8> =
                    scripts[at][positions[at]..end].iter().flat_map(|it| encoded(it)).collect();
                let cut = bytes.len() * rng.below(3) as usize / 2;
                clients[at].send(&bytes[..cut]);
                clients[at].send(&bytes[cut..]);
                sent[at] = end - positions[at];
                positions[at] = end;
            }
            for at in 0..3 {
                answers[at].extend((0..sent[at]).map(|_| clients[at].reply()));
            }
        }
        for (at, script) in scripts.iter().enumerate() {
            let mut client = single.client();
            for (command, answer) in script.iter().zip(&answers[at]) {
                let expected = client.call(command);
                assert_eq!(*answer, expected, "seed {seed}, client {at}: {command:?}");
            }
        }
        let found = contents(&mut grouped.client());
        assert_eq!(found, contents(&mut single.client()), "seed {seed}");
    }
}

#[test]
fn a_command_of_a_group_sees_those_before_it() {
    let server = TestServer::with(&Options::new(), one_worker());
    let mut client = server.client();
    assert_eq!(client.run("hset hash f 1"), "1");
    assert_eq!(client.run("set expires 5 ex 1000"), "OK");
    let script = lines(
        "incr a
         incr a
         set a 10
         incr a
         set a text
         incr a
         decrby a -9223372036854775808
         mset a 1 b 2 a 7
         decr a
         incr b
         incr hash
         set hash 3
         incr hash
         incr expires
         incrby expires 9223372036854775807
         incr expires",
    );
    let no_integer = "-ERR value is not an integer or out of range";
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let overflow = "-ERR increment or decrement would overflow";
    assert_eq!(
        together(&mut client, &script),
        [
            "1",
            "2",
            "OK",
            "11",
            "OK",
            no_integer,
            "-ERR decrement would overflow",
            "OK",
            "6",
            "3",
            wrong_type,
            "OK",
            "4",
            "6",
            overflow,
            "7"
        ]
    );
    let gets = lines("get a\nget b\nget hash\nget expires\nget none\nttl hash\nhlen hash");
    let wrong_type = wrong_type.to_owned();
    assert_eq!(together(&mut client, &gets), ["6", "3", "4", "7", "(nil)", "-1", &wrong_type]);
    assert!(client.run("ttl expires").parse::<u64>().unwrap() > 900);
    assert_eq!(server.db.keyspaces().len(), 2);
    let hashes = server.db.keyspace("default.hashes", terrane::KeyspaceOptions::new()).unwrap();
    assert_eq!(hashes.iter().unwrap().count(), 0, "the hash that was replaced is removed");
}

#[test]
fn groups_of_several_threads_lose_no_increment() {
    let server = TestServer::start();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.client();
                let incr: Vec<_> = (0..50).map(|at| words(&format!("incr n{}", at % 3))).collect();
                let mut last = [0; 3];
                for _ in 0..40 {
                    for (at, reply) in together(&mut client, &incr).into_iter().enumerate() {
                        let number: u64 = reply.parse().unwrap();
                        assert!(number > last[at % 3]);
                        last[at % 3] = number;
                    }
                }
            });
        }
    });
    let expected = [17, 17, 16].map(|count: usize| (count * 4 * 40).to_string());
    assert_eq!(together(&mut server.client(), &lines("get n0\nget n1\nget n2")), expected);
}

#[test]
fn a_group_touches_the_keys_that_others_watch() {
    let server = TestServer::with(&Options::new(), one_worker());
    let (mut watcher, mut other) = (server.client(), server.client());
    for (watched, is_touched) in [("b", true), ("c", true), ("d", true), ("e", false), ("f", false)]
    {
        other.run("set f text");
        assert_eq!(watcher.run(&format!("watch {watched}")), "OK");
        let replies = together(&mut other, &lines("set a 1\nmset b 1 c 2\nincr d\nget e\nincr f"));
        assert!(replies[4].starts_with("-ERR"));
        watcher.send(b"multi\r\nget a\r\nexec\r\n");
        let replies: Vec<_> = (0..3).map(|_| watcher.reply()).collect();
        assert_eq!(replies[2] == "(nil)", is_touched, "{watched}: {replies:?}");
    }
}

#[test]
fn users_are_refused_in_pipelines_as_well() {
    let users = "app s3cret write:*\nreport pa55 read:default";
    let config = Config { users: users.parse().unwrap(), ..one_worker() };
    let server = TestServer::with(&Options::new(), config);
    let mut client = server.client();
    let script = lines(
        "get a\nset a 1\nauth report pa55\nset a 1\nset a 2\nget a\nget a\nauth app s3cret\nincr a",
    );
    let (no_auth, may_read) =
        ("-NOAUTH Authentication required.", "-NOPERM this user may only read, and 'set' writes");
    assert_eq!(
        together(&mut client, &script),
        [no_auth, no_auth, "OK", may_read, may_read, "(nil)", "(nil)", "OK", "1"]
    );
}

#[test]
fn clients_choose_which_replies_of_a_pipeline_they_want() {
    let server = TestServer::with(&Options::new(), one_worker());
    let mut client = server.client();
    let script = "incr a\nincr a\nclient reply skip\nincr a\nincr a\nclient reply off\nincr a\nget a\nclient reply on\nget a";
    client.send(&lines(script).iter().flat_map(|command| encoded(command)).collect::<Vec<u8>>());
    let replies: Vec<_> = (0..5).map(|_| client.reply()).collect();
    assert_eq!(replies, ["1", "2", "4", "OK", "5"]);
}

#[test]
fn long_values_are_read_in_several_turns() {
    let server = TestServer::with(&Options::new(), one_worker());
    let (mut client, mut other) = (server.client(), server.client());
    let values: Vec<String> =
        (0..40).map(|number| format!("{number}:{}", "x".repeat(300_000))).collect();
    for (number, value) in values.iter().enumerate() {
        assert_eq!(client.call(&["set", &format!("key{number}"), value]), "OK");
    }
    let gets: Vec<_> = (0..40).map(|number| words(&format!("get key{number}"))).collect();
    // The requests of the other client follow in the same turn.
    let all = gets.iter().flat_map(|get| encoded(get)).collect::<Vec<u8>>();
    client.stream.get_mut().write_all(&all).unwrap();
    assert_eq!(together(&mut other, &gets), values);
    for value in &values {
        assert_eq!(client.reply(), *value);
    }
}

#[test]
fn commands_of_groups_are_counted_and_logged_one_by_one() {
    let server = TestServer::with(&Options::new(), one_worker());
    let mut client = server.client();
    let script = lines("set a 1\nmset b 2 c text\nincr a\nincr c\nget a\nget b\nget none");
    let number = |info: &str, name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    client.run("config set slowlog-log-slower-than 0");
    together(&mut client, &script);
    client.run("config set slowlog-log-slower-than -1");
    let logged = client.run("slowlog get 100");
    for command in &script {
        assert!(logged.contains(&format!("[{}]", command.join(" "))), "{command:?}: {logged}");
    }
    // The counts are reported twice a second.
    let begun = Instant::now();
    loop {
        let info = client.run("info stats");
        let found = ["keyspace_hits:", "keyspace_misses:", "total_error_replies:"]
            .map(|name| number(&info, name));
        if found == [2, 1, 1] {
            assert!(number(&info, "total_commands_processed:") >= 9);
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{info}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_command_of_a_group_that_could_not_be_synced_is_answered_with_an_error() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).durability(Durability::Sync);
    let server = TestServer::of(options.open("db").unwrap(), one_worker());
    let mut client = server.client();
    assert_eq!(together(&mut client, &lines("set a 1\nincr a")), ["OK", "2"]);
    storage.set(Some(Fault {
        operation: Some(Operation::Sync),
        path_contains: ".log".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::Other,
    }));
    let script = lines("get a\nget none\nset a 3\nmset b 1 c 2\nincr a\nping\nget a\nget b");
    let replies = together(&mut client, &script);
    assert_eq!((&replies[..2], &*replies[5]), (&["2".to_owned(), "(nil)".to_owned()][..], "PONG"));
    for at in [2, 3, 4, 6, 7] {
        assert!(replies[at].starts_with("-MISCONF"), "{at}: {replies:?}");
    }
}

#[test]
fn a_group_of_another_database_or_protocol_is_apart() {
    let server = TestServer::with(&Options::new(), one_worker());
    let mut client = server.client();
    let script = lines("set a 0\nselect 1\nget a\nset a 1\nget a\nselect 0\nget a\nget none");
    let replies = together(&mut client, &script);
    assert_eq!(replies, ["OK", "OK", "(nil)", "OK", "1", "OK", "0", "(nil)"]);
    client.send(b"*2\r\n$5\r\nhello\r\n$1\r\n3\r\n");
    client.reply();
    client.send(&encoded(&["get", "none"]).repeat(2));
    let mut raw = [0; 6];
    std::io::Read::read_exact(&mut client.stream, &mut raw).unwrap();
    assert_eq!(&raw, b"_\r\n_\r\n");
    let distinct: BTreeSet<String> =
        together(&mut client, &lines("get a\nget a\nget a")).into_iter().collect();
    assert_eq!(distinct.len(), 1);
}
