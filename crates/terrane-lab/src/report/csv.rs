//! Fields of CSV.

/// Returns a field, between quotation marks if it needs them.
#[must_use]
pub fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
