//! The types for platforms without Unix sockets, where no database is served.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use terrane::Db;

use crate::failure::Failure;
use crate::protocol::{Info, Reply, Request};
use crate::watch::Watch;

/// A socket in the directory of a database; not available on this platform.
#[derive(Debug)]
pub struct ControlSocket(Infallible);

impl ControlSocket {
    /// Fails: this platform has no control socket.
    ///
    /// # Errors
    /// Always.
    pub fn serve(_: &Db) -> io::Result<Self> {
        let text = "a control socket is not available on this platform";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }
}

/// A connection to the process that has a database open; not available on this platform.
#[derive(Debug)]
pub struct Client(Infallible);

impl Client {
    /// Returns `None`: no process serves a database on this platform.
    ///
    /// # Errors
    /// None.
    pub fn connect(_: impl AsRef<Path>) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    /// Returns the process that serves the socket.
    pub fn info(&self) -> &Info {
        match self.0 {}
    }

    /// Sends a request.
    ///
    /// # Errors
    /// None.
    pub fn ask(&mut self, _: &Request, _: &mut dyn Watch) -> Result<Reply, Failure> {
        match self.0 {}
    }
}
