//! Sizes of values: `100`, or `100..400` for uniform sizes from 100 to 400.

use std::fmt;
use std::str::FromStr;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::ParseError;
use crate::random::below;

/// A size of values in bytes, or an inclusive range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueSize {
    min_bytes: usize,
    max_bytes: usize,
}

impl ValueSize {
    /// Returns a fixed size of `bytes`.
    pub const fn fixed(bytes: usize) -> Self {
        Self { min_bytes: bytes, max_bytes: bytes }
    }

    /// Returns sizes that are uniform between `min_bytes` and `max_bytes`, both included.
    ///
    /// # Errors
    /// The range ends before it starts.
    pub fn range(min_bytes: usize, max_bytes: usize) -> Result<Self, ParseError> {
        if min_bytes <= max_bytes {
            return Ok(Self { min_bytes, max_bytes });
        }
        let found = format!("{min_bytes}..{max_bytes}");
        Err(ParseError::new("value size", found, "a range whose end is not before its start"))
    }

    /// Returns the smallest size, in bytes.
    pub const fn min_bytes(self) -> usize {
        self.min_bytes
    }

    /// Returns the largest size, in bytes.
    pub const fn max_bytes(self) -> usize {
        self.max_bytes
    }

    /// Returns true if a value can have `bytes` bytes.
    #[inline]
    pub const fn contains(self, bytes: usize) -> bool {
        self.min_bytes <= bytes && bytes <= self.max_bytes
    }

    /// Draws a size from `rng`; a fixed size consumes no random number.
    #[inline]
    pub(super) fn draw(self, rng: &mut Xoshiro256PlusPlus) -> usize {
        if self.min_bytes == self.max_bytes {
            return self.min_bytes;
        }
        let sizes = (self.max_bytes - self.min_bytes) as u64 + 1;
        self.min_bytes + below(rng, sizes) as usize
    }
}

impl fmt::Display for ValueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.min_bytes)?;
        if self.min_bytes == self.max_bytes {
            return Ok(());
        }
        write!(f, "..{}", self.max_bytes)
    }
}

impl FromStr for ValueSize {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = |part: &str| {
            let expected = "a number of bytes such as 100, or a range such as 100..400";
            part.parse().map_err(|_| ParseError::new("value size", text, expected))
        };
        match text.split_once("..") {
            None => Ok(Self::fixed(number(text)?)),
            Some((min, max)) => Self::range(number(min)?, number(max)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_and_print_back() {
        for text in ["0", "100", "100..400"] {
            assert_eq!(text.parse::<ValueSize>().unwrap().to_string(), text);
        }
        assert_eq!("7..7".parse(), Ok(ValueSize::fixed(7)));
        for text in ["", "..", "5..", "4..3", "-1", "1..2..3", "10k"] {
            assert!(text.parse::<ValueSize>().is_err(), "{text}");
        }
    }
}
