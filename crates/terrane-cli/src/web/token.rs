//! The secret in the address of a live picture.

use anyhow::{Result, anyhow};

/// A secret that only those know who have the address. Other users of the machine can reach the port, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Returns a new token of 128 random bits.
    pub(crate) fn new() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| anyhow!("the system has no random bytes: {error}"))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns true if a text is this token. The time does not depend on where they differ.
    pub(crate) fn is(&self, given: Option<&str>) -> bool {
        let Some(given) = given.filter(|given| given.len() == self.0.len()) else { return false };
        let pairs = given.bytes().zip(self.0.bytes());
        pairs.fold(0, |all, (one, other)| all | (one ^ other)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_only_itself() {
        let (token, other) = (Token::new().unwrap(), Token::new().unwrap());
        assert_eq!(token.text().len(), 32);
        assert!(token.is(Some(token.text())));
        assert!(!token.is(Some(other.text())) && !token.is(Some("")) && !token.is(None));
        assert!(!token.is(token.text().get(1..)));
    }
}
