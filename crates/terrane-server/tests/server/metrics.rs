//! The port of metrics and health: slow clients, many clients, and failures.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use terrane::storage::{Fault, FaultStorage, MemoryStorage};
use terrane::{Options, WriteOptions};
use terrane_server::Config;
use terrane_testkit::wait_until;

use crate::support::TestServer;

fn with_metrics(options: &Options) -> (TestServer, SocketAddr) {
    let metrics = Some("127.0.0.1:0".parse().unwrap());
    let server = TestServer::with(options, Config { metrics, ..Config::default() });
    let address = server.metrics.unwrap();
    (server, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Sixteen half requests held up the health for half a minute, so that a probe killed a healthy server.
#[test]
fn half_requests_hold_up_nobody() {
    let (_server, address) = with_metrics(&Options::new());
    for count in [16, 200] {
        let half: Vec<TcpStream> = (0..count)
            .map(|_| {
                let mut stream = connect(address);
                stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
                stream
            })
            .collect();
        let begun = Instant::now();
        assert!(get(address, "/health").starts_with("HTTP/1.1 200 OK"), "{count}");
        // One client alone had two seconds.
        assert!(begun.elapsed() < Duration::from_secs(2), "{count}: {:?}", begun.elapsed());
        drop(half);
    }
    let metrics = get(address, "/metrics");
    let evicted =
        metrics.lines().find(|line| line.starts_with("terrane_server_evicted_scrapers_total"));
    let evicted: u64 = evicted.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    // Those of the first round may have ended before.
    assert!((200 - 64..=216).contains(&evicted), "{evicted}");
}

/// A client that reads nothing, and one that sends a byte at a time, are disconnected.
#[test]
fn a_connection_ends_after_its_time() {
    let (_server, address) = with_metrics(&Options::new());
    let mut slow = connect(address);
    let begun = Instant::now();
    loop {
        // The write after the one that finds the connection closed fails.
        let is_closed = slow.write_all(b"G").is_err();
        if is_closed {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it was not disconnected");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begun.elapsed() > Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn requests_in_pieces_and_bad_ones_are_answered() {
    let (_server, address) = with_metrics(&Options::new());
    let mut stream = connect(address);
    for part in ["GE", "T /heal", "th HTTP/1.1\r", "\n\r\n"] {
        stream.write_all(part.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200 OK") && response.ends_with("\r\n\r\nok\n"),
        "{response}"
    );
    let metrics = get(address, "/metrics?x=1");
    let (head, body) = metrics.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert!(
        body.contains("\nterrane_failed{cause=\"disk-full\"} 0\n") && body.ends_with("# EOF\n")
    );
    assert!(get(address, "/").starts_with("HTTP/1.1 404"));
    for bad in ["POST / HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n"] {
        let mut stream = connect(address);
        stream.write_all(bad.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 400"), "{bad}: {response}");
    }
}

/// The gauge and the health were those of a healthy database until a flush had failed as well.
#[test]
fn the_first_refused_write_shows_at_once_everywhere() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).log_segment_bytes(64 << 10);
    let (server, address) = with_metrics(&options);
    let mut client = server.client();
    assert!(client.run("info persistence").contains("aof_last_write_status:ok"));
    storage.set(Some(Fault {
        operation: None,
        path_contains: ".log".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::StorageFull,
    }));
    let value = [7; 10_000];
    while server.db.put_with("k", value, WriteOptions::new()).is_ok() {}
    let health = get(address, "/health");
    assert!(health.starts_with("HTTP/1.1 503") && health.contains("disk full"), "{health}");
    assert!(get(address, "/metrics").contains("\nterrane_failed{cause=\"disk-full\"} 1\n"));
    let info = client.run("info persistence");
    for wanted in ["aof_last_write_status:err", "terrane_failed:disk-full", "terrane_error:"] {
        assert!(info.contains(wanted), "{info}");
    }
    storage.set(None);
    let resumes = || server.db.put("k", "v").is_ok() && server.db.stats().error.is_none();
    wait_until(resumes, || "writes do not resume".into());
    assert!(get(address, "/health").starts_with("HTTP/1.1 200"));
    assert!(client.run("info persistence").contains("aof_last_write_status:ok"));
}
