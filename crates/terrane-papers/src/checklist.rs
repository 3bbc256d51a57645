//! The items of the papers' checklist with their states, and the page that shows them:
//! `docs/papers/README.md`.
//!
//! `papers/items.toml` has the items, `papers/verdicts.json` the latest verdict on each claim.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde::Deserialize;
use terrane_lab::output::markdown;

use crate::experiments;
use crate::figures::PaperFile;
use crate::judge::{ClaimOutcome, ClaimVerdict};
use crate::results::Results;

const ITEMS: &str = include_str!("../papers/items.toml");
const VERDICTS: &str = include_str!("../papers/verdicts.json");

/// How far an item is implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ItemState {
    Whole,
    Partly,
    Missing,
}

impl ItemState {
    const ALL: [Self; 3] = [Self::Whole, Self::Partly, Self::Missing];

    const fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Partly => "partly",
            Self::Missing => "missing",
        }
    }
}

/// The number, the state, the contents, and the tests and figures that show it.
#[derive(Debug, Clone, Deserialize)]
struct Item(String, ItemState, String, String);

impl Item {
    /// Returns the tests and figures that show the item.
    fn shown(&self) -> impl Iterator<Item = &str> {
        self.3.split(';').map(str::trim).filter(|one| !one.is_empty())
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperItems {
    letters: String,
    title: String,
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemFile {
    paper: Vec<PaperItems>,
}

/// The latest verdict on each claim, by the key of the claim.
#[derive(Debug, Clone, Default)]
pub struct LatestVerdicts {
    by_claim: BTreeMap<String, ClaimOutcome>,
}

fn key(experiment: &str, verdict: &ClaimVerdict) -> String {
    let mode = verdict.mode.as_deref().unwrap_or("");
    [experiment, &verdict.figure, &verdict.says, mode].join(" | ")
}

impl LatestVerdicts {
    /// Returns the verdicts that were stored when this program was built.
    ///
    /// # Errors
    /// If they are malformed.
    pub fn stored() -> Result<Self> {
        let by_claim = serde_json::from_str(VERDICTS).context("in papers/verdicts.json")?;
        Ok(Self { by_claim })
    }

    /// Replaces the stored verdicts on an experiment's claims with the verdicts on `results`.
    ///
    /// # Errors
    /// If the experiment is unknown.
    pub fn take(&mut self, results: &Results) -> Result<()> {
        let name = &results.experiment;
        let prefix = format!("{name} | ");
        self.by_claim.retain(|claim, _| !claim.starts_with(&prefix));
        for verdict in experiments::judge(results)? {
            self.by_claim.insert(key(name, &verdict), verdict.outcome);
        }
        Ok(())
    }

    /// Returns the verdicts as JSON.
    ///
    /// # Errors
    /// Never in practice.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(&self.by_claim)? + "\n")
    }

    fn of(&self, experiment: &str, claim: &ClaimVerdict) -> Option<ClaimOutcome> {
        self.by_claim.get(&key(experiment, claim)).copied()
    }
}

fn papers() -> Result<Vec<PaperItems>> {
    let file: ItemFile = toml::from_str(ITEMS).context("in papers/items.toml")?;
    Ok(file.paper)
}

/// A claim without measurements.
struct NamedClaim {
    experiment: &'static str,
    claim: ClaimVerdict,
}

/// Returns all claims in the order of the experiments.
fn claims() -> Result<Vec<NamedClaim>> {
    let mut all = Vec::new();
    for experiment in experiments::ALL {
        let nothing = Results::new(experiment.name, experiment.metrics);
        let judged = experiment.claims()?.judge(&nothing);
        all.extend(
            judged.into_iter().map(|claim| NamedClaim { experiment: experiment.name, claim }),
        );
    }
    Ok(all)
}

/// Returns the items of the checklist that a claim names: `S2-98` of `S2-98 O1, TA I`.
fn items_of(number: &str) -> impl Iterator<Item = &str> {
    let is_item = |word: &&str| {
        word.split_once('-').is_some_and(|(paper, number)| {
            paper.len() <= 2 && number.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    number.split([' ', ',']).filter(is_item)
}

/// Returns the page of all items and claims, in Markdown.
///
/// # Errors
/// If a file of items or claims is malformed.
pub fn page(verdicts: &LatestVerdicts) -> Result<String> {
    let (papers, claims) = (papers()?, claims()?);
    let mut text = introduction(&papers, &claims, verdicts);
    for paper in &papers {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n## {}: {}\n", paper.letters, paper.title);
        let rows: Vec<Vec<String>> =
            paper.items.iter().map(|item| row(item, &claims, verdicts)).collect();
        text.push_str(&left(&markdown::table(&["item", "what", "state", "shown by"], &rows)));
    }
    text.push_str("\n## Claims\n\n");
    let rows: Vec<Vec<String>> = claims
        .iter()
        .map(|NamedClaim { experiment, claim }| {
            let mode = claim.mode.clone().unwrap_or_default();
            let verdict = verdicts.of(experiment, claim);
            vec![
                (*experiment).to_owned(),
                claim.source(),
                claim.says.clone(),
                mode,
                claim.stated.clone().unwrap_or_default(),
                verdict.map_or("", ClaimOutcome::words).to_owned(),
            ]
        })
        .collect();
    let headers = ["experiment", "source", "the paper says", "mode", "its figure", "verdict"];
    text.push_str(&left(&markdown::table(&headers, &rows)));
    Ok(text)
}

/// Aligns all columns of a table to the left, because they hold words.
fn left(table: &str) -> String {
    table.replace("---:|", "---|")
}

fn introduction(papers: &[PaperItems], claims: &[NamedClaim], verdicts: &LatestVerdicts) -> String {
    let mut text = "# The five papers, item by item\n\n\
        Each mechanism, parameter, metric, experiment and claim of the papers, its state here, and the \
        test, figure or claim that\nshows it. A figure is measured by `cargo run --release -p terrane-papers -- run EXPERIMENT \
        --figure N`. The verdicts on claims\n([rules](../../crates/terrane-papers/claims/README.md)) \
        are those of the results in [docs/results](../results/README.md). Written by\n\n```sh\n\
        terrane-papers items docs/results/*.json --verdicts crates/terrane-papers/papers/verdicts.json \
        --output docs/papers/README.md\n```\n\nfrom `crates/terrane-papers/papers/items.toml`; change states \
        there.\n\n"
        .to_owned();
    let count = |items: &[Item], state| items.iter().filter(|item| item.1 == state).count();
    let mut rows: Vec<Vec<String>> = papers
        .iter()
        .map(|paper| {
            let states = ItemState::ALL.map(|state| count(&paper.items, state).to_string());
            let name = format!("{}: {}", paper.letters, paper.title);
            [name].into_iter().chain(states).chain([paper.items.len().to_string()]).collect()
        })
        .collect();
    let all: Vec<Item> = papers.iter().flat_map(|paper| paper.items.clone()).collect();
    let states = ItemState::ALL.map(|state| count(&all, state).to_string());
    let sum = ["all".to_owned()].into_iter().chain(states).chain([all.len().to_string()]);
    rows.push(sum.collect());
    let headers = ["paper", "whole", "partly", "missing", "items"];
    text.push_str(&markdown::table(&headers, &rows));
    let judged = |outcome| {
        claims.iter().filter(|one| verdicts.of(one.experiment, &one.claim) == Some(outcome)).count()
    };
    let mut counts: Vec<String> = ClaimOutcome::ALL
        .into_iter()
        .filter(|outcome| judged(*outcome) > 0)
        .map(|outcome| format!("{} {}", judged(outcome), outcome.words()))
        .collect();
    let known =
        claims.iter().filter(|one| verdicts.of(one.experiment, &one.claim).is_some()).count();
    if known < claims.len() {
        counts.push(format!("{} without stored results", claims.len() - known));
    }
    let _ = writeln!(text, "\n{} checks of claims: {}.", claims.len(), counts.join(", "));
    text
}

/// Returns the row of an item.
fn row(item: &Item, claims: &[NamedClaim], verdicts: &LatestVerdicts) -> Vec<String> {
    let Item(number, state, what, _) = item;
    let mut shown: Vec<String> = item
        .shown()
        .map(|one| match one.strip_prefix("test ") {
            Some(test) => format!("test `{test}`"),
            None => one.to_owned(),
        })
        .collect();
    let own = claims.iter().filter(|one| items_of(&one.claim.number).any(|item| item == number));
    for NamedClaim { experiment, claim } in own {
        let verdict = verdicts.of(experiment, claim);
        let verdict = verdict.map_or(String::new(), |outcome| format!(": {}", outcome.words()));
        let place = if claim.figure.is_empty() { "claim" } else { claim.figure.as_str() };
        let text = format!("claim {experiment} {place}{verdict}");
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    let state = match state {
        ItemState::Whole => state.word().to_owned(),
        _ => format!("**{}**", state.word()),
    };
    vec![number.clone(), what.clone(), state, shown.join("; ")]
}

/// Returns the problems of the list of items: duplicate numbers, whole items without a test or
/// figure, unknown figures, and claims on unknown items.
///
/// # Errors
/// If a file of items, figures or claims is malformed.
pub fn problems() -> Result<Vec<String>> {
    let (papers, claims) = (papers()?, claims()?);
    let mut problems = Vec::new();
    let mut numbers: Vec<&str> = Vec::new();
    for item in papers.iter().flat_map(|paper| &paper.items) {
        let Item(number, state, ..) = item;
        if numbers.contains(&number.as_str()) {
            problems.push(format!("{number} is listed twice"));
        }
        numbers.push(number);
        let is_claimed =
            claims.iter().any(|one| items_of(&one.claim.number).any(|item| item == number));
        if *state == ItemState::Whole && item.shown().next().is_none() && !is_claimed {
            problems.push(format!("nothing shows {number}, which is whole"));
        }
        for one in item.shown() {
            let figure = one.strip_prefix("figure ").and_then(|figure| figure.split_once(' '));
            let is_known = match figure {
                Some((experiment, figure)) => {
                    PaperFile::of(experiment)?.figures.iter().any(|one| one.number() == figure)
                }
                None => one.starts_with("test "),
            };
            if !is_known {
                problems.push(format!("{number}: no '{one}'"));
            }
        }
    }
    for NamedClaim { claim, .. } in &claims {
        let unknown = items_of(&claim.number).filter(|item| !numbers.contains(item));
        problems.extend(unknown.map(|item| format!("a claim names the unknown item {item}")));
    }
    Ok(problems)
}

/// Returns the tests that items name, each with the number of its item.
///
/// # Errors
/// If the file of items is malformed.
pub fn tests_named() -> Result<Vec<(String, String)>> {
    let mut named = Vec::new();
    for item in papers()?.iter().flat_map(|paper| &paper.items) {
        let tests = item.shown().filter_map(|one| one.strip_prefix("test "));
        named.extend(tests.map(|test| (item.0.clone(), test.to_owned())));
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_name_items_among_other_words() {
        let items = |number| items_of(number).collect::<Vec<_>>();
        assert_eq!(items("S2-98 O1, TA I"), ["S2-98"]);
        assert_eq!(items("S3-61, S3-70"), ["S3-61", "S3-70"]);
        assert!(items("the default").is_empty() && items("").is_empty());
    }

    #[test]
    fn items_are_listed_once_and_shown_by_something() {
        assert_eq!(problems().unwrap(), [""; 0]);
        let items = papers().unwrap().iter().map(|paper| paper.items.len()).sum::<usize>();
        assert_eq!(items, 350);
    }

    #[test]
    fn the_latest_results_of_an_experiment_replace_earlier_verdicts() {
        let experiment = experiments::find("compaction").unwrap();
        let mut results = Results::new("compaction", experiment.metrics);
        let mut verdicts = LatestVerdicts::default();
        verdicts.by_claim.insert("compaction | old".into(), ClaimOutcome::Reproduced);
        verdicts.by_claim.insert("flodb | kept".into(), ClaimOutcome::Contradicted);
        results.record("winners", &[], 0.0);
        verdicts.take(&results).unwrap();
        assert!(!verdicts.by_claim.contains_key("compaction | old"));
        assert_eq!(verdicts.by_claim["flodb | kept"], ClaimOutcome::Contradicted);
        assert!(verdicts.by_claim.len() > 20);
        let text = page(&verdicts).unwrap();
        assert!(text.contains("not measured") && text.contains("| S0-01 |"));
        assert!(verdicts.json().unwrap().contains("contradicted"));
    }
}
