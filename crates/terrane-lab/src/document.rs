//! Claims and tables as Markdown.

use std::fmt::Write as _;

/// What is said, and what came out.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Where it is said.
    pub source: &'static str,
    /// The statement.
    pub says: &'static str,
    /// What was measured.
    pub measured: String,
    /// Whether the measurement agrees with the statement.
    pub holds: bool,
    /// Why it does not hold, where that is known.
    pub why: &'static str,
}

/// A document that grows.
#[derive(Debug, Default)]
pub struct Document {
    /// The claims so far.
    pub claims: Vec<Claim>,
    figures: String,
}

impl Document {
    /// Adds a claim; `why` is kept only if it does not hold.
    pub fn claim(
        &mut self,
        source: &'static str,
        says: &'static str,
        (measured, holds): (String, bool),
        why: &'static str,
    ) {
        let why = if holds { "" } else { why };
        self.claims.push(Claim { source, says, measured, holds, why });
    }

    /// A table; the first column is text, the others are numbers.
    pub fn table(&mut self, title: &str, headers: &[&str], rows: &[Vec<String>]) {
        let _ = writeln!(self.figures, "\n### {title}\n");
        self.figures.push_str(&table(headers, rows));
    }

    /// A paragraph among the tables.
    pub fn text(&mut self, text: &str) {
        let _ = writeln!(self.figures, "\n{text}");
    }

    /// All of it after an introduction.
    pub fn write(&self, introduction: &str) -> String {
        let mut text = introduction.to_owned();
        text.push_str("\n## Claims\n\n| source | said | here | holds |\n|---|---|---|---|\n");
        for Claim { source, says, measured, holds, why } in &self.claims {
            let holds = if *holds { "yes" } else { "**no**" };
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let _ = writeln!(text, "| {source} | {says} | {measured} | {holds}{why} |");
        }
        text.push_str("\n## Figures\n");
        text.push_str(&self.figures);
        text
    }
}

/// A table in Markdown.
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
