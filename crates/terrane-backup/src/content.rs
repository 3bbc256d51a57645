//! The names of objects: the SHA-256 of the contents, and their size.
//!
//! A name stands for the same contents in every backup of every database in a repository, and other
//! people may have chosen the values in a database, so nobody must be able to find two files with
//! the same hash. SHA-256 has this property, and every system has a program that computes it:
//! `sha256sum` checks a repository without this crate.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The folder of the objects in a repository.
pub(crate) const OBJECTS: &str = "objects/";

/// The hash and the size of contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId {
    sha256: [u8; 32],
    bytes: u64,
}

impl ContentId {
    /// Returns the identity of contents.
    pub fn of(contents: &[u8]) -> Self {
        let mut hasher = ContentHasher::default();
        hasher.update(contents);
        hasher.finish()
    }

    /// Returns the identity with this hash, in 64 hexadecimal digits, and size.
    pub(crate) fn from_hex(sha256: &str, bytes: u64) -> Option<Self> {
        let digits = sha256.as_bytes();
        if digits.len() != 64 || digits.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
        }
        Some(Self { sha256: hash, bytes })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the hash in 64 hexadecimal digits.
    pub fn sha256(&self) -> String {
        self.sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the name of the object with these contents in a repository.
    pub fn object(&self) -> String {
        let hash = self.sha256();
        format!("{OBJECTS}{}/{hash}-{}", &hash[..2], self.bytes)
    }

    /// Returns the identity of the object with this name; `None` for other names.
    pub(crate) fn of_object(name: &str) -> Option<Self> {
        let (_, file) = name.strip_prefix(OBJECTS)?.split_once('/')?;
        let id: Self = file.parse().ok()?;
        (id.object() == name).then_some(id)
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.sha256(), self.bytes)
    }
}

impl FromStr for ContentId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (hash, bytes) = text.split_once('-').ok_or(())?;
        Self::from_hex(hash, bytes.parse().map_err(drop)?).ok_or(())
    }
}

/// Computes a [`ContentId`] piece by piece.
#[derive(Clone, Default)]
pub(crate) struct ContentHasher {
    hasher: Sha256,
    bytes: u64,
}

impl ContentHasher {
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
    }

    pub(crate) fn finish(self) -> ContentId {
        ContentId { sha256: self.hasher.finalize().into(), bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_sha256sum() {
        let id = ContentId::of(b"abc");
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((id.sha256().as_str(), id.bytes()), (hash, 3));
        assert_eq!(id.object(), format!("objects/ba/{hash}-3"));
        assert_eq!(ContentId::of_object(&id.object()), Some(id));
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn other_names_are_no_objects() {
        let name = ContentId::of(b"abc").object();
        let hash = &name[11..75];
        for other in [
            name.to_uppercase(),
            name.replace("/ba/", "/bb/"),
            format!("{name}.new"),
            format!("objects/ba/{hash}"),
            format!("objects/ba/{hash}-03"),
            format!("objects/{hash}-3"),
            "objects/ba/x-3".into(),
        ] {
            assert_eq!(ContentId::of_object(&other), None, "{other}");
        }
    }
}
