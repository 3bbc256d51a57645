//! The flags of `terrane serve`, and the settings made from them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use terrane_server::{Config, KeyspaceEvents, Limits, Users};

use super::address::{Addresses, flatten};
use super::tls::TlsArguments;
use terrane_lab::input::quantity::{bytes_in, count_in, some_time};

/// The port of Redis.
const DEFAULT_ADDRESS: &str = "127.0.0.1:6379";

const LIMITS: &str = "Limits";

/// Where to listen, who may connect, and limits.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArguments {
    /// Listen on all addresses of this host; repeatable. Port 0 is any free port [default: 127.0.0.1:6379, unless
    /// there is a Unix socket or an address for TLS]
    #[arg(long, value_name = "HOST:PORT", value_parser = Addresses::parse)]
    listen: Vec<Addresses>,

    /// Listen on a Unix socket that only this user may use
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,

    /// The permissions of the Unix socket, in octal; 770 lets the group of the process use it
    #[arg(long, value_name = "MODE", default_value = "700", requires = "unix_socket",
          value_parser = file_mode)]
    unix_socket_mode: u32,

    /// Answer HTTP requests for /metrics, in the OpenMetrics format, and /health at this address
    #[arg(long, value_name = "HOST:PORT", value_parser = Addresses::parse)]
    metrics: Option<Addresses>,

    /// The password of every client. Other users of this host can see the arguments of a process;
    /// `--users` avoids that
    #[arg(long, value_name = "TEXT", conflicts_with = "users")]
    password: Option<String>,

    /// The file of users: names, passwords and access
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,

    /// Listen on addresses that other hosts can reach without a password
    #[arg(long)]
    insecure: bool,

    /// The number of databases for SELECT
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = count_in::<usize>(1..=10_000))]
    databases: usize,

    /// The threads that serve connections [default: one per core, at most 4]
    #[arg(long, value_name = "N", value_parser = count_in::<usize>(1..=256))]
    workers: Option<usize>,

    /// Record commands that take at least this time in the slow log
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = some_time)]
    slow_command: Duration,

    /// Announce changes of keys on channels; KEA for all, see Redis's notify-keyspace-events
    #[arg(long, value_name = "LETTERS", default_value = "", hide_default_value = true)]
    notify_keyspace_events: KeyspaceEvents,

    /// The number of connections
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = LIMITS,
          value_parser = count_in::<usize>(1..=1_000_000))]
    max_connections: usize,

    /// The size of a request [default: an eighth of the memory of the process, at most 256MiB]
    #[arg(long, value_name = "BYTES", help_heading = LIMITS,
          value_parser = bytes_in::<usize>(1024..=4_000_000_000))]
    max_request: Option<usize>,

    /// The size of one argument of a request, and of a value [default: half of a request]
    #[arg(long, value_name = "BYTES", help_heading = LIMITS,
          value_parser = bytes_in::<usize>(1024..=1 << 30))]
    max_argument: Option<usize>,

    /// The arguments of a request
    #[arg(long, value_name = "N", default_value = "1_048_576", help_heading = LIMITS,
          value_parser = count_in::<usize>(16..=100_000_000))]
    max_arguments: usize,

    /// The replies that a client may leave unread before it is disconnected [default: as --max-request]
    #[arg(long, value_name = "BYTES", help_heading = LIMITS,
          value_parser = bytes_in::<usize>(64 << 10..=1 << 40))]
    max_output: Option<usize>,

    /// The buffers of all connections [default: a quarter of the memory of the process, at most 1GiB]
    #[arg(long, value_name = "BYTES", help_heading = LIMITS,
          value_parser = bytes_in::<usize>(1 << 20..=1 << 40))]
    max_buffers: Option<usize>,

    /// Close connections without requests for this time [default: never]
    #[arg(long, value_name = "TIME", help_heading = LIMITS, value_parser = some_time)]
    idle_timeout: Option<Duration>,

    /// Disconnect a client that reads none of its replies for this time
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = LIMITS,
          value_parser = some_time)]
    slow_client_timeout: Duration,

    #[command(flatten)]
    tls: TlsArguments,
}

/// Parses the permissions of a file.
fn file_mode(text: &str) -> Result<u32, &'static str> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or("expected three octal digits, such as 700 or 770")
}

impl ServeArguments {
    /// Returns the path of the Unix socket.
    pub(super) fn unix_socket(&self) -> Option<&Path> {
        self.unix_socket.as_deref()
    }

    /// Returns the settings of the server.
    pub(super) fn config(&self) -> Result<Config> {
        let mut listen = flatten(&self.listen);
        if listen.is_empty() && self.unix_socket.is_none() && self.tls.listen().is_empty() {
            listen.push(DEFAULT_ADDRESS.parse()?);
        }
        let default = Limits::default();
        Ok(Config {
            listen,
            tls_listen: flatten(self.tls.listen()),
            tls: self.tls.files(),
            unix_socket: self.unix_socket.clone(),
            unix_socket_mode: self.unix_socket_mode,
            metrics: self.metrics.as_ref().and_then(|found| found.all().first().copied()),
            workers: self.workers.unwrap_or(0),
            databases: self.databases,
            users: self.users()?,
            insecure: self.insecure,
            slow_command: Some(self.slow_command),
            keyspace_events: self.notify_keyspace_events,
            limits: Limits {
                connections: self.max_connections,
                request_bytes: self.max_request.unwrap_or(default.request_bytes),
                bulk_bytes: self.max_argument.unwrap_or(default.bulk_bytes),
                arguments: self.max_arguments,
                output_bytes: self.max_output.unwrap_or(default.output_bytes),
                buffer_bytes: self.max_buffers.unwrap_or(default.buffer_bytes),
                idle: self.idle_timeout,
                slow_client: self.slow_client_timeout,
                tls_handshake: self.tls.handshake_timeout(),
            },
            ..Config::default()
        })
    }

    fn users(&self) -> Result<Users> {
        if let Some(password) = &self.password {
            return Ok(Users::with_password(password));
        }
        let Some(path) = &self.users else { return Ok(Users::default()) };
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        text.parse().with_context(|| format!("cannot use {}", path.display()))
    }
}
