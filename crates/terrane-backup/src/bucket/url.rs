//! Object stores from URLs, with the settings in environment variables.

use std::sync::Arc;

use object_store::{ObjectStoreScheme, parse_url_opts};
use url::Url;

use super::Bucket;
use crate::error::{Error, Result};

/// The prefixes of variables with settings. Others, such as `TOKEN`, may belong to other programs.
const PREFIXES: &[&str] = &["AWS_", "AZURE_", "GOOGLE_"];

/// How long a request may take: one piece at 30 KB/s.
const TIMEOUT: &str = "300s";

impl Bucket {
    /// Returns the repository at a URL such as `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`
    /// or `memory:///`, with the settings in the environment variables that the builders of [`object_store`]
    /// document, such as `AWS_ACCESS_KEY_ID`.
    ///
    /// # Errors
    /// The URL or a setting is invalid.
    pub fn from_url(url: &str) -> Result<Self> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::with_settings(url, variables)
    }

    fn with_settings(url: &str, variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let invalid = |why: &dyn std::fmt::Display| {
            Error::Invalid(format!("cannot use '{url}' as a repository: {why}"))
        };
        let parsed = Url::parse(url).map_err(|error| invalid(&error))?;
        let (scheme, _) = ObjectStoreScheme::parse(&parsed)
            .map_err(|_| invalid(&"use a directory, or a URL such as s3://bucket/prefix"))?;
        if scheme == ObjectStoreScheme::Http {
            return Err(invalid(&"web servers do not accept large objects in parts"));
        }
        // Fails if the program has already chosen another provider, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let settings = settings(variables);
        let (store, prefix) = parse_url_opts(&parsed, settings).map_err(|error| invalid(&error))?;
        Self::new(Arc::from(store), prefix.as_ref(), printable(parsed))
            .map_err(|error| invalid(&error))
    }
}

/// Returns the settings: our defaults, changed by the environment.
fn settings(variables: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let is_setting = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let variables: Vec<(String, String)> =
        variables.filter(|(name, value)| is_setting(name) && !value.is_empty()).collect();
    let mut settings = vec![("timeout".to_owned(), TIMEOUT.to_owned())];
    // An endpoint without TLS is an explicit choice.
    let is_plain = |(name, value): &(String, String)| {
        name.starts_with("AWS_ENDPOINT") && value.starts_with("http://")
    };
    if variables.iter().any(is_plain) {
        settings.push(("aws_allow_http".to_owned(), "true".to_owned()));
    }
    settings.extend(variables);
    settings
}

/// Returns a URL for messages: without a password, and without a query, which may have a signature.
fn printable(mut url: Url) -> String {
    // Fails only for a URL that cannot have a password.
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    fn with(url: &str, variables: &[(&str, &str)]) -> Result<Bucket> {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Bucket::with_settings(url, variables)
    }

    #[test]
    fn urls_name_stores_and_prefixes() {
        let region = ("AWS_REGION", "eu-central-1");
        let account = ("AZURE_STORAGE_ACCOUNT_NAME", "account");
        for (url, prefix) in [
            ("s3://bucket", ""),
            ("s3://bucket/one/two", "one/two"),
            ("s3://bucket/one/", "one"),
            ("https://bucket.s3.eu-central-1.amazonaws.com/one", "one"),
            ("az://container/one", "one"),
            ("memory:///one", "one"),
        ] {
            let bucket = with(url, &[region, account]).unwrap();
            assert_eq!(bucket.prefix.as_ref(), prefix, "{url}");
            assert_eq!(bucket.location(), url);
        }
    }

    #[test]
    fn invalid_urls_and_settings_are_named() {
        for (url, variables, expected) in [
            ("gopher://x", &[][..], "such as s3://bucket/prefix"),
            ("s3://", &[], "s3://"),
            ("https://example.com/dav", &[], "large objects in parts"),
            ("s3://bucket", &[("AWS_ALLOW_HTTP", "maybe")], "maybe"),
        ] {
            let error = with(url, variables).unwrap_err().to_string();
            assert!(error.contains(url) && error.contains(expected), "{error}");
        }
        // The variables of other programs are ignored.
        assert!(with("s3://bucket", &[("ALLOW_HTTP", "maybe")]).is_ok());
    }

    #[test]
    fn an_endpoint_without_tls_may_be_used_and_messages_have_no_secrets() {
        let of = |name: &str, value: &str| settings([(name.into(), value.into())].into_iter());
        let allows = |settings: Vec<(String, String)>| {
            settings.iter().any(|(name, value)| name == "aws_allow_http" && value == "true")
        };
        assert!(allows(of("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")));
        assert!(!allows(of("AWS_ENDPOINT_URL", "https://127.0.0.1:9000")));
        let url = Url::parse("https://me:secret@bucket.s3.amazonaws.com/one?signature=secret");
        assert_eq!(printable(url.unwrap()), "https://me@bucket.s3.amazonaws.com/one");
    }
}
