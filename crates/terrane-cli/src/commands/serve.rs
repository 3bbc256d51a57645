//! `terrane serve`: a database for clients of Redis.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags, and the settings made from them |
//! | [`tls`] | the flags of TLS |
//! | [`advice`] | the answer to `TERRANE.ADVISE` |

mod advice;
mod arguments;
mod tls;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use clap::Args;
use terrane::Db;
use terrane_server::{Handle, Report, Server};

use self::arguments::ServeArguments;
use crate::control::ControlFlag;
use crate::engine_flags::EngineFlags;
use crate::exit::Exit;
use crate::output;
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
    control: ControlFlag,

    #[command(flatten)]
    engine: EngineFlags,
}

impl ServeArgs {
    /// Serves the database until a signal or a client ends the server.
    pub(crate) fn run(&self) -> Result<Exit> {
        let mut config = self.serve.config()?;
        terrane_server::raise_file_limit(config.limits.connections);
        let mut options = self.engine.options()?;
        if let Some(text) = &self.design {
            options = options.design(spec::parse(text)?);
        }
        let db = options.open(&self.db)?;
        config.advisor = Some(advice::advisor(&db));
        let control = self.control.serve(&db);
        let served = self.serve(&db, config);
        drop(control);
        let closed = db.close();
        let report = served?;
        closed?;
        let Report { connections, commands, uptime, .. } = report;
        let commands = human::counted(commands, "command");
        let connections = human::counted(connections, "connection");
        let _ = writeln!(
            io::stderr(),
            "closed the database after {commands} of {connections} in {}",
            human::duration(uptime)
        );
        Ok(Exit::Done)
    }

    fn serve(&self, db: &Db, config: terrane_server::Config) -> Result<Report> {
        let wanted = config.limits.connections;
        let server = Server::bind(db.clone(), config)?;
        if server.connections_max() < wanted {
            let _ = writeln!(
                io::stderr(),
                "at most {} connections, because the process may not open more files; raise `ulimit -n`",
                server.connections_max()
            );
        }
        end_on_signal(server.handle())?;
        self.print_banner(&server)?;
        Ok(server.run()?)
    }

    fn print_banner(&self, server: &Server) -> Result<()> {
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
        out.flush()?;
        Ok(())
    }
}

/// Ends the server on the first signal, and the process on the second one.
fn end_on_signal(server: Handle) -> Result<()> {
    let is_ending = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if is_ending.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
        server.end();
    })
    .context("cannot handle signals")
}
