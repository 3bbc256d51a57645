//! The claims of papers as data: `claims/*.toml`, one file for an experiment.
//!
//! | key of a claim | meaning |
//! |---|---|
//! | `number` | the items of the papers' checklist, such as `S2-109` |
//! | `figure` | where the paper says it |
//! | `says` | the sentence of the paper, with its numbers |
//! | `modes` | the modes in which it is measured: `published`, `ours`; empty if there is one |
//! | `metric` | an expression, called `x` in the bound, or several with names |
//! | `paper` | what the paper states for the metric: a number or `[low, high]` |
//! | `bound` | the condition on the metric |
//! | `tolerance` | the share by which the limits of the bound are relaxed |
//! | `shown` | a template for the metric |
//! | `explanation` | texts for a claim that fails, each printed if its condition `when` holds |
//! | `hypothesis` | an explanation that no measurement of the same run can check |

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::expression::{Expression, Selector};
use super::template::Template;
use crate::results::Metric;

/// Names that the document writer defines in the introduction and the sections: the numbers of
/// claims that hold and of claims that were checked.
const OF_DOCUMENT: [&str; 2] = ["held", "checks"];
/// The mode of the judged claim, as text.
const OF_CLAIM: &str = "mode";

/// One or several expressions, as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum MetricText {
    One(String),
    Named(BTreeMap<String, String>),
}

