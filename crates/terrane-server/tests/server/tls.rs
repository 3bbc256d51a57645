//! TLS. The certificates in `tls/` are made by `tls/generate`.

use std::path::{Path, PathBuf};

use terrane::Options;
use terrane_server::{Config, Server, ServerError, TlsFiles};

#[cfg(feature = "tls")]
mod connections;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/tls").join(name)
}

fn files(certificate: &str, key: &str, authorities: Option<&str>) -> TlsFiles {
    TlsFiles {
        certificate: file(certificate),
        key: file(key),
        client_authorities: authorities.map(file),
    }
}

fn config(tls: TlsFiles) -> Config {
    let tls_listen = vec!["127.0.0.1:0".parse().unwrap()];
    Config { tls_listen, tls: Some(tls), ..Config::default() }
}

/// Returns why a server does not start.
fn refusal(config: Config) -> ServerError {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path().join("db")).unwrap();
    Server::bind(db, config).unwrap_err()
}

#[test]
fn other_hosts_need_a_password_over_tls() {
    let config = Config {
        tls_listen: vec!["0.0.0.0:0".parse().unwrap()],
        ..config(files("server.pem", "server.key", Some("authority.pem")))
    };
    assert!(matches!(refusal(config), ServerError::Unprotected { .. }));
}

#[test]
fn tls_needs_a_certificate() {
    let config = Config { tls: None, ..config(files("server.pem", "server.key", None)) };
    assert!(matches!(refusal(config), ServerError::NoCertificate));
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_names_the_feature() {
    let error = refusal(config(files("server.pem", "server.key", None)));
    assert!(matches!(error, ServerError::TlsAbsent));
    assert!(error.to_string().contains("--features tls"), "{error}");
}

#[cfg(feature = "tls")]
#[test]
fn files_that_clients_would_refuse_are_errors_at_the_start() {
    for (certificate, key, authorities, name, expected) in [
        ("expired.pem", "server.key", None, "expired.pem", "days ago; renew it"),
        ("future.pem", "server.key", None, "future.pem", "check the clock"),
        ("server.pem", "client.key", None, "client.key", "not the key of the certificate in"),
        ("server.key", "server.key", None, "server.key", "no certificate in the PEM format"),
        ("server.pem", "server.pem", None, "server.pem", "no private key"),
        ("none.pem", "server.key", None, "none.pem", "No such file"),
        ("server.pem", "server.key", Some("old-authority.pem"), "old-authority.pem", "days ago"),
        ("server.pem", "server.key", Some("client.key"), "client.key", "no certificate"),
        ("broken.pem", "server.key", None, "broken.pem", "for TLS: "),
    ] {
        let error = refusal(config(files(certificate, key, authorities)));
        assert!(matches!(error, ServerError::Tls { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("{name} for TLS: ")), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
