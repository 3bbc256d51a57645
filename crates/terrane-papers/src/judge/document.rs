//! Writes the results of an experiment and the verdicts on its claims as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use terrane_lab::output::markdown;

use super::claims::{ClaimFile, VERDICTS};
use super::expression::Expression;
use super::verdict::{ClaimOutcome, ClaimVerdict, counted};
use crate::results::{Results, Table};

/// A line of a section that a table with this title replaces: `[table: TITLE]`.
const TABLE_LINE: &str = "[table: ";

impl ClaimFile {
    /// Returns the document of an experiment: an introduction, sections, the claims with their
    /// verdicts, and the tables.
    #[must_use]
    pub fn document(&self, results: &Results) -> String {
        let verdicts = self.judge(results);
        let counts = Expression::Text(counted(verdicts.iter().map(|verdict| verdict.outcome)));
        let counts = BTreeMap::from([(VERDICTS.to_owned(), counts)]);
        let scope = self.scope(results, &counts, None);
        let environment = results.environment.as_ref();
        let stamp = environment.map_or(String::new(), |one| one.markdown() + "\n");
        let introduction = self.introduction.fill(&scope);
        let mut text = format!("# {}\n\n{stamp}{}\n", self.title, introduction.trim_end());
        for (title, section) in &self.sections {
            let filled = section.fill(&scope);
            let _ = writeln!(text, "\n## {title}\n\n{}", with_tables(filled.trim_end(), results));
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "\n## Claims\n\n{}\n## Figures\n", claims_table(&verdicts));
        for table in results.tables.iter().filter(|table| !table.is_in_section) {
            let _ = writeln!(text, "\n### {}\n", table.title);
            if !table.introduction.is_empty() {
                let _ = writeln!(text, "{}\n", table.introduction);
            }
            write_table(&mut text, table);
        }
        text
    }
}

/// Replaces each line that names a table with that table.
fn with_tables(text: &str, results: &Results) -> String {
    let mut filled = String::new();
    for line in text.lines() {
        let title = line.strip_prefix(TABLE_LINE).and_then(|rest| rest.strip_suffix(']'));
        match title.and_then(|title| results.tables.iter().find(|table| table.title == title)) {
            Some(table) => write_table(&mut filled, table),
            None => {
                let _ = writeln!(filled, "{line}");
            }
        }
    }
    filled.trim_end().to_owned()
}

fn write_table(text: &mut String, table: &Table) {
    let headers: Vec<&str> = table.headers.iter().map(String::as_str).collect();
    text.push_str(&markdown::table(&headers, &table.rows));
}

/// Returns the claims with their verdicts, in Markdown.
#[must_use]
pub fn claims_table(verdicts: &[ClaimVerdict]) -> String {
    let has_modes = verdicts.iter().any(|verdict| verdict.mode.is_some());
    let (mode, line) = if has_modes { (" mode |", "---|") } else { ("", "") };
    let mut text = format!(
        "| source | the paper says |{mode} its figure | here | verdict |\n|---|---|{line}---|---|---|\n"
    );
    for verdict in verdicts {
        let ClaimVerdict { says, mode, stated, measured, outcome, notes, .. } = verdict;
        let mode = match mode {
            Some(mode) => format!("{mode} | "),
            None if has_modes => "| ".to_owned(),
            None => String::new(),
        };
        let stated = stated.as_deref().unwrap_or("");
        let words = match outcome {
            ClaimOutcome::Contradicted => format!("**{}**", outcome.words()),
            _ => outcome.words().to_owned(),
        };
        let verdict_and_notes = [words].iter().chain(notes).cloned().collect::<Vec<_>>().join("; ");
        let source = verdict.source();
        let _ = writeln!(
            text,
            "| {source} | {says} | {mode}{stated} | {measured} | {verdict_and_notes} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Metric;

    const METRICS: &[&[Metric]] =
        &[&[Metric { name: "cost", about: "" }, Metric { name: "machine", about: "" }]];

    const CLAIMS: &str = r#"
title = "Costs"
introduction = """
Measured on {machine}. {verdicts}.
"""

[[section]]
title = "Which one?"
text = """
The cheaper one costs {min(cost[ours][*])}.

[table: both]
"""

[[claim]]
figure = "Fig. 1"
says = "a is cheaper"
modes = ["published", "ours"]
metric = "cost[b] / cost[a]"
paper = 3
unit = "x"
direction = "> 1"
shown = "{x:x}"
explanation = [{ text = "b is sorted", figure = "cost[b]", bound = "< 2" }]
"#;

    #[test]
    fn documents_hold_claims_and_tables() {
        let mut results = Results::new("test", METRICS);
        results.record_text("machine", "two cores");
        for (mode, key, cost) in [
            ("published", "a", 1.0),
            ("published", "b", 3.0),
            ("ours", "a", 2.0),
            ("ours", "b", 1.0),
        ] {
            results.record("cost", &[mode, key], cost);
        }
        let row = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
        results.table_for_section("both", &["", "cost"], vec![row("a", "2"), row("b", "1")]);
        results.table("Fig. 1: costs", &["", "cost"], vec![row("a", "1")]);
        let document = ClaimFile::parse(CLAIMS).unwrap().document(&results);
        assert_eq!(
            document,
            "# Costs\n\nMeasured on two cores. 2 checks: 1 reproduced, 0 same direction, \
             1 contradicted, 0 not comparable, 0 ours differs by design.\n\n## Which one?\n\n\
             The cheaper one costs 1.00.\n\n|  | cost |\n|---|---:|\n| a | 2 |\n| b | 1 |\n\n\
             ## Claims\n\n| source | the paper says | mode | its figure | here | verdict |\n\
             |---|---|---|---|---|---|\n\
             | Fig. 1 | a is cheaper | published | 3× | 3.00× | reproduced |\n\
             | Fig. 1 | a is cheaper | ours | 3× | 0.50× | **contradicted**; b is sorted |\n\n\
             ## Figures\n\n### Fig. 1: costs\n\n|  | cost |\n|---|---:|\n| a | 1 |\n"
        );
    }
}
