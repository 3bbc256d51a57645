//! The flags of TLS.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use terrane_server::TlsFiles;

use super::address::Addresses;
use terrane_lab::input::quantity::some_time;

const HEADING: &str = "TLS";

/// Where to listen for TLS, and with which files.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct TlsArguments {
    /// Listen for TLS on this address; repeatable. Without `--listen`, the server opens no TCP port
    /// for plaintext. The command has to be built with the feature `tls`
    #[arg(long, value_name = "HOST:PORT", requires_all = ["tls_cert", "tls_key"],
          value_parser = Addresses::parse)]
    tls_listen: Vec<Addresses>,

    /// The certificate of the server, in the PEM format, followed by the intermediate certificates
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in the PEM format
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_key: Option<PathBuf>,

    /// Accept only clients with a certificate of an authority in this file, in the PEM format
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_ca: Option<PathBuf>,

    /// Disconnect a client that has not finished the handshake after this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    tls_handshake_timeout: Duration,
}

impl TlsArguments {
    /// Returns the addresses.
    pub(super) fn listen(&self) -> &[Addresses] {
        &self.tls_listen
    }

    /// Returns the files.
    pub(super) fn files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            certificate: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            client_authorities: self.tls_ca.clone(),
        })
    }

    /// Returns the time for a handshake.
    pub(super) fn handshake_timeout(&self) -> Duration {
        self.tls_handshake_timeout
    }
}
