//! The certificate of the server, its key, and the authorities that certify clients.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};

use crate::base::error::{ServerError, TlsProblem};
use crate::state::config::TlsFiles;

/// Reads the files, and checks that clients can use them.
pub(super) fn load(files: &TlsFiles) -> Result<ServerConfig, ServerError> {
    let provider = Arc::new(ring::default_provider());
    let TlsFiles { certificate, key, client_authorities } = files;
    let at = |path: &Path, problem| ServerError::Tls { path: path.to_owned(), problem };
    let chain = certificates(certificate).map_err(|problem| at(certificate, problem))?;
    for one in &chain {
        check_time(one, &provider).map_err(|problem| at(certificate, problem))?;
    }
    let private = private_key(key).map_err(|problem| at(key, problem))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| at(certificate, refused(error)))?;
    let builder = match client_authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier = client_verifier(path, &provider);
            builder.with_client_cert_verifier(verifier.map_err(|problem| at(path, problem))?)
        }
    };
    let config = builder.with_single_cert(chain, private);
    config.map_err(|error| match error {
        Error::InconsistentKeys(_) => {
            at(key, TlsProblem::KeyMismatch { certificate: certificate.clone() })
        }
        Error::InvalidCertificate(_) => at(certificate, refused(error)),
        _ => at(key, refused(error)),
    })
}

fn refused(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TlsProblem {
    TlsProblem::Refused(error.into())
}

/// Reads the certificates of a file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsProblem> {
    let text = std::fs::read(path).map_err(TlsProblem::Unreadable)?;
    let found: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(refused)?;
    if found.is_empty() { Err(TlsProblem::NoCertificate) } else { Ok(found) }
}

/// Reads the first private key of a file.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsProblem> {
    let text = std::fs::read(path).map_err(TlsProblem::Unreadable)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        PemError::NoItemsFound => TlsProblem::NoKey,
        error => refused(error),
    })
}

/// Checks that a certificate is valid now. The verifier checks the times first, so its other errors do not
/// matter; the server need not know the authority that issued the certificate.
fn check_time(
    certificate: &CertificateDer<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<(), TlsProblem> {
    let mut itself = RootCertStore::empty();
    itself.add(certificate.clone().into_owned()).map_err(refused)?;
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(itself), Arc::clone(provider));
    let now = UnixTime::now();
    let verified = builder.build().map_err(refused)?.verify_client_cert(certificate, &[], now);
    match verified {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            let seconds = now.as_secs().saturating_sub(not_after.as_secs());
            Err(TlsProblem::Expired { since: Duration::from_secs(seconds) })
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => {
            let seconds = not_before.as_secs().saturating_sub(now.as_secs());
            Err(TlsProblem::NotValidYet { until: Duration::from_secs(seconds) })
        }
        _ => Ok(()),
    }
}

/// Returns the verifier of client certificates. An expired authority may stay in the file next to its
/// successor, but is not trusted.
fn client_verifier(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsProblem> {
    let mut trusted = RootCertStore::empty();
    let mut problem = None;
    for authority in certificates(path)? {
        match check_time(&authority, provider) {
            Ok(()) => trusted.add(authority).map_err(refused)?,
            Err(found) => problem = Some(found),
        }
    }
    if let Some(problem) = problem.filter(|_| trusted.is_empty()) {
        return Err(problem);
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), Arc::clone(provider));
    builder.build().map_err(refused)
}
