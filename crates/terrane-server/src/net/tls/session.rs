//! A socket with a TLS session, which never blocks.
//!
//! 1. The session holds at most [`UNSENT_BYTES`] of records that the socket did not accept, because it takes
//!    more plaintext only once they were sent.
//! 2. It holds at most the plaintext of one read's records, because a read takes the plaintext out before it
//!    reads more records.
//! 3. A read ends after a bounded number of bytes, so a client that sends empty records keeps no other
//!    connection waiting.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};

use super::files;
use super::{Flushed, Received, UNSENT_BYTES};
use crate::base::error::ServerError;
use crate::state::config::TlsFiles;

/// The bytes of records that a connection reads at a time.
const RECORD_BYTES: usize = 128 << 10;

/// Begins sessions with the certificate of the server.
#[derive(Debug)]
pub(crate) struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// Reads and checks the certificate and the keys.
    pub(crate) fn open(files: &TlsFiles) -> Result<Self, ServerError> {
        files::load(files).map(Arc::new).map(Self)
    }

    /// Begins a session. The handshake takes place in reads.
    pub(crate) fn accept(&self, socket: TcpStream) -> io::Result<TlsStream> {
        let session = ServerConnection::new(Arc::clone(&self.0));
        let mut session = session.map_err(io::Error::other)?;
        session.set_buffer_limit(Some(UNSENT_BYTES));
        Ok(TlsStream { socket, session })
    }
}

/// A socket with a session.
#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: TcpStream,
    session: ServerConnection,
}

impl TlsStream {
    /// Returns the socket, whose events are those of the stream.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Returns whether the TLS handshake is still running.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Returns whether records wait for the client to read.
    pub(crate) fn is_blocked(&self) -> bool {
        self.session.wants_write()
    }

    /// Reads until the buffer is full or the socket is empty, and continues the handshake.
    pub(in crate::net) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let (mut bytes, mut records) = (0, 0);
        loop {
            let rest = buffer.get_mut(bytes..).unwrap_or_default();
            if rest.is_empty() || records >= RECORD_BYTES {
                return Ok(Received { bytes, has_more: true });
            }
            let end = match self.session.reader().read(rest) {
                Ok(0) => Some(ErrorKind::UnexpectedEof.into()),
                Ok(more) => {
                    bytes += more;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(error) => Some(error),
            };
            match end {
                None => {}
                // The next read reports the end.
                Some(_) if bytes > 0 => return Ok(Received { bytes, has_more: true }),
                Some(error) => return Err(error),
            }
            match self.session.read_tls(&mut self.socket) {
                Ok(more) => records += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Received { bytes, has_more: false });
                }
                Err(error) => return Err(error),
            }
            let processed = self.session.process_new_packets();
            // Sends a part of the handshake, or an alert that names the error. `close` sends the alert of a
            // failed handshake, after the failure has been counted: the client may ask for the count next.
            if processed.is_ok() || !self.is_handshaking() {
                self.flush()?;
            }
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Encrypts and sends a part of `bytes`; `None` if the peer has to read first. Records may wait
    /// afterwards.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        if !self.flush()?.is_done {
            return Ok(None);
        }
        let taken = self.session.writer().write(bytes)?;
        self.flush()?;
        Ok((taken > 0).then_some(taken))
    }

    /// Sends pending records, as far as the socket accepts them.
    pub(in crate::net) fn flush(&mut self) -> io::Result<Flushed> {
        let mut bytes = 0;
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => bytes += sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Flushed { bytes, is_done: false });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Flushed { bytes, is_done: true })
    }

    /// Sends a pending alert, or announces the end of the data to the client, so that it can distinguish the
    /// end from an attack.
    pub(crate) fn close(&mut self) {
        self.session.send_close_notify();
        // The client may be gone, or not reading.
        let _ = self.flush();
    }
}
