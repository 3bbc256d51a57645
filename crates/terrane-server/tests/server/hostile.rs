//! Clients that send nonsense, send slowly, never read, or come in crowds.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use terrane::Options;
use terrane_server::{Config, Limits};
use terrane_testkit::Rng;

use crate::support::{Client, TestServer, encoded};

fn with_limits(limits: Limits) -> TestServer {
    TestServer::with(&Options::new(), Config { limits, ..Config::default() })
}

#[test]
fn a_million_small_commands_in_one_pipeline_are_answered_in_order() {
    let server = TestServer::start();
    let mut client = server.client();
    let mut writer = client.stream.get_ref().try_clone().unwrap();
    let count = 1_000_000;
    let thread = std::thread::spawn(move || {
        let batch = b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n".repeat(1000);
        for _ in 0..count / 1000 {
            writer.write_all(&batch).unwrap();
        }
    });
    let mut expected = Vec::new();
    for number in 1..=count {
        write!(expected, ":{number}\r\n").unwrap();
    }
    let mut found = vec![0; expected.len()];
    client.stream.read_exact(&mut found).unwrap();
    assert!(found == expected);
    thread.join().unwrap();
}

#[test]
fn a_client_that_writes_everything_before_it_reads_is_answered() {
    let server = TestServer::start();
    let mut client = server.client();
    // More replies than the buffers of both sockets hold.
    let value = vec![b'x'; 100_000];
    assert_eq!(client.call(&[&b"set"[..], b"k", &value]), "OK");
    client.send(&b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(500));
    for _ in 0..500 {
        assert_eq!(client.reply().len(), value.len());
    }
}

#[test]
fn a_client_that_never_reads_is_disconnected_and_disturbs_nobody() {
    let limits = Limits { output_bytes: 1 << 20, ..Limits::default() };
    let server = with_limits(limits);
    let (mut deaf, mut other) = (server.client(), server.client());
    let value = vec![b'x'; 100_000];
    other.call(&[&b"set"[..], b"k", &value]);
    let requests = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(10);
    let begun = Instant::now();
    while deaf.stream.get_mut().write_all(&requests).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was not disconnected");
        assert_eq!(other.run("ping"), "PONG");
    }
    assert!(other.run("info stats").contains("client_output_buffer_limit_disconnections:1"));
    // A single reply longer than the limit, too.
    let mut greedy = server.client();
    for _ in 0..20 {
        greedy.send_command(&["mget", "k", "k", "k", "k", "k", "k", "k", "k", "k", "k", "k"]);
    }
    assert!(greedy.reply().starts_with("-ERR the reply is longer than 1048576 bytes"));
}

