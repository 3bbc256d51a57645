//! The control socket of a database that a command has open.

use std::io::{self, Write};

use clap::Args;
use terrane::Db;
use terrane_control::ControlSocket;

/// Whether a command lets others use its database.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ControlFlag {
    /// Serve no control socket, so that other commands cannot use the database meanwhile
    #[arg(long)]
    no_control: bool,
}

impl ControlFlag {
    /// Serves a database to other commands as long as the returned socket exists, if it can be
    /// served.
    pub(crate) fn serve(self, db: &Db) -> Option<ControlSocket> {
        if self.no_control { None } else { serve(db) }
    }
}

/// Serves the control socket of a database. A failure is only reported, because the database works
/// without a socket too.
pub(crate) fn serve(db: &Db) -> Option<ControlSocket> {
    match ControlSocket::serve(db) {
        Ok(socket) => Some(socket),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => None,
        Err(error) => {
            let _ = writeln!(
                io::stderr(),
                "warning: other commands cannot use the database meanwhile: {error}"
            );
            None
        }
    }
}
