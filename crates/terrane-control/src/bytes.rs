//! Bytes and paths in JSON: a string if they are UTF-8, `{"hex":"00ff"}` otherwise.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that may not be UTF-8, such as a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a string, or {\"hex\":\"...\"}")]
enum TextOrHex {
    Text(String),
    Hex { hex: String },
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = String::from_utf8(self.0.clone()).map(TextOrHex::Text);
        let hex = || self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        text.unwrap_or_else(|_| TextOrHex::Hex { hex: hex() }).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match TextOrHex::deserialize(deserializer)? {
            TextOrHex::Text(text) => Ok(Self(text.into_bytes())),
            TextOrHex::Hex { hex } => {
                let pair = |pair: &[u8]| {
                    let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
                    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
                };
                let bytes = hex.as_bytes().chunks(2).map(pair).collect::<Option<Vec<u8>>>();
                bytes.map(Self).ok_or_else(|| serde::de::Error::custom("`hex` is not hexadecimal"))
            }
        }
    }
}

/// A path for `#[serde(with)]`.
pub(crate) mod path {
    use super::{Bytes, Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Bytes(path.as_os_str().as_encoded_bytes().to_vec()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let Bytes(bytes) = Bytes::deserialize(from)?;
        #[cfg(unix)]
        let path = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes);
        #[cfg(not(unix))]
        let path = String::from_utf8(bytes).map_err(serde::de::Error::custom)?;
        Ok(PathBuf::from(path))
    }
}
