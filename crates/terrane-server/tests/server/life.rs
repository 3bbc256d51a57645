//! Starting and ending.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{Clock, Options, SystemClock};

use terrane_server::{Config, Server, ServerError};

use crate::support::{Client, TestServer, encoded};

#[test]
fn the_end_answers_what_has_arrived() {
    let mut server = TestServer::start();
    let mut client = server.client();
    assert_eq!(client.run("ping"), "PONG");
    let commands: Vec<u8> =
        (0..5000).flat_map(|number| encoded(&["set", &format!("key {number}"), "value"])).collect();
    client.send(&commands);
    // The first answer shows that the server has begun to read.
    assert_eq!(client.reply(), "OK");
    let report = server.end();
    let mut answered = 1;
    while client.try_reply().is_ok_and(|reply| reply == "OK") {
        answered += 1;
    }
    assert_eq!(answered, 5000);
    assert_eq!((report.connections, report.commands), (1, 5001));
    assert_eq!(server.db.iter().unwrap().count(), 5000);
}

#[test]
fn a_client_may_end_the_server() {
    let mut server = TestServer::start();
    let mut client = server.client();
    client.send_command(&["shutdown", "nosave"]);
    assert!(client.is_closed());
    server.end();
    assert!(std::net::TcpStream::connect(server.address).is_err());
}

#[test]
fn other_hosts_need_a_password() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    let listen = vec!["0.0.0.0:0".parse().unwrap()];
    let config = Config { listen, ..Config::default() };
    let error = Server::bind(db.clone(), config.clone()).unwrap_err();
    assert!(matches!(error, ServerError::Unprotected { .. }), "{error}");
    Server::bind(db.clone(), Config { insecure: true, ..config.clone() }).unwrap();
    let users = terrane_server::Users::with_password("secret");
    Server::bind(db.clone(), Config { users, ..config }).unwrap();
    let error = Server::bind(db, Config::default()).unwrap_err();
    assert!(matches!(error, ServerError::NoAddress), "{error}");
}

