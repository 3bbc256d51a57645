//! Where values are stored: in tables next to their keys, or separately in value files.
//!
//! Separated values are the key-value separation of WiscKey (FAST '16), RocksDB's BlobDB and Titan:
//! a value of at least the threshold goes to a value file, and tables keep a pointer to it. Merges
//! then rewrite keys and pointers, not values. In return, overwritten or deleted values remain as
//! garbage until their file is collected, and a scan reads values from several files.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;
use crate::units::{format_bytes, parse_bytes, parse_ratio_percent};

/// Where a tree stores values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Values {
    /// All values are in tables.
    #[default]
    Inline,
    /// Large values are in value files.
    Separate(ValueSeparation),
}

/// Which values are stored separately, and when value files are collected. In the text form
/// `separate(1KiB,garbage=50%,space=1.3,file=64MiB)`, only the threshold must be given.
///
/// | key in text | field | default | raising it |
/// |---|---|---|---|
/// | (first) | `threshold_bytes` | | fewer values are separated: scans are faster, merges write more |
/// | `garbage` | `garbage_percent` | 50% | collections write less, files take more space |
/// | `space` | `space_percent` | 1.3 | collections write less, files take more space |
/// | `file` | `file_bytes` | 64MiB | fewer files; a collection needs more temporary space |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueSeparation {
    /// Values of at least this many bytes are stored separately.
    pub threshold_bytes: u64,
    /// A value file is collected when this share of its bytes is garbage, in percent. At 100, no
    /// file is collected for its own garbage.
    pub garbage_percent: u32,
    /// The bytes of all value files divided by the bytes of live values, in percent, above which
    /// files are collected regardless of their own share of garbage.
    pub space_percent: u32,
    /// Target size of a value file, in bytes.
    pub file_bytes: u64,
}

/// The accepted forms, for error messages.
const FORMS: &str = "inline or separate(1KiB,garbage=50%,space=1.3,file=64MiB)";

impl ValueSeparation {
    /// Returns the default settings for a threshold in bytes.
    pub const fn at(threshold_bytes: u64) -> Self {
        Self { threshold_bytes, garbage_percent: 50, space_percent: 130, file_bytes: 64 << 20 }
    }

    /// Checks that each setting is within its range.
    ///
    /// # Errors
    /// Returns an error for the first setting out of range, with the allowed values.
    pub(super) fn validate(&self) -> Result<(), ParseError> {
        let checks = [
            // A smaller value would be no larger than the pointer that replaces it.
            (
                (32..=1 << 30).contains(&self.threshold_bytes),
                self.threshold_bytes,
                "32 bytes to 1GiB as threshold",
            ),
            (
                (1..=100).contains(&self.garbage_percent),
                self.garbage_percent.into(),
                "garbage=1% to 100%",
            ),
            (
                (105..=10_000).contains(&self.space_percent),
                self.space_percent.into(),
                "space=1.05 to 100 times the live values",
            ),
            ((1024..=1 << 40).contains(&self.file_bytes), self.file_bytes, "file=1KiB to 1TiB"),
        ];
        match checks.into_iter().find(|(holds, ..)| !holds) {
            None => Ok(()),
            Some((_, found, expected)) => {
                Err(ParseError::new("design", format!("values={self}: {found}"), expected))
            }
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "garbage" => self.garbage_percent = value.strip_suffix('%')?.trim().parse().ok()?,
            "space" => self.space_percent = parse_ratio_percent(value)?,
            "file" => self.file_bytes = parse_bytes(value).ok()?,
            _ => return None,
        }
        Some(())
    }
}

impl Values {
    /// Returns the separation settings; `None` if all values are inline.
    pub fn separation(&self) -> Option<&ValueSeparation> {
        match self {
            Self::Inline => None,
            Self::Separate(separation) => Some(separation),
        }
    }

    /// Returns true if a value of this many bytes is stored separately.
    pub fn is_separated(&self, value_bytes: u64) -> bool {
        self.separation().is_some_and(|separation| value_bytes >= separation.threshold_bytes)
    }
}

impl Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline => f.write_str("inline"),
            Self::Separate(separation) => separation.fmt(f),
        }
    }
}

