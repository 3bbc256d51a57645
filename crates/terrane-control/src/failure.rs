//! A request that failed, as plain data that crosses the socket.

use std::fmt;

use serde::{Deserialize, Serialize};
use terrane::{Error, ErrorKind, Options};

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of error, in the words of [`ErrorKind`]: `invalid`, `closed`, `cancelled` and so on.
    pub kind: String,
    /// What failed and what to do, in a sentence.
    pub text: String,
    /// The invalid option, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        let name = serde_json::to_value(kind).ok();
        let name = name.and_then(|name| name.as_str().map(str::to_owned));
        Self { kind: name.unwrap_or_default(), text: text.into(), option: None }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, text)
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the process that had the database open has closed it")
    }

    /// Returns the kind of error; `None` if this version does not know it.
    pub fn kind(&self) -> Option<ErrorKind> {
        serde_json::from_value(self.kind.clone().into()).ok()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let option = match &error {
            Error::Invalid(invalid) => {
                let known = Options::table().iter().any(|info| info.name == invalid.what);
                known.then(|| invalid.what.to_owned())
            }
            _ => None,
        };
        Self { option, ..Self::new(error.kind(), error.to_string()) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}
