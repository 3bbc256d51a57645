//! Commands over a socket, in batches.

use std::io::{Read, Write};
use std::net::TcpStream;

use terrane::Db;
use terrane_server::{Config, Server};

use crate::data::{VALUE, key};
use crate::operation::Outcome;

/// The commands of one write and one read of the socket.
const PIPELINED: u64 = 100;

/// The keys of `GET`.
const KEYS: u64 = 1_000;

/// Sends a command, `SET`, `GET` or `INCR`, to a new server `count` times.
pub(crate) fn run(command: &str, count: u64) -> Outcome {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path())?;
    for number in 0..KEYS {
        db.put(key(number), VALUE)?;
    }
    let listen = vec!["127.0.0.1:0".parse()?];
    let config = Config { listen, workers: 1, ..Config::default() };
    let server = Server::bind(db.clone(), config)?;
    let address = *server.addresses().first().ok_or("the server has no address")?;
    let handle = server.handle();
    let thread = std::thread::spawn(move || server.run());
    let mut client = TcpStream::connect(address)?;
    for first in (0..count).step_by(PIPELINED as usize) {
        let (mut requests, mut reply_bytes) = (Vec::new(), 0);
        for number in first..first + PIPELINED {
            reply_bytes += request(command, number, &mut requests)?;
        }
        client.write_all(&requests)?;
        let mut replies = vec![0; reply_bytes];
        client.read_exact(&mut replies)?;
        if replies.starts_with(b"-") {
            return Err(String::from_utf8_lossy(&replies).into());
        }
    }
    handle.end();
    thread.join().map_err(|_| "the server panicked")??;
    Ok(db.close()?)
}

/// Appends a request and returns the length of its reply.
fn request(
    command: &str,
    number: u64,
    requests: &mut Vec<u8>,
) -> Result<usize, Box<dyn std::error::Error>> {
    // `SET` and `INCR` create their keys.
    let key = key(if command == "GET" { number % KEYS } else { KEYS + number });
    let arguments: (&[&[u8]], usize) = match command {
        "SET" => (&[b"SET", &key, &VALUE], "+OK\r\n".len()),
        "GET" => (&[b"GET", &key], "$100\r\n\r\n".len() + VALUE.len()),
        "INCR" => (&[b"INCR", &key], ":1\r\n".len()),
        other => return Err(format!("no command {other}").into()),
    };
    write!(requests, "*{}\r\n", arguments.0.len())?;
    for argument in arguments.0 {
        write!(requests, "${}\r\n", argument.len())?;
        requests.extend_from_slice(argument);
        requests.extend_from_slice(b"\r\n");
    }
    Ok(arguments.1)
}
