//! After a server is killed, all acknowledged writes exist and hashes are whole.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use terrane::{KeyspaceOptions, Options};
use terrane_server::{Config, Server};

use crate::support::{Client, TestServer};

const DIRECTORY: &str = "TERRANE_SERVER_TEST_DIRECTORY";

/// Serves a database in a child process, which another test kills. Does nothing unless that test is its
/// parent.
#[test]
fn serve_until_killed() {
    use std::io::Write;
    let Ok(dir) = std::env::var(DIRECTORY) else { return };
    let db = Options::new().open(dir).unwrap();
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let server = Server::bind(db, Config { listen, workers: 2, ..Config::default() }).unwrap();
    let port = server.addresses()[0].port();
    writeln!(std::io::stderr(), "port={port}").unwrap();
    server.run().unwrap();
}

fn start(dir: &std::path::Path) -> (Child, Client) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::serve_until_killed", "--exact", "--nocapture"])
        .env(DIRECTORY, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let port =
        lines.filter_map(|line| line.strip_prefix("port=").map(|port| port.parse().unwrap()));
    let port: u16 = { port }.next().unwrap();
    let client = Client::connect(([127, 0, 0, 1], port).into());
    (child, client)
}

#[test]
fn hashes_are_whole_after_the_server_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut version = 0_u32;
    for round in 0..4 {
        let (mut child, mut client) = start(dir.path());
        // Commands that were sent but perhaps not answered when the server dies.
        for step in 0..200 {
            version += 1;
            for command in [
                format!("hset h a {version} b {version} c{} {version}", version % 50),
                format!("hdel h c{}", (version + 7) % 50),
                format!("hset short{step} x 1 y 2"),
                format!("pexpire short{step} 1"),
                format!("rename h h{}", version % 2),
                format!("rename h{} h", version % 2),
                format!("set other{} {version}", version % 3),
                format!("hset other{} a {version}", (version + 1) % 3),
                format!("del other{}", (version + 2) % 3),
            ] {
                client.send_command(&command.split(' ').collect::<Vec<_>>());
            }
            if step < 100 {
                (0..9).for_each(|_| drop(client.reply()));
            }
        }
        let acknowledged = version - 100;
        child.kill().unwrap();
        child.wait().unwrap();
        check(dir.path(), acknowledged, round);
    }
}

/// Checks every hash of a database that no server has open.
fn check(dir: &std::path::Path, acknowledged: u32, round: u32) {
    let db = Options::new().open(dir).unwrap();
    let mut server = TestServer::of(db, Config::default());
    let mut client = server.client();
    let h = ["h", "h0", "h1"].into_iter().find(|key| client.run(&format!("type {key}")) == "hash");
    let a: u32 = client.run(&format!("hget {} a", h.unwrap())).parse().unwrap();
    let b = client.run(&format!("hget {} b", h.unwrap()));
    assert!(a >= acknowledged && b == a.to_string(), "round {round}: {a} {b} {acknowledged}");
    if h != Some("h") {
        client.run(&format!("rename {} h", h.unwrap()));
    }
    let mut entries = 0;
    let keys = client.run("scan 0 count 1000 type hash");
    let keys = keys.trim_matches(['[', ']']).split_once(" [").unwrap().1.to_owned();
    for key in keys.split(' ').filter(|key| !key.is_empty()) {
        let len: usize = client.run(&format!("hlen {key}")).parse().unwrap();
        let fields = client.run(&format!("hkeys {key}"));
        assert_eq!(fields.split(' ').count(), len, "round {round}: {key} {fields}");
        assert_eq!(client.run(&format!("ttl {key}")), "-1");
        entries += 1 + len;
    }
    // Expired hashes leave nothing.
    let hashes = server.db.keyspace("default.hashes", KeyspaceOptions::new()).unwrap();
    terrane_testkit::wait_until(
        || hashes.iter().unwrap().count() == entries,
        || {
            format!(
                "round {round}: {} entries instead of {entries}",
                hashes.iter().unwrap().count()
            )
        },
    );
    server.end();
    server.db.clone().close().unwrap();
}
