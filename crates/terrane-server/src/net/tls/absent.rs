//! The TLS types in a build without TLS. They have no values.

use std::io;

use mio::net::TcpStream;

use super::{Flushed, Received};
use crate::base::error::ServerError;
use crate::state::config::TlsFiles;

#[derive(Debug)]
pub(crate) enum TlsServer {}

impl TlsServer {
    /// Fails, because this build has no TLS.
    pub(crate) fn open(_: &TlsFiles) -> Result<Self, ServerError> {
        Err(ServerError::TlsAbsent)
    }

    pub(crate) fn accept(&self, _: TcpStream) -> io::Result<TlsStream> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum TlsStream {}

impl TlsStream {
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match *self {}
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_blocked(&self) -> bool {
        match *self {}
    }

    pub(in crate::net) fn read(&mut self, _: &mut [u8]) -> io::Result<Received> {
        match *self {}
    }

    pub(crate) fn write(&mut self, _: &[u8]) -> io::Result<Option<usize>> {
        match *self {}
    }

    pub(in crate::net) fn flush(&mut self) -> io::Result<Flushed> {
        match *self {}
    }

    pub(crate) fn close(&mut self) {
        match *self {}
    }
}
