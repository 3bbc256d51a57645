//! Announcements of changes of keys.

use std::time::{Duration, Instant};

use terrane::Options;
use terrane_server::Config;

use crate::support::{Client, TestServer, encoded};

fn server(events: &str) -> TestServer {
    let config = Config { keyspace_events: events.parse().unwrap(), ..Config::default() };
    TestServer::with(&Options::new(), config)
}

/// Subscribes to all announcements.
fn subscriber(server: &TestServer) -> Client {
    let mut client = server.client();
    assert_eq!(client.run("psubscribe __key*"), "[psubscribe __key* 1]");
    client
}

/// Runs commands, and returns the announcements that the subscriber received since.
fn announced(client: &mut Client, subscriber: &mut Client, commands: &str) -> Vec<String> {
    for command in commands.split(", ") {
        let reply = client.run(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }
    client.run("publish __keys that_is_all");
    let mut messages = Vec::new();
    loop {
        let message = subscriber.reply();
        let message = message.trim_start_matches("[pmessage __key* ").trim_end_matches(']');
        if message == "__keys that_is_all" {
            return messages;
        }
        messages.push(message.to_owned());
    }
}

#[test]
fn changes_of_keys_are_announced_as_redis_does() {
    let server = server("EA");
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    for (commands, expected) in [
        ("set a 1", "set a"),
        ("set a 1 ex 100", "set a, expire a"),
        ("set a 1 keepttl", "set a"),
        ("setex a 100 1, psetex a 100000 1", "set a, expire a, set a, expire a"),
        ("getset a 2, setnx n 1, setnx n 1", "set a, set n"),
        ("mset a 1 b 2, msetnx c 3 d 4, msetnx c 3 e 4", "set a, set b, set c, set d"),
        ("append a x, setrange a 0 y, setbit a 1 1", "append a, setrange a, setbit a"),
        ("bitfield a set u8 0 1, bitfield a get u8 0", "setbit a"),
        ("bitop not e a, bitop not e none, bitop not e none", "set e, del e"),
        (
            "set i 1, incr i, decrby i 2, incrbyfloat i 1",
            "set i, incrby i, incrby i, incrbyfloat i",
        ),
        ("expire i 100, pexpire i 50000, persist i, persist i", "expire i, expire i, persist i"),
        ("set i 1, expire i -1, expire i 1", "set i, del i"),
        ("set g 1, getex g, getex g ex 9, getex g persist", "set g, expire g, persist g"),
        ("getdel g, getdel g, del a none, unlink b c", "del g, del a, del b, del c"),
        ("set a 1, rename a b, copy b c", "set a, rename_from a, rename_to b, copy_to c"),
        ("move c 1", "move_from c, 1:move_to c"),
        ("hset h f 1 g 2, hsetnx h f 1, hsetnx h k 1", "hset h, hset h"),
        ("hincrby h f 1, hincrbyfloat h f 1", "hincrby h, hincrbyfloat h"),
        ("hdel h none, hdel h f, hdel h g k", "hdel h, hdel h, del h"),
        ("hset h f 1, expire h 100, persist h", "hset h, expire h, persist h"),
        ("rename h h2, del h2", "rename_from h, rename_to h2, del h2"),
        ("get a, mget a b, hgetall h, ping, flushall", ""),
    ] {
        let found = announced(&mut client, &mut subscriber, commands);
        let found: Vec<String> = found
            .iter()
            .map(|message| match message.strip_prefix("__keyevent@0__:") {
                Some(event) => event.to_owned(),
                None => message.replace("__keyevent@1__:", "1:"),
            })
            .collect();
        assert_eq!(found.join(", "), expected, "{commands}");
    }
}

#[test]
fn only_what_is_wanted_is_announced() {
    let server = server("");
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    let commands = "set a 1, hset h f 1, del a";
    assert!(announced(&mut client, &mut subscriber, commands).is_empty());
    for (letters, shown, expected) in [
        ("KEA", "AKE", 6),
        ("K$", "$K", 1),
        ("Eg", "gE", 1),
        ("Khg", "ghK", 2),
        ("A", "A", 0),
        ("K", "K", 0),
    ] {
        client.run(&format!("config set notify-keyspace-events {letters}"));
        let found = client.run("config get notify-keyspace-events");
        assert_eq!(found, format!("[notify-keyspace-events {shown}]"));
        let found = announced(&mut client, &mut subscriber, commands);
        assert_eq!(found.len(), expected, "{letters}: {found:?}");
    }
    client.run("config set notify-keyspace-events KA");
    let found = announced(&mut client, &mut subscriber, "select 3, set a:b 1");
    assert_eq!(found, ["__keyspace@3__:a:b set"]);
    let refused = client.run("config set notify-keyspace-events Kq");
    assert!(refused.starts_with("-ERR CONFIG SET failed"), "{refused}");
    assert_eq!(client.call(&["config", "set", "notify-keyspace-events", ""]), "OK");
    assert!(announced(&mut client, &mut subscriber, commands).is_empty());
}

#[test]
fn a_transaction_announces_its_changes_when_it_commits() {
    let server = server("EA");
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    assert_eq!(announced(&mut client, &mut subscriber, "set n x"), ["__keyevent@0__:set n"]);
    for command in ["multi", "set a 1", "incr n", "set b 1", "publish __key:own 1"] {
        client.run(command);
    }
    let reply = client.run("exec");
    assert!(reply.starts_with("[OK -ERR value is not an integer"), "{reply}");
    for expected in ["__keyevent@0__:set a", "__keyevent@0__:set b", "__key:own 1"] {
        assert_eq!(subscriber.reply(), format!("[pmessage __key* {expected}]"));
    }
    // A transaction that does not run announces nothing.
    let discarded = "multi, set a 1, discard, watch a, set a 2, multi, set a 3, exec";
    assert_eq!(announced(&mut client, &mut subscriber, discarded), ["__keyevent@0__:set a"]);
}

#[test]
fn a_write_in_a_thread_of_its_own_is_announced() {
    let server = server("EA");
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    client.call(&["set", "a", &"x".repeat(5 << 20)]);
    let found = announced(&mut client, &mut subscriber, "append a x, copy a b");
    let expected = ["set a", "append a", "copy_to b"];
    assert_eq!(found, expected.map(|event| format!("__keyevent@0__:{event}")));
}

#[test]
fn the_expiry_of_a_hash_is_announced_when_it_is_swept() {
    let server = server("Ex");
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    announced(&mut client, &mut subscriber, "hset h f 1, pexpire h 10, hset other f 1");
    let began = Instant::now();
    assert_eq!(subscriber.reply(), "[pmessage __key* __keyevent@0__:expired h]");
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(announced(&mut client, &mut subscriber, "exists h, del other").is_empty());
}

#[test]
fn each_write_of_a_pipeline_is_announced() {
    let server = server("EA");
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    let pipeline: Vec<u8> = (0..40)
        .flat_map(|number| match number % 4 {
            0 | 1 => encoded(&["set", &format!("k{number}"), "1"]),
            2 => encoded(&["incr", &format!("k{number}")]),
            _ => encoded(&["get", "k0"]),
        })
        .collect();
    client.send(&pipeline);
    (0..40).for_each(|_| assert!(!client.reply().starts_with('-')));
    let found = announced(&mut client, &mut subscriber, "ping");
    let expected = (0..40).filter(|number| number % 4 < 3).map(|number| {
        let event = if number % 4 < 2 { "set" } else { "incrby" };
        format!("__keyevent@0__:{event} k{number}")
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}
