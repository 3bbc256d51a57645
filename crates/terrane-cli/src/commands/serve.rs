//! `terrane serve`: a database for clients of Redis.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags, and the settings made from them |
//! | [`address`] | addresses to listen on, by number or by name |
//! | [`tls`] | the flags of TLS |
//! | [`log`] | the log on standard error |
//! | [`advice`] | the answer to `TERRANE.ADVISE` |
//! | [`picture`] | the live picture in a browser |

mod address;
mod advice;
mod arguments;
mod log;
mod picture;
mod tls;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use terrane::Db;
use terrane_server::{Handle, Report, Server};

use self::arguments::ServeArguments;
use self::log::LogArguments;
use self::picture::Picture;
use crate::control::ControlFlag;
use crate::engine_flags::EngineFlags;
use crate::exit::Exit;
use crate::output;
use crate::web::live::WebFlags;
use terrane_lab::host::interrupt::INTERRUPTED;
use terrane_lab::input::spec;
use terrane_lab::output::human;

const EXAMPLES: &str = "\
Examples:
  terrane serve ./db
  terrane serve ./db --listen 127.0.0.1:7000 --durability sync
  terrane serve ./db --unix-socket /run/terrane/socket
  terrane serve ./db --listen 0.0.0.0:6379 --users users.txt
  terrane serve ./db --tls-listen 0.0.0.0:6380 --tls-cert cert.pem --tls-key key.pem --users users.txt
  redis-cli set user:1 Ada

A file of users has a line for each: name, password, access. The access is read
or write, a colon, and the keyspaces: `app s3cret write:default,db2`, or * for all.

SIGTERM and Ctrl-C finish the commands that have arrived, and close the database; the
second one ends the process at once.";

/// Serve a database to clients of Redis, over TCP, TLS and Unix sockets
///
/// Strings, keys, expiry, bits, transactions and administration work as in Redis. Keys are stored
/// as they are: database 0 is the keyspace `default`, database 3 the keyspace `db3`. The database
/// is created if it does not exist. The durability determines the guarantee of an answer to a
/// write: with `sync`, the write survives a power failure, and writes that arrive together share a
/// sync.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The directory of the database
    db: PathBuf,

    /// The design of a new database; see `terrane design list`
    #[arg(long, value_name = "SPEC")]
    design: Option<String>,

    #[command(flatten)]
    serve: ServeArguments,

    #[command(flatten)]
    log: LogArguments,

    #[command(flatten)]
    control: ControlFlag,

    #[command(flatten)]
    web: WebFlags,

    #[command(flatten)]
    engine: EngineFlags,
}

impl ServeArgs {
    /// Serves the database until a signal or a client ends the server.
    pub(crate) fn run(&self) -> Result<Exit> {
        self.log.begin();
        let mut config = self.serve.config()?;
        terrane_server::raise_file_limit(config.limits.connections);
        let mut options = self.engine.options()?;
        if let Some(text) = &self.design {
            options = options.design(spec::parse(text)?);
        }
        let db = options.on_event(config.log.listener()).open(&self.db)?;
        config.advisor = Some(advice::advisor(&db));
        let control = self.control.serve(&db);
        let served = self.serve(&db, config);
        drop(control);
        let closed = close(db);
        let report = served?;
        closed?;
        let Report { connections, commands, uptime, .. } = report;
        let counted = human::counted(commands, "command");
        let of = human::counted(connections, "connection");
        tracing::info!(
            target: "terrane_server",
            kind = "stopped",
            connections,
            commands,
            "closed the database; served {counted} of {of}; uptime {}",
            human::duration(uptime)
        );
        Ok(Exit::Done)
    }

    fn serve(&self, db: &Db, config: terrane_server::Config) -> Result<Report> {
        let wanted = config.limits.connections;
        let server = Server::bind(db.clone(), config)?;
        let picture = self.web.web.then(|| Picture::begin(&self.web, db)).transpose()?;
        if server.connections_max() < wanted {
            tracing::warn!(
                target: "terrane_server",
                kind = "limited",
                "at most {} connections, because the process may not open more files; raise `ulimit -n`",
                server.connections_max()
            );
        }
        end_on_signal(server.handle())?;
        self.print_banner(&server, picture.as_ref())?;
        Ok(server.run()?)
    }

    fn print_banner(&self, server: &Server, picture: Option<&Picture>) -> Result<()> {
        let mut out = output::text();
        let db = server.database();
        let tcp = server.addresses().into_iter().map(|address| address.to_string());
        let unix = self.serve.unix_socket().map(|path| path.display().to_string());
        let tls = server.tls_addresses().into_iter().map(|address| format!("{address} (TLS)"));
        let addresses: Vec<String> = tcp.chain(tls).chain(unix).collect();
        writeln!(out, "database    {}", db.path().display())?;
        writeln!(out, "durability  {}", db.durability())?;
        writeln!(out, "listening   {}", addresses.join(", "))?;
        if let Some(metrics) = server.metrics_address() {
            writeln!(out, "metrics     http://{metrics}/metrics")?;
        }
        if let Some(picture) = picture {
            writeln!(out, "picture     {}", picture.address)?;
        }
        out.flush()?;
        Ok(())
    }
}

/// How long closing may take before a line of the log says that it goes on.
const SLOW: Duration = Duration::from_secs(5);

/// Closes the database, which flushes what is in memory.
fn close(db: Db) -> terrane::Result<()> {
    let (done, is_done) = channel::<()>();
    let begun = Instant::now();
    let watch = std::thread::spawn(move || {
        while is_done.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(
                target: "terrane_server",
                kind = "slow-shutdown",
                "still closing the database after {} s; it flushes what is in memory",
                begun.elapsed().as_secs()
            );
        }
    });
    let closed = db.close();
    drop(done);
    // It only prints.
    let _ = watch.join();
    closed
}

/// Ends the server on the first signal, and the process on the second one.
fn end_on_signal(server: Handle) -> Result<()> {
    let is_ending = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if is_ending.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
        server.end_because("a signal arrived");
    })
    .context("cannot handle signals")
}