/// The value that the paper states.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum PaperValue {
    /// A number.
    Number(f64),
    /// An interval.
    Interval([f64; 2]),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplanationText {
    text: String,
    when: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimText {
    #[serde(default)]
    number: String,
    #[serde(default)]
    figure: String,
    says: String,
    #[serde(default)]
    modes: Vec<String>,
    metric: MetricText,
    #[serde(default)]
    paper: Option<PaperValue>,
    bound: String,
    #[serde(default)]
    tolerance: f64,
    shown: String,
    #[serde(default)]
    explanation: Vec<ExplanationText>,
    #[serde(default)]
    hypothesis: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionText {
    title: String,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    title: String,
    introduction: String,
    #[serde(default)]
    section: Vec<SectionText>,
    #[serde(default)]
    sets: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    define: BTreeMap<String, String>,
    claim: Vec<ClaimText>,
}

/// A text that is printed if an expression holds.
#[derive(Debug, Clone)]
pub(super) struct Explanation {
    pub(super) text: Template,
    pub(super) when: Expression,
}

/// A claim of a paper.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The items of the papers' checklist.
    pub number: String,
    /// The place in the paper that states the claim.
    pub figure: String,
    /// The sentence of the paper.
    pub says: String,
    /// The modes in which the claim is measured.
    pub modes: Vec<String>,
    /// The value that the paper states for the metric.
    pub paper: Option<PaperValue>,
    pub(super) metric: BTreeMap<String, Expression>,
    pub(super) bound: Expression,
    pub(super) tolerance: f64,
    pub(super) shown: Template,
    pub(super) explanations: Vec<Explanation>,
    pub(super) hypothesis: Option<String>,
}

/// The claims of an experiment, and the prose around them.
#[derive(Debug, Clone)]
pub struct ClaimFile {
    pub(super) title: String,
    pub(super) introduction: Template,
    /// Titles and texts of the sections before the claims.
    pub(super) sections: Vec<(String, Template)>,
    pub(super) sets: BTreeMap<String, Vec<String>>,
    pub(super) define: BTreeMap<String, Expression>,
    /// The claims, in the order of the document.
    pub claims: Vec<Claim>,
}

fn expressions(texts: BTreeMap<String, String>) -> Result<BTreeMap<String, Expression>> {
    let parsed = texts.into_iter().map(|(name, text)| {
        let expression = Expression::parse(&text);
        let expression = expression.with_context(|| format!("in {name} = '{text}'"))?;
        Ok((name, expression))
    });
    parsed.collect()
}

impl ClaimText {
    fn parsed(self) -> Result<Claim> {
        let metric = match self.metric {
            MetricText::One(text) => BTreeMap::from([("x".to_owned(), text)]),
            MetricText::Named(all) => all,
        };
        let explanations = self.explanation.into_iter().map(|explanation| {
            let when = Expression::parse(&explanation.when);
            let when = when.with_context(|| format!("in '{}'", explanation.when))?;
            Ok(Explanation { text: Template::parse(&explanation.text)?, when })
        });
        let bound = Expression::parse_bound(&self.bound);
        Ok(Claim {
            number: self.number,
            figure: self.figure,
            says: self.says,
            modes: self.modes,
            paper: self.paper,
            metric: expressions(metric)?,
            bound: bound.with_context(|| format!("in the bound '{}'", self.bound))?,
            tolerance: self.tolerance,
            shown: Template::parse(&self.shown)?,
            explanations: explanations.collect::<Result<_>>()?,
            hypothesis: self.hypothesis,
        })
    }
}

impl ClaimFile {
    /// Parses a file of claims.
    ///
    /// # Errors
    /// If a claim is malformed; the error names the claim and the position.
    pub fn parse(text: &str) -> Result<Self> {
        let file: FileText = toml::from_str(text)?;
        let claims = file.claim.into_iter().map(|claim| {
            let says = claim.says.clone();
            claim.parsed().with_context(|| format!("in the claim '{says}'"))
        });
        let sections = file.section.into_iter().map(|section| {
            let text = Template::parse(&section.text);
            let text = text.with_context(|| format!("in the section '{}'", section.title))?;
            Ok((section.title, text))
        });
        Ok(Self {
            title: file.title,
            introduction: Template::parse(&file.introduction).context("in the introduction")?,
            sections: sections.collect::<Result<_>>()?,
            sets: file.sets,
            define: expressions(file.define)?,
            claims: claims.collect::<Result<_>>()?,
        })
    }

    /// Returns names that are neither metrics nor defined in the file, and sets that it does not
    /// define.
    #[must_use]
    pub fn unknown_names(&self, metrics: &[&[Metric]]) -> Vec<String> {
        let mut unknown = Vec::new();
        self.introduction
            .names(&mut |name, keys| self.check(metrics, None, name, keys, &mut unknown));
        for (_, text) in &self.sections {
            text.names(&mut |name, keys| self.check(metrics, None, name, keys, &mut unknown));
        }
        for expression in self.define.values() {
            expression.names(&mut |name, keys| self.check(metrics, None, name, keys, &mut unknown));
        }
        for claim in &self.claims {
            claim.names(&mut |name, keys| {
                self.check(metrics, Some(claim), name, keys, &mut unknown);
            });
        }
        unknown
    }

    fn check(
        &self,
        metrics: &[&[Metric]],
        claim: Option<&Claim>,
        name: &str,
        selectors: &[Selector],
        unknown: &mut Vec<String>,
    ) {
        let is_known = metrics.iter().copied().flatten().any(|metric| metric.name == name)
            || self.define.contains_key(name)
            || match claim {
                Some(claim) => name == OF_CLAIM || claim.metric.contains_key(name),
                None => OF_DOCUMENT.contains(&name),
            };
        if !is_known {
            unknown.push(name.to_owned());
        }
        for selector in selectors {
            match selector {
                Selector::Set(set) if !self.sets.contains_key(set) => {
                    unknown.push(format!("@{set}"));
                }
                _ => {}
            }
        }
    }
}

impl Claim {
    /// Calls `visit` for every name in the expressions of the claim.
    fn names(&self, visit: &mut dyn FnMut(&str, &[Selector])) {
        self.metric.values().for_each(|expression| expression.names(visit));
        self.bound.names(visit);
        self.shown.names(visit);
        for explanation in &self.explanations {
            explanation.when.names(visit);
            explanation.text.names(visit);
        }
    }
}
