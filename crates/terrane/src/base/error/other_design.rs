//! The error of a keyspace whose design is not the requested one.

use std::fmt;
use std::path::PathBuf;

use terrane_policy::Design;

/// The maximum number of differing settings that the message names.
const SETTINGS_MAX: usize = 5;

/// A keyspace has a different design from the one it was opened with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OtherDesign {
    /// The database.
    pub path: PathBuf,
    /// The keyspace.
    pub keyspace: String,
    /// The design of the keyspace.
    pub stored: Design,
    /// The design that it was opened with.
    pub requested: Design,
}

impl fmt::Display for OtherDesign {
    /// One line: the differing settings, and how to change the design.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, keyspace, stored, requested } = self;
        let differences = stored.differences(requested);
        let names = |text: fn(&terrane_policy::design::Difference) -> &str| {
            let texts = differences.iter().take(SETTINGS_MAX).map(|difference| {
                let value = text(difference);
                difference.key.map_or_else(|| value.to_owned(), |key| format!("{key}={value}"))
            });
            texts.collect::<Vec<_>>().join(", ")
        };
        let (stored, wanted) = (names(|one| &one.first), names(|one| &one.second));
        write!(f, "keyspace '{keyspace}' has another design: {stored} instead of {wanted}")?;
        if differences.len() > SETTINGS_MAX {
            write!(f, ", and {} more settings", differences.len() - SETTINGS_MAX)?;
        }
        let (dir, design) = (quoted(&path.display().to_string()), quoted(&requested.summary()));
        write!(f, "; open it with `design_if_new` or `design_or_change`, or run: ")?;
        write!(f, "terrane design set {dir} ")?;
        if keyspace != "default" {
            write!(f, "--keyspace {} ", quoted(keyspace))?;
        }
        f.write_str(&design)
    }
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(keyspace: &str, stored: &str, requested: &str) -> String {
        let [stored, requested] = [stored, requested].map(|text| text.parse().unwrap());
        OtherDesign { path: "my db".into(), keyspace: keyspace.into(), stored, requested }
            .to_string()
    }

    #[test]
    fn the_message_names_only_what_differs_and_a_command_that_a_shell_reads() {
        assert_eq!(
            message("k's", "tiering T=4", "tiering T=5"),
            "keyspace 'k's' has another design: T=4, L0=4 instead of T=5, L0=5; open it with \
             `design_if_new` or `design_or_change`, or run: terrane design set 'my db' --keyspace \
             'k'\\''s' 'tiering T=5'"
        );
        assert_eq!(
            message("default", "leveling; filter=5", "leveling"),
            "keyspace 'default' has another design: filter=5 instead of filter=10; open it with \
             `design_if_new` or `design_or_change`, or run: terrane design set 'my db' leveling"
        );
    }

    #[test]
    fn a_message_about_many_settings_stays_short() {
        let text = message(
            "default",
            "tiering T=4",
            "leveling T=3; buffer=4KiB; filter=3; block=512B; compression=lz4; memtable=skiplist",
        );
        assert!(text.contains(" more settings; ") && !text.contains('\n'), "{text}");
    }
}
