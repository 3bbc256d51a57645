//! Publish and subscribe.

use std::time::{Duration, Instant};

use terrane::Options;
use terrane_server::{Config, Limits};

use crate::commands::script;
use crate::support::TestServer;

#[test]
fn messages_reach_the_subscribers_of_channels_and_patterns() {
    let server = TestServer::start();
    let (mut old, mut new, mut publisher) = (server.client(), server.client(), server.client());
    old.send_command(&["subscribe", "news", "news", "other"]);
    for expected in ["[subscribe news 1]", "[subscribe news 1]", "[subscribe other 2]"] {
        assert_eq!(old.reply(), expected);
    }
    assert_eq!(old.run("psubscribe n*"), "[psubscribe n* 3]");
    new.run("hello 3");
    assert_eq!(new.run("subscribe news"), "[subscribe news 1]");
    script(
        &mut publisher,
        "publish news one => 3
         publish nobody two => 1
         publish other three => 1
         publish none four => 1
         publish else five => 0
         pubsub channels => [news other]
         pubsub channels o* => [other]
         pubsub numsub news x => [news 2 x 0]
         pubsub numpat => 1
         multi => OK
         set a 1 => QUEUED
         publish news six => QUEUED
         subscribe x => -ERR Command 'subscribe' not allowed inside a transaction
         exec => -EXECABORT Transaction discarded because of previous errors.
         multi => OK
         publish news seven => QUEUED
         get a => QUEUED
         exec => [2 (nil)]",
    );
    let pattern = |channel: &str, text: &str| format!("[pmessage n* {channel} {text}]");
    for expected in [
        "[message news one]".to_owned(),
        pattern("news", "one"),
        pattern("nobody", "two"),
        "[message other three]".to_owned(),
        pattern("none", "four"),
        "[message news seven]".to_owned(),
        pattern("news", "seven"),
    ] {
        assert_eq!(old.reply(), expected);
    }
    assert_eq!(
        (new.reply(), new.reply()),
        ("[message news one]".into(), "[message news seven]".into())
    );
    // A RESP2 client with subscriptions has few commands; a RESP3 client has all of them.
    assert!(old.run("get a").starts_with("-ERR Can't execute 'get': only (P|S)SUBSCRIBE"));
    script(&mut old, "ping => [pong ]\n ping x => [pong x]");
    script(&mut new, "get a => (nil)\n ping => PONG\n pubsub numsub x => [x 0]");
    let clients = publisher.run("client list");
    assert!(clients.contains("sub=2 psub=1") && clients.contains("flags=P"), "{clients}");
    assert!(clients.contains("cmd=ping ") && clients.contains("cmd=client "), "{clients}");
    script(
        &mut old,
        "unsubscribe other missing => [unsubscribe other 2]
         punsubscribe => [unsubscribe missing 2]",
    );
    assert_eq!(old.reply(), "[punsubscribe n* 1]");
    script(&mut old, "unsubscribe => [unsubscribe news 0]\n unsubscribe => [unsubscribe (nil) 0]");
    assert_eq!(old.run("get a"), "(nil)");
    assert_eq!(new.run("reset"), "RESET");
    script(&mut publisher, "publish news eight => 0\n pubsub channels => []\n pubsub numpat => 0");
    // A connection that ends has no subscriptions left.
    assert_eq!(old.run("subscribe news"), "[subscribe news 1]");
    drop(old);
    let begun = Instant::now();
    while publisher.run("publish news nine") != "0" {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn messages_of_many_publishers_arrive_whole_and_in_order() {
    let server = TestServer::start();
    let mut subscribers: Vec<_> = (0..4).map(|_| server.client()).collect();
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.run("psubscribe *"), "[psubscribe * 1]");
    }
    const COUNT: usize = 500;
    std::thread::scope(|scope| {
        for publisher in 0..3 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for number in 0..COUNT {
                    assert_eq!(client.run(&format!("publish {publisher} {number}")), "4");
                }
            });
        }
        for subscriber in &mut subscribers {
            let mut next = [0; 3];
            for _ in 0..3 * COUNT {
                let message = subscriber.reply();
                let words: Vec<&str> = message.trim_matches(['[', ']']).split(' ').collect();
                let publisher: usize = words[2].parse().unwrap();
                assert_eq!(words[3], next[publisher].to_string(), "{message}");
                next[publisher] += 1;
            }
        }
    });
}

#[test]
fn a_subscriber_that_does_not_read_is_disconnected() {
    let limits = Limits { output_bytes: 1 << 20, ..Limits::default() };
    let server = TestServer::with(&Options::new(), Config { limits, ..Config::default() });
    let (mut deaf, mut publisher) = (server.client(), server.client());
    assert_eq!(deaf.run("subscribe c"), "[subscribe c 1]");
    let message = "x".repeat(100_000);
    let begun = Instant::now();
    while publisher.run(&format!("publish c {message}")) == "1" {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was not disconnected");
    }
    let info = publisher.run("info");
    assert!(info.contains("client_buffers:0") && info.contains("pubsub_channels:0"), "{info}");
}

#[test]
fn channels_need_the_right_to_all_keyspaces() {
    let users = "app s3cret write:*\nreport pw read:*\nsome pw write:default";
    let config = Config { users: users.parse().unwrap(), ..Config::default() };
    let server = TestServer::with(&Options::new(), config);
    let mut client = server.client();
    script(
        &mut client,
        "subscribe c => -NOAUTH Authentication required.
         auth some pw => OK
         subscribe c => -NOPERM this user may not use channels
         publish c x => -NOPERM this user may not use channels
         auth report pw => OK
         publish c x => -NOPERM this user may not use channels
         subscribe c => [subscribe c 1]
         unsubscribe => [unsubscribe c 0]
         auth app s3cret => OK
         publish c x => 0",
    );
    // A RESP3 client with subscriptions may switch to another user, unless that user may not subscribe.
    let mut client = server.client();
    client.send(b"hello 3 auth report pw\r\n");
    assert!(client.reply().contains("redis"));
    let refused = "-NOPERM this user may not use channels; end the subscriptions first";
    script(
        &mut client,
        &format!(
            "subscribe c => [subscribe c 1]
             auth some pw => {refused}
             hello 3 auth some pw => {refused}
             get a => (nil)
             auth app s3cret => OK
             publish c x => 1"
        ),
    );
    assert_eq!(client.reply(), "[message c x]");
    script(
        &mut client,
        "unsubscribe c => [unsubscribe c 0]
         auth some pw => OK
         subscribe c => -NOPERM this user may not use channels",
    );
    let mut client = server.client();
    assert_eq!(client.run("auth app s3cret"), "OK");
    let names: Vec<String> = (0..12).map(|name| name.to_string() + &"x".repeat(99_990)).collect();
    client.send_command(&[vec!["subscribe".to_owned()], names].concat());
    let replies: Vec<String> = (0..11).map(|_| client.reply()).collect();
    assert!(replies[9].starts_with("[subscribe 9x"));
    assert_eq!(replies[10], "-ERR the subscriptions of this connection take more than 1 MiB");
}
