//! Why an operation on a value failed.

/// Why an operation on a value failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The key has a value of another type.
    WrongType,
    /// A hash is too large to be copied at once.
    TooLarge,
    /// The database reported an error.
    Database(terrane::Error),
}

impl From<terrane::Error> for Fault {
    fn from(error: terrane::Error) -> Self {
        Self::Database(error)
    }
}
