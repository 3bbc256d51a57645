//! Connections over TLS, and misbehaving clients.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use terrane::Options;
use terrane_server::{Config, Limits};
use terrane_testkit::Rng;

use super::{config, file, files};
use crate::support::{Client, TestServer, encoded};

type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// A server with the certificate for `localhost`.
fn server(limits: Limits, authorities: Option<&str>) -> TestServer {
    let config = Config { limits, ..config(files("server.pem", "server.key", authorities)) };
    TestServer::with(&Options::new(), config)
}

/// Returns the settings of a client that trusts an authority, and presents a certificate if one is given.
fn client_config(authority: &str, certificate: Option<&str>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file(authority)).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match certificate {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let chain = vec![CertificateDer::from_pem_file(file(&format!("{name}.pem"))).unwrap()];
            let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

fn connect(server: &TestServer, config: ClientConfig) -> TlsClient {
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    Client { stream: BufReader::new(StreamOwned::new(session, socket(server))) }
}

fn client_of(server: &TestServer, authority: &str, certificate: Option<&str>) -> TlsClient {
    connect(server, client_config(authority, certificate))
}

fn client(server: &TestServer) -> TlsClient {
    client_of(server, "authority.pem", None)
}

/// Connects to the TLS port without a handshake.
fn socket(server: &TestServer) -> TcpStream {
    let socket = TcpStream::connect(server.tls_address.unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

/// Sends a command, and returns the error of the connection.
fn failure(mut client: TlsClient) -> io::Error {
    let sent = client.stream.get_mut().write_all(&encoded(&["ping"]));
    sent.and_then(|()| client.try_reply()).unwrap_err()
}

/// Reads from a socket until the server closes it.
fn read_to_end(mut socket: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match socket.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => bytes,
    }
}

#[test]
fn commands_run_over_tls() {
    let server = server(Limits::default(), None);
    let (mut tls, mut plain) = (client(&server), server.client());
    assert_eq!(tls.run("set a 1"), "OK");
    assert_eq!(plain.run("get a"), "1");
    assert_eq!(tls.run("hello 3 setname x").lines().count(), 1);
    let list = plain.run("client list");
    assert!(list.contains(&format!("laddr={}", server.tls_address.unwrap())), "{list}");
    // Messages of channels.
    assert_eq!(tls.run("subscribe news"), "[subscribe news 1]");
    assert_eq!(plain.run("publish news hello"), "1");
    assert_eq!(tls.reply(), "[message news hello]");
    // A TLS port answers plaintext clients with an alert; a plaintext port answers TLS clients with an error.
    let mut socket = socket(&server);
    socket.write_all(b"ping\r\n").unwrap();
    assert!(!read_to_end(socket).starts_with(b"+PONG"));
}

#[test]
fn long_values_and_pipelines_pass_through_tls() {
    let server = server(Limits::default(), None);
    let mut client = client(&server);
    let value = |number: usize| format!("{number:08}").repeat((1 << 17) + number);
    let pipeline: Vec<u8> =
        (0..8).flat_map(|n| encoded(&["set", &n.to_string(), &value(n)])).collect();
    client.send(&pipeline);
    (0..8).for_each(|_| assert_eq!(client.reply(), "OK"));
    // The replies are longer than the buffers of the system, and the client begins to read late.
    let pipeline: Vec<u8> = (0..64).flat_map(|n| encoded(&["get", &(n % 8).to_string()])).collect();
    client.send(&pipeline);
    std::thread::sleep(Duration::from_millis(100));
    (0..64).for_each(|n| assert!(client.reply() == value(n % 8), "{n}"));
    let pipeline: Vec<u8> = (0..20_000).flat_map(|_| encoded(&["incr", "n"])).collect();
    client.send(&pipeline);
    (1..=20_000).for_each(|n| assert_eq!(client.reply(), n.to_string()));
}

#[test]
fn a_client_without_a_certificate_of_the_authority_is_refused() {
    let server = server(Limits::default(), Some("authority.pem"));
    let mut known = client_of(&server, "authority.pem", Some("client"));
    assert_eq!(known.run("set a 1"), "OK");
    let without = failure(client(&server));
    assert!(without.to_string().contains("CertificateRequired"), "{without}");
    let stranger = failure(client_of(&server, "authority.pem", Some("strange-client")));
    assert!(stranger.to_string().contains("UnknownCA"), "{stranger}");
    // A server certificate does not authenticate a client.
    failure(client_of(&server, "authority.pem", Some("server")));
    // The plaintext port asks for no certificate.
    let info = server.client().run("info stats");
    assert!(info.contains("failed_tls_handshakes:3"), "{info}");
}

#[test]
fn a_client_that_trusts_another_authority_does_not_connect() {
    let server = server(Limits::default(), None);
    let error = failure(client_of(&server, "stranger.pem", None));
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    assert_eq!(client(&server).run("ping"), "PONG");
}

#[test]
fn a_client_that_never_finishes_the_handshake_is_disconnected() {
    let limits = Limits { tls_handshake: Duration::from_millis(300), ..Limits::default() };
    let server = server(limits, None);
    // Nothing, the beginning of a record, and a complete greeting with nothing after it.
    let mut greeting = Vec::new();
    client(&server).stream.get_mut().conn.write_tls(&mut greeting).unwrap();
    let began = Instant::now();
    let sockets: Vec<TcpStream> = [&[][..], &greeting[..20], &greeting[..]]
        .into_iter()
        .map(|bytes| {
            let mut socket = socket(&server);
            socket.write_all(bytes).unwrap();
            socket
        })
        .collect();
    let mut other = client(&server);
    assert_eq!(other.run("ping"), "PONG");
    sockets.into_iter().for_each(|socket| drop(read_to_end(socket)));
    assert!(began.elapsed() >= Duration::from_millis(300));
    // The time limit no longer applies after the handshake.
    assert_eq!(other.run("ping"), "PONG");
}

#[test]
fn random_bytes_at_the_port_of_tls_never_stop_the_server() {
    let server = server(Limits::default(), None);
    let mut rng = Rng::new(7);
    let mut greeting = Vec::new();
    client(&server).stream.get_mut().conn.write_tls(&mut greeting).unwrap();
    for _ in 0..200 {
        let mut socket = socket(&server);
        let mut bytes = if rng.below(2) == 0 { greeting.clone() } else { vec![0; 300] };
        for _ in 0..rng.below(8) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        // The server may already have refused the first bytes.
        let _ = socket.write_all(&bytes);
    }
    assert_eq!(client(&server).run("ping"), "PONG");
}

#[test]
fn a_damaged_record_ends_the_connection() {
    let server = server(Limits::default(), None);
    let mut client = client(&server);
    assert_eq!(client.run("ping"), "PONG");
    // The header of an application data record, with contents that are not encrypted.
    let mut record = vec![23, 3, 3, 0, 40];
    record.extend([7; 40]);
    client.stream.get_mut().sock.write_all(&record).unwrap();
    let error = client.try_reply().unwrap_err();
    assert!(error.to_string().contains("BadRecordMac"), "{error}");
}

#[test]
fn both_sides_say_that_nothing_follows() {
    let mut server = server(Limits::default(), None);
    let (mut first, mut second) = (client(&server), client(&server));
    assert_eq!(second.run("ping"), "PONG");
    // Commands sent before the goodbye are answered.
    let stream = first.stream.get_mut();
    stream.write_all(&encoded(&["set", "a", "1"])).unwrap();
    stream.conn.send_close_notify();
    stream.conn.complete_io(&mut stream.sock).unwrap();
    assert_eq!(first.reply(), "OK");
    let ended = |client: &mut TlsClient| client.stream.read(&mut [0; 9]).map_err(|e| e.kind());
    assert_eq!(ended(&mut first), Ok(0));
    // Closing a socket without a goodbye would be an error.
    server.end();
    assert_eq!(ended(&mut second), Ok(0));
}

#[test]
fn short_records_are_put_together() {
    let server = server(Limits::default(), None);
    let mut config = client_config("authority.pem", None);
    // The smallest size that the library allows, where a record's overhead exceeds its contents.
    config.max_fragment_size = Some(32);
    let mut client = connect(&server, config);
    let value = "0123456789".repeat(100_000);
    let pipeline: Vec<u8> = (0..4).flat_map(|_| encoded(&["set", "a", &value])).collect();
    client.send(&pipeline);
    (0..4).for_each(|_| assert_eq!(client.reply(), "OK"));
    assert!(client.run("get a") == value);
}

#[test]
fn a_client_of_tls_that_reads_nothing_is_disconnected() {
    let limits = Limits { slow_client: Duration::from_millis(300), ..Limits::default() };
    let server = server(limits, None);
    let mut stuck = client(&server);
    assert_eq!(stuck.call(&["set", "a", &"x".repeat(8 << 20)]), "OK");
    for _ in 0..4 {
        stuck.send_command(&["get", "a"]);
    }
    let mut other = server.client();
    let began = Instant::now();
    while other.run("info clients").contains("connected_clients:2") {
        assert!(began.elapsed() < Duration::from_secs(20), "the client is still connected");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Its buffers are freed, too.
    assert!(other.run("info memory").contains("client_buffers:0"));
}
