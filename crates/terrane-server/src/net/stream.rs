//! Sockets of each kind.

use std::io::{self, Read, Write};

use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use super::tls::{Flushed, Received, TlsStream};

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Registers the socket for reads and writes. Readiness is edge-triggered, so a registration never
    /// changes.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => registry.register(stream, token, interest),
            #[cfg(unix)]
            Self::Unix(stream) => registry.register(stream, token, interest),
            Self::Tls(stream) => registry.register(stream.socket(), token, interest),
        }
    }

    /// Returns whether the TLS handshake is still running.
    pub(super) fn is_handshaking(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.is_handshaking())
    }

    /// Returns whether encrypted bytes wait for the client to read.
    pub(super) fn is_blocked(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.is_blocked())
    }

    /// Reads the bytes that have arrived, up to the buffer's length. Fails at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let read = match self {
            Self::Tcp(stream) => retry(|| stream.read(buffer)),
            #[cfg(unix)]
            Self::Unix(stream) => retry(|| stream.read(buffer)),
            Self::Tls(stream) => return stream.read(buffer),
        };
        match would_block(read)? {
            Some(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            // A short read has emptied the socket; a new event reports later bytes.
            Some(bytes) => Ok(Received { bytes, has_more: bytes == buffer.len() }),
            None => Ok(Received { bytes: 0, has_more: false }),
        }
    }

    /// Writes once; `None` if the peer has to read first.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        would_block(match self {
            Self::Tcp(stream) => retry(|| stream.write(bytes)),
            #[cfg(unix)]
            Self::Unix(stream) => retry(|| stream.write(bytes)),
            Self::Tls(stream) => return stream.write(bytes),
        })
    }

    /// Sends pending encrypted bytes, as far as the socket accepts them.
    pub(super) fn flush(&mut self) -> io::Result<Flushed> {
        match self {
            Self::Tls(stream) => stream.flush(),
            _ => Ok(Flushed { bytes: 0, is_done: true }),
        }
    }

    /// Says goodbye to the client. The socket is closed when the stream is dropped.
    pub(super) fn close(&mut self) {
        if let Self::Tls(stream) = self {
            stream.close();
        }
    }
}

fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
