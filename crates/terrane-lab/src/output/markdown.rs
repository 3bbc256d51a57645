//! Tables in Markdown.

use std::fmt::Write as _;

/// Formats a table: text in the first column, numbers in the others.
#[must_use]
pub fn table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|", headers.join(" | "));
    for (index, _) in headers.iter().enumerate() {
        text.push_str(if index == 0 { "---|" } else { "---:|" });
    }
    text.push('\n');
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}
