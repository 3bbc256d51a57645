//! Repositories from user input: a directory, or a URL.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::repository::Repository;

/// Returns the repository at a location: a directory, or a URL. The scheme `file` means a directory as
/// well; others, such as `s3`, are object stores, which need the feature `object-store` of this crate.
///
/// # Errors
/// The URL is invalid, or needs a feature that this program was built without.
pub fn open(location: &OsStr) -> Result<Box<dyn Repository>> {
    let Some((text, scheme)) = location.to_str().and_then(|text| Some((text, scheme_of(text)?)))
    else {
        return Ok(Box::new(Directory::new(location)));
    };
    if scheme == "file" {
        return Ok(Box::new(Directory::new(file_path(text)?)));
    }
    open_url(text)
}

#[cfg(feature = "object-store")]
fn open_url(url: &str) -> Result<Box<dyn Repository>> {
    Ok(Box::new(crate::bucket::Bucket::from_url(url)?))
}

#[cfg(not(feature = "object-store"))]
fn open_url(url: &str) -> Result<Box<dyn Repository>> {
    Err(Error::Invalid(format!(
        "this program was built without object stores, so it cannot use '{url}'; use a directory, or build it \
         with the feature 'object-store', as 'cargo install terrane-cli --features object-store' does"
    )))
}

/// Returns the scheme of a URL. A single letter is a drive on Windows.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each));
    is_scheme.then_some(scheme)
}

/// Returns the path of a URL such as `file:///backups`.
fn file_path(url: &str) -> Result<PathBuf> {
    let invalid = || {
        Error::Invalid(format!("'{url}' is not an absolute path, such as 'file:///var/backups'"))
    };
    let rest = url.split_once(':').map_or("", |(_, rest)| rest);
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    if !path.starts_with('/') || path.contains('%') {
        return Err(invalid());
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location_of(location: &str) -> String {
        open(OsStr::new(location)).map_or_else(|error| error.to_string(), |found| found.location())
    }

    #[test]
    fn locations_are_directories_or_urls() {
        for (location, expected) in [
            ("backups", "backups"),
            ("/var/a:b", "/var/a:b"),
            ("C:\\backups", "C:\\backups"),
            ("file:///var/backups", "/var/backups"),
            ("file:/var/backups", "/var/backups"),
            ("file://localhost/var", "/var"),
        ] {
            assert_eq!(location_of(location), expected);
        }
        assert!(location_of("file://backups").contains("not an absolute path"));
        assert!(location_of("gopher://x").contains("'gopher://x'"));
        if cfg!(not(feature = "object-store")) {
            assert!(location_of("s3://bucket").contains("--features object-store"));
        }
    }
}