#[test]
fn a_client_that_stops_reading_is_disconnected_after_a_while() {
    let limits = Limits { slow_client: Duration::from_millis(300), ..Limits::default() };
    let server = with_limits(limits);
    let (mut deaf, mut other) = (server.client(), server.client());
    other.call(&[&b"set"[..], b"k", &vec![b'x'; 1 << 20]]);
    deaf.send(&b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(20));
    let begun = Instant::now();
    while other.run("info clients").contains("connected_clients:2") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was not disconnected");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn idle_clients_are_disconnected_if_so_configured() {
    let limits = Limits { idle: Some(Duration::from_secs(1)), ..Limits::default() };
    let server = with_limits(limits);
    let (mut idle, mut busy) = (server.client(), server.client());
    assert_eq!(idle.run("ping"), "PONG");
    for _ in 0..25 {
        assert_eq!(busy.run("ping"), "PONG");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(idle.is_closed());
    assert_eq!(busy.run("ping"), "PONG");
}

#[test]
fn requests_are_limited() {
    let limits =
        Limits { request_bytes: 10_000, bulk_bytes: 5000, arguments: 20, ..Limits::default() };
    let server = with_limits(limits);
    for (request, expected) in [
        (b"*21\r\n".to_vec(), "-ERR Protocol error: invalid multibulk length"),
        (b"*2\r\n$3\r\nGET\r\n$5001\r\n".to_vec(), "-ERR Protocol error: invalid bulk length"),
        (b"*1\r\nGET".to_vec(), "-ERR Protocol error: expected '$', got 'G'"),
        (vec![b'x'; 20_000], "-ERR Protocol error: too big inline request"),
        (
            encoded(&[&b"mset"[..], b"a", &[b'x'; 4000], b"b", &[b'x'; 4000], b"c", &[b'x'; 4000]]),
            "-ERR Protocol error: a request has at most 10000 bytes",
        ),
    ] {
        let mut client = server.client();
        assert_eq!(client.run("ping"), "PONG");
        // The server closes the connection while the client writes.
        let _ = client.stream.get_mut().write_all(&request);
        assert_eq!(client.reply(), expected);
        assert!(client.is_closed());
    }
    let mut client = server.client();
    assert_eq!(client.call(&[&b"append"[..], b"k", &[b'x'; 5000]]), "5000");
    let error = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(client.run("append k x"), error);
    assert_eq!(client.run("setbit k 9999999 1"), error);
    assert_eq!(client.run("setrange k 5000 x"), error);
    // Queued commands count as one request.
    client.run("multi");
    for _ in 0..2 {
        assert_eq!(client.call(&[&b"set"[..], b"k", &[b'x'; 4000]]), "QUEUED");
    }
    assert!(client.call(&[&b"set"[..], b"k", &[b'x'; 4000]]).starts_with("-ERR the transaction"));
    assert!(client.run("exec").starts_with("-EXECABORT"));
}

#[test]
fn connections_are_limited() {
    let server = with_limits(Limits { connections: 3, ..Limits::default() });
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.run("ping"), "PONG"));
    let mut fourth = server.client();
    assert_eq!(fourth.reply(), "-ERR max number of clients reached");
    assert!(fourth.is_closed());
    drop(clients.pop());
    let begun = Instant::now();
    while !server.client().run("ping").starts_with("PONG") {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn the_buffers_of_all_clients_together_are_limited() {
    let server = with_limits(Limits { buffer_bytes: 4 << 20, ..Limits::default() });
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for client in &mut clients {
        // A request that never ends.
        let _ = client.stream.get_mut().write_all(b"*2\r\n$3\r\nGET\r\n$3000000\r\n");
        let _ = client.stream.get_mut().write_all(&vec![b'x'; 1 << 20]);
    }
    let mut other = server.client();
    let begun = Instant::now();
    loop {
        let info = other.run("info");
        let number = |name: &str| -> u64 {
            let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.parse().unwrap()
        };
        let (buffers, connected) = (number("client_buffers:"), number("connected_clients:"));
        if connected < 9 && buffers <= 4 << 20 {
            assert!(connected > 1, "some are served");
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{buffers} bytes of {connected}");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(other.run("set a 1"), "OK");
}

#[test]
fn the_largest_client_pays_for_too_large_buffers() {
    let limits = Limits { buffer_bytes: 1_300_000, ..Limits::default() };
    let config = Config { limits, workers: 1, ..Config::default() };
    let server = TestServer::with(&Options::new(), config);
    let (mut large, mut other) = (server.client(), server.client());
    // Watched keys take a known number of bytes: 957,600.
    for part in 0..9 {
        let keys = (0..100).map(|key| format!("{:01000}", part * 100 + key));
        let watch: Vec<String> = std::iter::once("watch".to_owned()).chain(keys).collect();
        assert_eq!(large.call(&watch), "OK");
    }
    assert_eq!(other.call(&[&b"set"[..], b"k", &[b'x'; 400_000]]), "OK");
    assert!(large.is_closed());
    assert_eq!(other.run("strlen k"), "400000");
}

#[test]
fn half_requests_wait_and_cost_nothing_to_others() {
    let server = TestServer::start();
    let (mut slow, mut other) = (server.client(), server.client());
    for byte in encoded(&["set", "slow key", "value"]) {
        slow.send(&[byte]);
        assert_eq!(other.run("ping"), "PONG");
    }
    assert_eq!(slow.reply(), "OK");
    // A request that the client leaves incomplete does not count as sent.
    let mut gone = server.client();
    gone.send(&encoded(&["set", "gone", "value"])[..30]);
    drop(gone);
    assert_eq!(other.run("get gone"), "(nil)");
    assert_eq!(other.call(&["get", "slow key"]), "value");
}

#[test]
fn random_bytes_never_stop_the_server() {
    let server = TestServer::start();
    let mut rng = Rng::new(5);
    let pieces: [&[u8]; 14] = [
        b"*1\r\n",
        b"*3\r\n",
        b"$3\r\n",
        b"\r\n",
        b"SET",
        b"GET",
        b"$-1\r\n",
        b"*-1\r\n",
        b"multi\r\n",
        b"exec\r\n",
        b"get a\r\n",
        b"\0",
        b"scan 0\r\n",
        b"$1\r\na\r\n",
    ];
    for _ in 0..200 {
        let mut client = server.client();
        for _ in 0..rng.below(30) {
            let bytes = match rng.below(4) {
                0 => (0..rng.below(50)).map(|_| rng.below(256) as u8).collect(),
                _ => rng.pick(&pieces).to_vec(),
            };
            if client.stream.get_mut().write_all(&bytes).is_err() {
                break;
            }
        }
    }
    assert_eq!(server.client().run("ping"), "PONG");
}

/// Returns the resident memory of this process.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_connection_has_no_buffers() {
    let server = TestServer::start();
    let count = 400;
    let mut warm: Vec<Client> = (0..50).map(|_| server.client()).collect();
    warm.iter_mut().for_each(|client| assert_eq!(client.run("set a 1"), "OK"));
    let before = resident();
    let clients: Vec<std::net::TcpStream> = (0..count)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(server.address).unwrap();
            stream.write_all(b"set a 1\r\n").unwrap();
            let mut reply = [0; 5];
            stream.read_exact(&mut reply).unwrap();
            stream
        })
        .collect();
    // Other tests of this process use memory concurrently, so the limit is generous.
    let each = resident().saturating_sub(before) / count as u64;
    assert!(each < 100_000, "{each} bytes for each connection");
    assert!(warm[0].run("info memory").contains("client_buffers:0"));
    drop(clients);
}
