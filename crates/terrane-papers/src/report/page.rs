//! The page: for each figure the panel, the claims on it with their verdicts, and the rule that
//! judged each.

use std::fmt::Write;

use terrane_lab::host::Environment;
use terrane_lab::output::plot::{DotPlot, escaped};
use terrane_lab::report::page::{STYLE, setting};

use super::{ReportedExperiment, ReportedPanel};
use crate::judge::{ClaimOutcome, ClaimVerdict};
use crate::results::Table;

const LEGEND: &str = "\
<p class=\"soft\">Circles and dashed lines are what the paper published, squares and solid lines are \
measured here. A wide bar is the interval that the paper states, or the rounds of a measurement. A \
verdict compares the figure with the interval that the paper states, by the rule under the claim; a \
difference counts only if every round of one side beats every round of the other. A claim whose \
measurements its panel does not draw has a picture of its own: squares are the judged figures, the green \
area is the interval that the rule allows.</p>\n";

/// Returns the page of several experiments.
pub(super) fn page(all: &[ReportedExperiment<'_>]) -> String {
    let mut body = head(all);
    for one in all {
        body.push_str(&experiment(one));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Experiments</title>\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <style>\n{STYLE}\n</style>\n{body}</html>\n"
    )
}

fn head(all: &[ReportedExperiment<'_>]) -> String {
    let title = if all.len() == 1 { "The paper and here" } else { "The papers and here" };
    let rendering = escaped(&Environment::rendering());
    format!(
        "<h1>{title}</h1>\n{LEGEND}<p class=\"soft\">This page was {rendering}. Each experiment states the \
             setting of its measurement.</p>\n"
    )
}

fn chip(outcome: ClaimOutcome, count: Option<usize>) -> String {
    let class = match outcome {
        ClaimOutcome::Reproduced => "reproduced",
        ClaimOutcome::SameDirection => "same-direction",
        ClaimOutcome::Contradicted => "contradicted",
        ClaimOutcome::NotComparable => "not-comparable",
        ClaimOutcome::ByDesign => "by-design",
        ClaimOutcome::NotMeasured => "not-measured",
    };
    let count = count.map_or(String::new(), |count| format!("{count} "));
    format!("<span class=\"verdict {class}\">{count}{}</span>", outcome.words())
}

fn counts(verdicts: &[ClaimVerdict]) -> String {
    let count = |outcome| verdicts.iter().filter(|one| one.outcome == outcome).count();
    let chips = ClaimOutcome::ALL.into_iter().map(|outcome| (outcome, count(outcome)));
    let shown = chips.filter(|(_, count)| *count > 0);
    let chips: String = shown.map(|(outcome, count)| chip(outcome, Some(count))).collect();
    format!("<p class=\"counts\">{chips}</p>\n")
}

fn anchor(experiment: &str, number: &str) -> String {
    let number: String =
        number.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect();
    format!("{experiment}-{number}")
}

fn experiment(one: &ReportedExperiment<'_>) -> String {
    let name = one.experiment.name;
    let environment = one.results.environment.as_ref();
    let mut text = format!(
        "<h2 id=\"{name}\">{}</h2>\n<p>{} <small>experiment <code>{name}</code></small></p>\n{}{}",
        escaped(one.experiment.paper),
        escaped(one.experiment.about),
        environment.map_or_else(
            || "<p class=\"soft\">The setting of this measurement was not recorded.</p>\n"
                .to_owned(),
            setting
        ),
        counts(&one.verdicts)
    );
    let links = one.panels.iter().map(|panel| {
        let short = panel.panel.title.split(':').next().unwrap_or_default();
        format!("<a href=\"#{}\">{}</a>", anchor(name, &panel.number), escaped(short))
    });
    // Writing to a String cannot fail.
    let _ = writeln!(text, "<nav>{}</nav>", links.collect::<Vec<_>>().join("\n"));
    let claim = |verdict: &ClaimVerdict| claim(verdict, one.picture_of(verdict).as_ref());
    let mut shown = vec![false; one.verdicts.len()];
    for panel in &one.panels {
        let mut claims = String::new();
        for (verdict, shown) in one.verdicts.iter().zip(&mut shown) {
            // A claim on several panels appears next to the first.
            if !*shown && panel.is_of(verdict) {
                *shown = true;
                claims.push_str(&claim(verdict));
            }
        }
        text.push_str(&figure(name, panel, &claims));
    }
    let rest = one.verdicts.iter().zip(&shown).filter(|(_, shown)| !**shown);
    let (missing, rest): (Vec<&ClaimVerdict>, Vec<&ClaimVerdict>) = rest
        .map(|(verdict, _)| verdict)
        .partition(|verdict| verdict.outcome == ClaimOutcome::NotMeasured);
    let all = |verdicts: &[&ClaimVerdict]| {
        verdicts.iter().map(|verdict| claim(verdict)).collect::<String>()
    };
    if !rest.is_empty() {
        let title = if one.panels.is_empty() { "Claims" } else { "Claims without a panel" };
        let _ = writeln!(text, "<h3>{title}</h3>\n{}", all(&rest));
    }
    if !missing.is_empty() {
        let count = missing.len();
        let _ = writeln!(
            text,
            "<details><summary>Claims that were not measured: {count}</summary>\n{}</details>",
            all(&missing)
        );
    }
    text.push_str(&tables(&one.results.tables));
    text
}

fn figure(experiment: &str, panel: &ReportedPanel, claims: &str) -> String {
    let sources: String = panel
        .sources
        .iter()
        .map(|(name, source)| {
            format!("<small>{}: {}</small><br>\n", escaped(name), escaped(source))
        })
        .collect();
    let claims = match claims.is_empty() {
        true => "<p class=\"soft\">No claim on this panel alone.</p>\n",
        false => claims,
    };
    format!(
        "<section class=\"figure\" id=\"{}\">\n<div>\n{}{sources}</div>\n<div>\n{claims}</div>\n\
         </section>\n",
        anchor(experiment, &panel.number),
        panel.panel.svg()
    )
}

fn claim(verdict: &ClaimVerdict, picture: Option<&DotPlot>) -> String {
    let ClaimVerdict { says, mode, stated, rule, measured, outcome, notes, .. } = verdict;
    let mode = mode.as_ref().map_or(String::new(), |mode| format!(" · {}", escaped(mode)));
    let mut text = format!(
        "<div class=\"claim\">\n<p class=\"says\">{} {} <small>{}{mode}</small></p>\n<table>\n",
        chip(*outcome, None),
        escaped(says),
        escaped(&verdict.source())
    );
    let stated = stated.as_deref().unwrap_or("a direction only");
    for (name, value) in [("the paper", stated), ("here", measured.as_str()), ("rule", rule)] {
        let _ = writeln!(text, "<tr><td>{name}<td>{}", escaped(value));
    }
    text.push_str("</table>\n");
    if let Some(picture) = picture {
        text.push_str(&picture.svg(says));
    }
    if !notes.is_empty() {
        let notes: String = notes.iter().map(|note| format!("<li>{}\n", escaped(note))).collect();
        let _ = writeln!(text, "<ul>\n{notes}</ul>");
    }
    text + "</div>\n"
}

fn tables(tables: &[Table]) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells = cells.iter().map(|cell| format!("<{tag}>{}", escaped(cell)));
        format!("<tr>{}\n", cells.collect::<String>())
    };
    let tables = tables.iter().map(|table| {
        let rows: String = table.rows.iter().map(|cells| row("td", cells)).collect();
        format!(
            "<h3>{}</h3>\n<div class=\"wide\"><table class=\"data\">\n{}{rows}</table></div>\n",
            escaped(&table.title),
            row("th", &table.headers)
        )
    });
    let tables: String = tables.collect();
    match tables.is_empty() {
        true => tables,
        false => format!("<details><summary>All tables</summary>\n{tables}</details>\n"),
    }
}
