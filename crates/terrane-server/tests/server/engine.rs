//! The commands that Redis lacks.

use terrane::Options;
use terrane_server::{Advisor, Config};

use crate::commands::script;
use crate::support::TestServer;

#[test]
fn ranges_are_in_order() {
    let server = TestServer::start();
    let mut client = server.client();
    script(
        &mut client,
        "mset a 1 b 2 c 3 d 4 => OK
         hset bb x 1 => 1
         terrane.range - + => [a 1 b 2 c 3 d 4]
         terrane.range [b (d => [b 2 c 3]
         terrane.range (b [d => [c 3 d 4]
         terrane.range - + rev limit 2 => [d 4 c 3]
         terrane.range (b + limit 1 => [c 3]
         terrane.range - + limit 0 => []
         terrane.range + - => []
         terrane.range [d [a => []
         terrane.range b + => -ERR a bound is [key, (key, - or +
         terrane.range - + limit -1 => -ERR LIMIT is negative
         terrane.range - + limit => -ERR syntax error
         select 1 => OK
         terrane.range - + => []
         select 0 => OK
         multi => OK
         set bc 9 => QUEUED
         terrane.range [b [c => QUEUED
         terrane.range [b [c rev => QUEUED
         exec => [OK [b 2 bc 9 c 3] [c 3 bc 9 b 2]]
         hello 3 => *
         terrane.range [a [b => [[a 1] [b 2]]",
    );
}

#[test]
fn the_engine_is_described() {
    let server = TestServer::start();
    let mut client = server.client();
    client.run("set key value");
    client.run("hset h field value");
    let tree = client.run("terrane.tree");
    assert!(tree.starts_with("default\n") && tree.contains("\ndefault.hashes\n"), "{tree}");
    assert!(client.run("terrane.stats").contains("write"), "text for people");
    assert!(client.run("terrane.stats openmetrics").contains("# TYPE terrane_"));
    assert_eq!(client.run("save"), "OK");
    let events = client.run("terrane.events 1");
    assert!(events.contains("flush"), "{events}");
    assert_eq!(client.run("terrane.events 0"), "[]");
    let path = client.run("terrane.why key");
    assert!(
        path.contains("default\nactive memtable: searched, not found\nL0 run 0, table"),
        "{path}"
    );
    assert!(path.contains("the key has a value"), "{path}");
    assert_eq!(client.run("terrane.why h field").matches("the key has a value").count(), 2);
    assert!(client.run("terrane.help").contains("TERRANE.WHY key [field]"));
    let design = client.run("terrane.design");
    assert_eq!(design, server.db.design().to_string());
    let changed = server.db.design().to_string();
    assert_eq!(client.call(&["terrane.design", "set", &changed]), "OK");
    assert_eq!(client.run("terrane.design set tiering"), "OK");
    assert_ne!(client.run("terrane.design"), changed);
    assert_eq!(client.run("terrane.design"), server.db.design().to_string());
    assert!(client.run("terrane.design set nonsense").starts_with("-ERR "));
    assert_eq!(client.run("terrane.design foo bar"), "-ERR syntax error");
}

#[test]
fn maintenance_runs_beside_other_connections() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.run("mset a 1 b 2");
    client.run("hset h x 1");
    // Requests sent meanwhile are answered afterwards, in order.
    client.send_command(&["terrane.compact"]);
    client.send_command(&["set", "c", "3"]);
    client.send_command(&["terrane.compact", "a", "b"]);
    client.send_command(&["get", "c"]);
    assert_eq!(other.run("get a"), "1");
    for expected in ["OK", "OK", "OK", "3"] {
        assert_eq!(client.reply(), expected);
    }
    assert!(client.run("terrane.why a").contains("L"), "in a table");
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("copy");
    assert_eq!(client.call(&["terrane.checkpoint", target.to_str().unwrap()]), "OK");
    let again = client.call(&["terrane.checkpoint", target.to_str().unwrap()]);
    assert!(again.starts_with('-'), "{again}");
    assert_eq!(
        client.run("terrane.checkpoint copy"),
        "-ERR the directory of a checkpoint must be an absolute path"
    );
    client.run("multi");
    assert!(client.run("terrane.compact").contains("not allowed inside a transaction"));
    client.run("discard");
    let copy = TestServer::of(Options::new().open(&target).unwrap(), Config::default());
    script(&mut copy.client(), "get a => 1\n hgetall h => [x 1]");
}

#[test]
fn the_end_of_a_client_or_the_server_cancels_maintenance() {
    let mut server = TestServer::start();
    for number in 0..200 {
        server.client().run(&format!("set key{number} {}", "x".repeat(1000)));
    }
    for _ in 0..8 {
        let mut client = server.client();
        client.send_command(&["terrane.compact"]);
    }
    let mut last = server.client();
    last.send_command(&["terrane.compact"]);
    let reply = last.reply();
    assert!(reply == "OK" || reply.starts_with("-ERR too many"), "{reply}");
    last.send_command(&["terrane.compact"]);
    server.end();
    server.db.clone().close().unwrap();
}

#[test]
fn an_advisor_answers_in_a_thread_of_its_own() {
    let advisor = Advisor::new(|keyspace| match keyspace.iter().unwrap().count() {
        0 => Err("nothing to advise on".to_owned()),
        1 => Ok(format!("{}: keep {}", keyspace.name(), keyspace.design())),
        _ => panic!("the advisor of this test panics"),
    });
    let config = Config { advisor: Some(advisor), ..Config::default() };
    let server = TestServer::with(&Options::new(), config);
    let mut client = server.client();
    client.run("select 1");
    assert_eq!(client.run("terrane.advise"), "-ERR nothing was written to this database");
    client.run("set a 1");
    client.run("del a");
    assert_eq!(client.run("terrane.advise"), "-ERR nothing to advise on");
    client.run("set a 1");
    let expected = format!("db1: keep {}", client.run("terrane.design"));
    assert_eq!(client.run("terrane.advise"), expected);
    client.run("set b 1");
    assert_eq!(client.run("terrane.advise"), "-ERR the command panicked; please report it");
    let other = TestServer::start();
    assert_eq!(other.client().run("terrane.advise"), "-ERR this server has no advisor");
}