#[cfg(unix)]
#[test]
fn a_unix_socket_replaces_one_that_was_left_behind() {
    use std::os::unix::net::{UnixListener, UnixStream};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let config = || Config { unix_socket: Some(path.clone()), ..Config::default() };
    let mut server = TestServer::with(&Options::new(), config());
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"ping\r\n").unwrap();
    let mut reply = [0; 7];
    std::io::Read::read_exact(&mut stream, &mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
    let error = Server::bind(server.db.clone(), config()).unwrap_err();
    assert!(matches!(error, ServerError::Listen { .. }), "in use: {error}");
    server.end();
    assert!(!path.exists());
    std::fs::write(&path, "text").unwrap();
    let error = Server::bind(server.db.clone(), config()).unwrap_err();
    assert!(matches!(error, ServerError::NotASocket { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn a_unix_socket_has_its_mode_and_leaves_no_other_files() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    for mode in [0o700, 0o770] {
        let path = dir.path().join("socket");
        let config =
            Config { unix_socket: Some(path.clone()), unix_socket_mode: mode, ..Config::default() };
        let server = TestServer::with(&Options::new(), config);
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        drop(server);
    }
    // A directory that does not exist.
    let config = Config { unix_socket: Some(dir.path().join("no/socket")), ..Config::default() };
    let db = Options::new().open(dir.path().join("db")).unwrap();
    assert!(matches!(Server::bind(db, config), Err(ServerError::Listen { .. })));
}

const ALL_KEYSPACES: &str =
    "-NOPERM this command shows all keyspaces, and this user may not use all of them";

#[test]
fn users_have_passwords_and_rights() {
    let users = "app s3cret write:*\nreport pa55 read:default,db2\ndefault pw write:default";
    let config = Config { users: users.parse().unwrap(), ..Config::default() };
    let server = TestServer::with(&Options::new(), config);
    let mut client = Client::connect(server.address);
    for (command, expected) in [
        ("get a", "-NOAUTH Authentication required."),
        ("nonsense", "-NOAUTH Authentication required."),
        ("auth wrong", "-WRONGPASS invalid username-password pair or user is disabled."),
        ("auth app wrong", "-WRONGPASS invalid username-password pair or user is disabled."),
        ("auth app s3cret", "OK"),
        ("set a 1", "OK"),
        ("config get port", "*"),
        ("auth report pa55", "OK"),
        ("get a", "1"),
        ("set a 2", "-NOPERM this user may only read, and 'set' writes"),
        ("select 1", "-NOPERM this user may not use the keyspace 'db1'"),
        ("select 2", "OK"),
        ("config get port", "-NOPERM this user may not run 'config', an admin command"),
        ("client list", "-NOPERM this user may not see or end other connections"),
        ("terrane.stats", ALL_KEYSPACES),
        ("terrane.events", ALL_KEYSPACES),
        ("auth pw", "OK"),
        ("set a 2", "-NOPERM this user may not use the keyspace 'db2'"),
        ("watch a", "-NOPERM this user may not use the keyspace 'db2'"),
        ("select 0", "OK"),
        ("set a 2", "OK"),
        ("move a 1", "-NOPERM this user may not use the keyspace 'db1'"),
        ("flushall", "-NOPERM this user may not remove the keys of all databases"),
        ("reset", "RESET"),
        ("get a", "-NOAUTH Authentication required."),
        ("hello 3", "*"),
        ("hello 3 auth app s3cret", "*"),
        ("get a", "2"),
    ] {
        let found = client.run(command);
        if expected != "*" {
            assert_eq!(found, expected, "{command}");
        }
    }
    // `INFO` shows the keyspaces that the user may use.
    client.run("auth app s3cret");
    client.run("select 1");
    client.run("set b 1");
    let info = client.run("info");
    assert!(info.contains("db1:keys=1") && info.contains("db1_design:"), "{info}");
    client.run("select 0");
    client.run("auth report pa55");
    let info = client.run("info");
    assert!(info.contains("db0:keys=1") && info.contains("db0_design:"), "{info}");
    assert!(!info.contains("db1"), "{info}");
    // Large requests are refused before a client has authenticated.
    let mut client = Client::connect(server.address);
    client.send(b"*2\r\n$4\r\nauth\r\n$100000\r\n");
    assert_eq!(client.reply(), "-ERR Protocol error: invalid bulk length");
    assert!(client.is_closed());
}

/// Serves metrics at an address, and passes `check` a function that sends a request.
fn with_metrics(address: &str, users: &str, check: impl FnOnce(&dyn Fn(&str) -> String)) {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let (metrics, users) = (Some(address.parse().unwrap()), users.parse().unwrap());
    let config = Config { listen, metrics, users, ..Config::default() };
    let server = Server::bind(db, config).unwrap();
    let (address, handle) = (server.metrics_address().unwrap(), server.handle());
    let thread = std::thread::spawn(move || server.run());
    check(&|request| {
        let address = ("127.0.0.1", address.port());
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    });
    handle.end();
    thread.join().unwrap().unwrap();
}

#[test]
fn metrics_and_health_are_served_over_http() {
    with_metrics("127.0.0.1:0", "app s3cret write:*", |get| {
        let answer = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\n# EOF\n"), "{answer}");
        assert!(
            answer.contains("terrane_server_connected_clients 0\n")
                && answer.contains("terrane_log_syncs")
        );
        assert_eq!(answer.matches("# EOF").count(), 1);
        assert!(get("GET /health HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nok\n"));
        assert!(get("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(get("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
        assert!(get("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    });
}

#[test]
fn metrics_that_other_hosts_can_reach_need_a_password() {
    with_metrics("0.0.0.0:0", "app s3cret write:*", |get| {
        let answer = get("GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains("\r\nWWW-Authenticate: Basic") && !answer.contains("terrane_"));
        let basic = "GET /metrics HTTP/1.1\r\nauthorization: Basic YXBwOnMzY3JldA==\r\n\r\n";
        assert!(get(basic).starts_with("HTTP/1.1 200 "));
        assert!(get("GET /health HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok\n"));
    });
}

#[test]
fn requests_of_browsers_run_no_commands() {
    let server = TestServer::start();
    for request in [
        "POST / HTTP/1.1\r\nAccept: *\r\n\r\nset a 1\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nset a 1\r\n",
    ] {
        let mut client = server.client();
        client.send(request.as_bytes());
        assert!(client.reply().starts_with("-ERR"));
        assert!(client.is_closed());
    }
    assert_eq!(server.client().run("get a"), "(nil)");
}

/// A clock that panics in event loops.
#[derive(Debug, Default)]
struct PanickingClock(AtomicBool);

impl Clock for PanickingClock {
    fn now_micros(&self) -> u64 {
        let thread = std::thread::current();
        let is_loop = thread.name().is_some_and(|name| name.starts_with("terrane-serve-"));
        assert!(!is_loop || !self.0.load(Ordering::SeqCst), "the clock of this test panics");
        SystemClock.now_micros()
    }
}

#[test]
fn a_panic_ends_the_server_with_an_error() {
    let clock = Arc::new(PanickingClock::default());
    let options = Options::new().clock(Arc::clone(&clock) as _);
    let config = Config { workers: 2, ..Config::default() };
    let mut server = TestServer::with(&options, config);
    let (mut client, mut other) = (server.client(), server.client());
    assert_eq!(client.run("set a 1 ex 100"), "OK");
    assert_eq!(other.run("ping"), "PONG");
    clock.0.store(true, Ordering::SeqCst);
    client.send_command(&["get", "a"]);
    assert!(client.is_closed());
    // The other event loop has not panicked, but ends, too.
    let error = server.wait().unwrap_err();
    assert!(matches!(error, ServerError::Panicked { .. }), "{error}");
    assert!(error.to_string().contains("'terrane-serve-"), "{error}");
    assert!(other.is_closed());
    clock.0.store(false, Ordering::SeqCst);
    assert_eq!(server.db.get("a").unwrap().unwrap(), "1");
}
