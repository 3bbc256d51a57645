//! Clients that send nonsense, send too much, or read nothing.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use terrane_control::{Client, Request};

use crate::support::{Raw, served, wait};

#[test]
fn nonsense_is_answered_and_the_connection_goes_on() {
    let served = served();
    let mut raw = Raw::connect(served.dir.path());
    let nonsense = [
        "",
        "hello",
        "[]",
        "\u{0}\u{1}",
        r#"{"request":"ping"}"#,
        r#"{"protocol":1}"#,
        r#"{"protocol":1,"request":"explode"}"#,
        r#"{"protocol":1,"request":"flush","keyspace":7}"#,
        r#"{"protocol":1,"request":"compact","from":{"hex":"0"}}"#,
        r#"{"protocol":1,"request":"compact","from":{"hex":"+1"}}"#,
        r#"{"protocol":1,"request":"compact","keyspace":"none"}"#,
    ];
    for text in nonsense {
        let line = raw.ask(text);
        assert!(line.starts_with(r#"{"message":"failed","kind":"invalid","#), "{text}: {line}");
    }
    let line = raw.ask(&"[".repeat(100_000));
    assert!(line.contains("cannot be read"), "{line}");
    let line = raw.ask(r#"{"protocol":2,"request":"ping"}"#);
    assert!(line.contains(r#""kind":"unsupported""#) && line.contains("version 2"), "{line}");
    // A cancel without a request gets no answer.
    raw.send(r#"{"protocol":1,"request":"cancel"}"#);
    let line = raw.ask(r#"{"protocol":1,"request":"ping","later":"field"}"#);
    assert!(line.contains(r#""reply":"info""#), "{line}");
    assert!(served.db.stats().error.is_none());
}

#[test]
fn a_request_without_end_is_cut_off() {
    let served = served();
    let mut raw = Raw::connect(served.dir.path());
    let chunk = [b'x'; 64 << 10];
    let mut sent = 0;
    let error = loop {
        match raw.stream.write(&chunk) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(sent < 64 << 20, "everything was read");
    };
    assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    assert!(served.ask(&Request::Keyspaces).is_ok());
}

#[test]
fn there_are_sixteen_clients_and_the_next_one_is_told() {
    let served = served();
    let dir = served.dir.path();
    let mut clients: Vec<Client> =
        (0..16).map(|_| Client::connect(dir).unwrap().unwrap()).collect();
    for client in &mut clients {
        client.ask(&Request::Keyspaces, &mut Vec::new()).unwrap();
    }
    let failure = Client::connect(dir).unwrap_err();
    assert_eq!(failure.kind, "busy", "{failure}");
    assert!(failure.text.contains("16 clients"), "{failure}");
    clients.pop();
    wait(|| Client::connect(dir).is_ok());
}

#[test]
fn a_client_that_does_not_read_is_cut_off_and_blocks_nobody() {
    let served = served();
    let mut slow = Raw::connect(served.dir.path());
    slow.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let request = b"{\"protocol\":1,\"request\":\"stats\",\"format\":\"open-metrics\"}\n";
    let mut sent = 0;
    while slow.stream.write_all(request).is_ok() {
        sent += 1;
        assert!(sent < 100_000, "the answers are kept somewhere");
    }
    let begun = Instant::now();
    served.db.put("a", "1").unwrap();
    served.db.flush().unwrap();
    assert!(served.ask(&Request::Keyspaces).is_ok());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    // Sent bytes can still be read, but the connection has ended.
    let mut rest = Vec::new();
    std::thread::sleep(Duration::from_secs(6));
    match slow.stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    assert!(slow.stream.write_all(request).is_err());
}