impl Display for ValueSeparation {
    /// The threshold, and the settings that differ from their defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::at(self.threshold_bytes);
        write!(f, "separate({}", format_bytes(self.threshold_bytes))?;
        if self.garbage_percent != usual.garbage_percent {
            write!(f, ",garbage={}%", self.garbage_percent)?;
        }
        if self.space_percent != usual.space_percent {
            write!(f, ",space={}", f64::from(self.space_percent) / 100.0)?;
        }
        if self.file_bytes != usual.file_bytes {
            write!(f, ",file={}", format_bytes(self.file_bytes))?;
        }
        f.write_str(")")
    }
}

impl FromStr for Values {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("values", text, FORMS);
        match call(text)? {
            ("inline", None) => Ok(Self::Inline),
            // Earlier versions wrote `apart` in manifests and scripts.
            ("separate" | "apart", Some(arguments)) => {
                let mut arguments = arguments.split(',').map(str::trim);
                let threshold = parse_bytes(arguments.next().unwrap_or("")).map_err(|_| bad())?;
                let mut separation = ValueSeparation::at(threshold);
                let mut seen = Vec::new();
                for argument in arguments {
                    let (key, value) = argument.split_once('=').ok_or_else(bad)?;
                    let key = key.trim();
                    if seen.contains(&key) {
                        return Err(ParseError::new("values", argument, format!("{key} once")));
                    }
                    seen.push(key);
                    separation.set(key, value.trim()).ok_or_else(bad)?;
                }
                Ok(Self::Separate(separation))
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Design;

    #[test]
    fn values_print_and_parse_back() {
        for (text, printed) in [
            ("inline", "inline"),
            ("separate(1KiB)", "separate(1KiB)"),
            ("separate(1024, garbage=50%, space=1.30)", "separate(1KiB)"),
            (
                "separate(4000,file=1GiB,garbage=40%,space=2)",
                "separate(4000,garbage=40%,space=2,file=1GiB)",
            ),
            ("separate(64,space=1.05)", "separate(64,space=1.05)"),
        ] {
            let values: Values = text.parse().unwrap();
            assert_eq!(values.to_string(), printed);
            assert_eq!(printed.parse(), Ok(values));
            let design: Design = format!("leveling; values={text}").parse().unwrap();
            assert_eq!(design.values, values);
            assert_eq!(design.to_string().parse(), Ok(design));
        }
    }

    #[test]
    fn designs_that_do_not_name_values_store_them_inline() {
        let design: Design = "leveling".parse().unwrap();
        assert_eq!(design.values, Values::Inline);
        assert!(!design.to_string().contains("values"));
        assert!(!design.values.is_separated(u64::MAX));
    }

    #[test]
    fn designs_of_earlier_manifests_still_parse() {
        for arguments in ["(1KiB)", "(4000,garbage=40%,space=2,file=1GiB)"] {
            let design = |word: &str| format!("leveling; values={word}{arguments}");
            let earlier: Design = design("apart").parse().unwrap();
            assert_eq!(Ok(&earlier), design("separate").parse().as_ref());
            assert!(earlier.to_string().contains(&format!("values=separate{arguments}")));
        }
        let named = |name: &str| name.parse::<Design>().unwrap();
        assert_eq!(named("values-apart"), named("separated-values"));
    }

    #[test]
    fn the_threshold_itself_is_separated() {
        let values: Values = "separate(1KiB)".parse().unwrap();
        assert!(values.is_separated(1024) && !values.is_separated(1023));
    }

    #[test]
    fn settings_out_of_range_are_refused_with_the_range() {
        for (text, part) in [
            ("separate", "separate(1KiB"),
            ("separate()", "separate(1KiB"),
            ("inline(1)", "inline or"),
            ("separate(1KiB,garbage=0.3)", "garbage=50%"),
            ("separate(1KiB,garbage=30%,garbage=40%)", "garbage once"),
            ("separate(1KiB,age=3)", "space=1.3"),
            ("separate(8)", "32 bytes to 1GiB"),
            ("separate(1KiB,garbage=0%)", "1% to 100%"),
            ("separate(1KiB,space=1)", "1.05 to 100"),
            ("separate(1KiB,space=1.301)", "space=1.3"),
            ("separate(1KiB,file=12)", "1KiB to 1TiB"),
        ] {
            let error = format!("leveling; values={text}").parse::<Design>().unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }
}
