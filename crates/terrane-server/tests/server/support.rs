//! A server in this process, and a small client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use terrane::{Db, Options};
use terrane_server::{Config, Handle, Report, Server, ServerError};

/// A server in this process.
pub(crate) struct TestServer {
    pub(crate) db: Db,
    pub(crate) address: SocketAddr,
    /// The address of metrics and health.
    pub(crate) metrics: Option<SocketAddr>,
    /// The first address for TLS.
    #[cfg(feature = "tls")]
    pub(crate) tls_address: Option<SocketAddr>,
    handle: Handle,
    thread: Option<JoinHandle<Result<Report, ServerError>>>,
    _dir: Option<tempfile::TempDir>,
}

impl TestServer {
    /// Starts a server with a database in a temporary directory.
    pub(crate) fn start() -> Self {
        Self::with(&Options::new(), Config::default())
    }

    pub(crate) fn with(options: &Options, config: Config) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = options.open(dir.path().join("db")).unwrap();
        let mut server = Self::of(db, config);
        server._dir = Some(dir);
        server
    }

    /// Starts a server for a database.
    pub(crate) fn of(db: Db, config: Config) -> Self {
        let listen = vec!["127.0.0.1:0".parse().unwrap()];
        let workers = if config.workers == 0 { 2 } else { config.workers };
        let server = Server::bind(db.clone(), Config { listen, workers, ..config }).unwrap();
        let (address, handle) = (server.addresses()[0], server.handle());
        let metrics = server.metrics_address();
        #[cfg(feature = "tls")]
        let tls_address = server.tls_addresses().first().copied();
        let thread = Some(std::thread::spawn(move || server.run()));
        Self {
            db,
            address,
            metrics,
            #[cfg(feature = "tls")]
            tls_address,
            handle,
            thread,
            _dir: None,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Ends the server, and returns its report.
    pub(crate) fn end(&mut self) -> Report {
        self.handle.end();
        self.wait().unwrap()
    }

    /// Waits until the server has ended.
    pub(crate) fn wait(&mut self) -> Result<Report, ServerError> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.handle.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client that sends commands and reads replies.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: BufReader<S>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Waits a twentieth of a second for a reply; returns the error, or `Other` if a reply arrives.
    pub(crate) fn no_reply(&mut self) -> std::io::ErrorKind {
        let timeout = |socket: &TcpStream, millis| {
            socket.set_read_timeout(Some(Duration::from_millis(millis))).unwrap();
        };
        timeout(self.stream.get_ref(), 50);
        let found = self.stream.fill_buf().map(|_| ());
        timeout(self.stream.get_ref(), 30_000);
        found.map_or_else(|error| error.kind(), |()| std::io::ErrorKind::Other)
    }
}

impl<S: Read + Write> Client<S> {
    /// Sends bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Sends a command without reading the reply.
    pub(crate) fn send_command<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        let bytes = encoded(arguments);
        self.send(&bytes);
    }

    /// Sends a command given as words separated by spaces, and returns its reply as text.
    pub(crate) fn run(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        self.call(&words)
    }

    /// Sends a command, and returns its reply as text.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> String {
        self.send_command(arguments);
        self.reply()
    }

    /// Reads a reply as text: bulk strings as they are, `(nil)`, numbers, errors with `-`, arrays in
    /// brackets.
    pub(crate) fn reply(&mut self) -> String {
        self.try_reply().unwrap_or_else(|error| panic!("no reply: {error}"))
    }

    pub(crate) fn try_reply(&mut self) -> std::io::Result<String> {
        let line = self.line()?;
        let (mark, rest) = line.split_at(1);
        let len = || rest.parse::<i64>().unwrap();
        Ok(match mark {
            "+" | ":" => rest.to_owned(),
            "-" => line,
            "_" => "(nil)".to_owned(),
            "$" | "*" if len() < 0 => "(nil)".to_owned(),
            "$" | "=" => {
                let mut bytes = vec![0; len() as usize + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                String::from_utf8(bytes)
                    .unwrap_or_else(|error| error.as_bytes().escape_ascii().to_string())
            }
            "*" | "~" | "%" | ">" => {
                let count = if mark == "%" { len() * 2 } else { len() };
                let items = (0..count).map(|_| self.try_reply()).collect::<Result<Vec<_>, _>>()?;
                format!("[{}]", items.join(" "))
            }
            _ => panic!("unexpected reply {line:?}"),
        })
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        line.truncate(line.len() - 2);
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Returns whether the server has closed the connection, after at most the read timeout.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let closed = self.stream.read_to_end(&mut rest);
        closed.is_ok_and(|_| true) || rest.is_empty()
    }
}

/// Encodes a command.
pub(crate) fn encoded<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
    out
}
