//! Designs from users: as text, or as TOML in a file.
//!
//! ```toml
//! design = "leveling"        # a name of the catalogue, or an eagerness
//! T = 10
//! trigger = ["tombstone-ttl(1h)", "level-saturation"]
//! movement = ["expired-ttl", "least-overlap"]
//! granularity = "file"
//! filter = [20, 10]          # by level
//! ```
//!
//! Keys are those of the text form. Lists that the text form joins with `+` are arrays, values that
//! differ by level are arrays too, and lists that differ by level are arrays of arrays.

use std::path::Path;

use anyhow::Result;
use terrane::Design;
use terrane_policy::suggest::did_you_mean;
use terrane_policy::{ParseError, ParseErrorKind, catalogue};
use toml::{Table, Value};

use crate::error::usage;
use crate::input::toml_file;

/// Keys whose values are lists joined with `+`.
const LISTS: [&str; 2] = ["trigger", "movement"];

/// Parses a design from text, or from a TOML file if the text starts with `@`.
pub fn parse(text: &str) -> Result<Design> {
    let Some(path) = text.strip_prefix('@') else {
        return text.parse().map_err(|error| usage(explain(&error)));
    };
    let table = toml_file::read(Path::new(path))?;
    from_toml(&table).map_err(|error| usage(format!("{path}: {error}")))
}

/// The settings that are sizes of the whole tree, and grow with its data.
pub(crate) const SIZES: [&str; 3] = ["buffer", "table", "base"];

/// Returns true if a spec sets a size of the tree explicitly, instead of only naming a design.
///
/// # Errors
///
/// If the file of the spec cannot be read.
pub fn gives_sizes(text: &str) -> Result<bool> {
    if let Some(path) = text.strip_prefix('@') {
        let table: Table = toml_file::read(Path::new(path))?;
        return Ok(SIZES.iter().any(|name| table.contains_key(*name)));
    }
    let words = text.split([';', ' ']).filter_map(|word| word.split_once('='));
    Ok(words.map(|(name, _)| name.trim()).any(|name| SIZES.contains(&name)))
}

/// Formats a parse error. If the set of valid names is large, it suggests only the most similar
/// one.
fn explain(error: &ParseError) -> String {
    let found = error.found.as_str();
    let names = || catalogue::ALL.iter().map(|entry| entry.name).chain(["hybrid"]);
    if error.kind == ParseErrorKind::UnknownDesign {
        if found.contains('=') {
            return format!(
                "a design begins with a name or a layout, as in 'leveling {found}'; run 'terrane \
                 design list'"
            );
        }
        let meant = did_you_mean(found, names());
        let hint = if meant.is_empty() { "; run 'terrane design list'".to_owned() } else { meant };
        return format!("unknown design '{found}'{hint}");
    }
    error.to_string()
}

fn from_toml(table: &Table) -> Result<Design, String> {
    let Some(Value::String(name)) = table.get("design") else {
        return Err("expected design = \"NAME\", a name of the catalogue or an eagerness".into());
    };
    let rest = table.iter().filter(|(key, _)| *key != "design");
    let settings = rest.map(|(key, value)| {
        let separator = if LISTS.contains(&key.as_str()) { "+" } else { "," };
        Ok((
            key.as_str(),
            text_of(value, separator)
                .ok_or_else(|| format!("expected a value or an array for {key}, found a table"))?,
        ))
    });
    let settings = settings.collect::<Result<Vec<_>, String>>()?;
    let settings = settings.iter().map(|(key, value)| (*key, value.as_str()));
    // T comes first, because the number of level 0 runs defaults to it.
    let (first, others): (Vec<_>, Vec<_>) = settings.partition(|(key, _)| *key == "T");
    let design = Design::from_settings(name, first.into_iter().chain(others));
    design.map_err(|error| explain(&error))
}

fn text_of(value: &Value, separator: &str) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => {
            let is_by_level = values.iter().any(Value::is_array);
            let words = values.iter().map(|value| text_of(value, "+"));
            let words = words.collect::<Option<Vec<String>>>()?;
            if words.is_empty() {
                return Some("none".to_owned());
            }
            Some(words.join(if is_by_level { "," } else { separator }))
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        Value::Datetime(_) | Value::Table(_) => None,
    }
}

/// Formats a design as TOML, one setting per line.
pub fn to_toml(design: &Design) -> String {
    let name = Value::String(design.strategy.eagerness.to_string());
    let mut text = format!("design = {name}\n");
    for (key, value) in design.settings() {
        text.push_str(&format!("{key} = {}\n", value_of(key, &value)));
    }
    text
}

fn value_of(key: &str, text: &str) -> Value {
    if LISTS.contains(&key) {
        let list = |text: &str| {
            let words = if text == "none" { Vec::new() } else { split(text, '+') };
            Value::Array(words.into_iter().map(Value::String).collect())
        };
        return match &split(text, ',')[..] {
            [one] => list(one),
            levels => Value::Array(levels.iter().map(|level| list(level)).collect()),
        };
    }
    match &split(text, ',')[..] {
        [one] => word(one),
        levels => Value::Array(levels.iter().map(|level| word(level)).collect()),
    }
}

fn word(text: &str) -> Value {
    let number = text.parse().map(Value::Integer);
    number.or_else(|_| text.parse().map(Value::Float)).unwrap_or_else(|_| text.into())
}

/// Splits at separators outside parentheses.
fn split(text: &str, separator: char) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut depth = 0;
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match words.last_mut() {
            Some(last) if character != separator || depth > 0 => last.push(character),
            _ => words.push(String::new()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_text(text: &str) -> Result<Design, String> {
        let table = text.parse::<Table>().map_err(|error| error.to_string())?;
        from_toml(&table)
    }

    #[test]
    fn errors_suggest_the_most_similar_name() {
        for (text, part) in [
            ("levling", "unknown design 'levling'; did you mean 'leveling'?"),
            ("something", "unknown design 'something'; run 'terrane design list'"),
            ("leveling; triger=run-count", "did you mean 'trigger'?"),
            ("leveling; memtable=btre", "found 'btre', expected auto, btree"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn every_design_of_the_catalogue_is_the_same_in_toml() {
        for entry in catalogue::ALL {
            let design = (entry.design)();
            let text = to_toml(&design);
            assert_eq!(from_text(&text), Ok(design), "{}:\n{text}", entry.name);
        }
    }

    #[test]
    fn arrays_are_lists_and_levels() {
        let text = "design = \"leveling\"\ntrigger = [[\"run-count\"], [\"file-count(2,4)\", \"level-saturation\"]]\nfilter = [20, 0.5]\nT = 4";
        let design = from_text(text).unwrap();
        let same =
            "leveling T=4; trigger=run-count,file-count(2,4)+level-saturation; filter=20,0.5";
        assert_eq!(design, same.parse().unwrap());
        for bad in ["T = 4", "design = \"x\"", "design = \"leveling\"\nspeed = 3", "design ="] {
            assert!(from_text(bad).is_err(), "{bad}");
        }
    }
}
