//! The claims of papers as data: `claims/*.toml`, one file for an experiment. `claims/README.md`
//! describes the keys.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::expression::Expression;
use super::stated::{Statement, StatementText};
use super::template::{Format, Template};

/// The variable for the numbers of verdicts, as text, in the introduction and the sections.
pub(super) const VERDICTS: &str = "verdicts";
/// The mode of the judged claim, as text.
pub(super) const MODE: &str = "mode";
/// The metric that is compared with the paper.
pub(super) const METRIC: &str = "x";
/// The variable for the explained number, in an explanation's bound and text.
pub(super) const FIGURE: &str = "figure";

/// One or several expressions, as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum MetricText {
    One(String),
    Named(BTreeMap<String, String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplanationText {
    text: String,
    figure: String,
    bound: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotComparableText {
    reason: String,
    #[serde(default)]
    when: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByDesignText {
    reason: String,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    metric: Option<MetricText>,
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
    paper: Option<StatementText>,
    #[serde(default)]
    tolerance: Option<f64>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    direction: Option<String>,
    #[serde(default)]
    can_fail: Option<String>,
    shown: String,
    #[serde(default)]
    not_comparable: Option<NotComparableText>,
    #[serde(default)]
    by_design: Option<ByDesignText>,
    #[serde(default)]
    explanation: Vec<ExplanationText>,
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

/// A condition with its source text.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) text: String,
    pub(super) expression: Expression,
}

/// An explanation, and the number that would differ if the explanation were wrong.
#[derive(Debug, Clone)]
pub(super) struct Explanation {
    pub(super) text: Template,
    /// The figure, under the name `figure`.
    pub(super) figure: BTreeMap<String, Expression>,
    pub(super) bound: Condition,
}

/// Why the set-up cannot show the paper's observation.
#[derive(Debug, Clone)]
pub(super) struct NotComparable {
    pub(super) reason: Template,
    /// The measured condition that establishes the reason.
    pub(super) when: Option<Expression>,
}

/// The same run without our improvement.
#[derive(Debug, Clone)]
pub(super) enum Ablation {
    /// In another mode.
    Mode(String),
    /// With other expressions for the metrics of the claim.
    Metric(BTreeMap<String, Expression>),
}

/// Why ours differs, and the ablation that proves it.
#[derive(Debug, Clone)]
pub(super) struct ByDesign {
    pub(super) reason: Template,
    pub(super) ablation: Ablation,
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
    /// The paper's statement about the metric; `None` if it states only a direction.
    pub paper: Option<Statement>,
    pub(super) metric: BTreeMap<String, Expression>,
    pub(super) unit: Format,
    pub(super) direction: Option<Condition>,
    pub(super) can_fail: Option<Expression>,
    pub(super) shown: Template,
    pub(super) not_comparable: Option<NotComparable>,
    pub(super) by_design: Option<ByDesign>,
    pub(super) explanations: Vec<Explanation>,
}

/// The claims of an experiment, and the prose around them.
#[derive(Debug, Clone)]
pub struct ClaimFile {
    pub(super) title: String,
    pub(super) introduction: Template,
    /// Titles and texts of the sections before the claims.
    pub(super) sections: Vec<(String, Template)>,
    pub(crate) sets: BTreeMap<String, Vec<String>>,
    pub(crate) define: BTreeMap<String, Expression>,
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

fn condition(text: String, of: &str) -> Result<Condition> {
    let expression = Expression::parse_bound(&text, of);
    let expression = expression.with_context(|| format!("in '{text}'"))?;
    Ok(Condition { text, expression })
}

impl MetricText {
    fn parsed(self) -> Result<BTreeMap<String, Expression>> {
        expressions(match self {
            Self::One(text) => BTreeMap::from([(METRIC.to_owned(), text)]),
            Self::Named(all) => all,
        })
    }
}

impl ExplanationText {
    fn parsed(self) -> Result<Explanation> {
        Ok(Explanation {
            text: Template::parse(&self.text)?,
            figure: expressions(BTreeMap::from([(FIGURE.to_owned(), self.figure)]))?,
            bound: condition(self.bound, FIGURE)?,
        })
    }
}

impl NotComparableText {
    fn parsed(self) -> Result<NotComparable> {
        let when =
            self.when.map(|when| Expression::parse(&when).with_context(|| format!("in '{when}'")));
        Ok(NotComparable { reason: Template::parse(&self.reason)?, when: when.transpose()? })
    }
}

impl ByDesignText {
    fn parsed(self) -> Result<ByDesign> {
        let ablation = match (self.mode, self.metric) {
            (Some(mode), None) => Ablation::Mode(mode),
            (None, Some(metric)) => Ablation::Metric(metric.parsed()?),
            _ => bail!("by_design needs an ablation: either a mode or a metric"),
        };
        Ok(ByDesign { reason: Template::parse(&self.reason)?, ablation })
    }
}

impl ClaimText {
    fn parsed(self) -> Result<Claim> {
        ensure!(
            self.paper.is_some() || self.direction.is_some(),
            "neither 'paper' nor 'direction' says when the claim fails"
        );
        let metric = self.metric.parsed()?;
        ensure!(
            self.paper.is_none() || metric.contains_key(METRIC),
            "'paper' needs a metric that is called x"
        );
        let paper = self.paper.map(|paper| Statement::parse(paper, self.tolerance));
        let direction = self.direction.map(|text| condition(text, METRIC));
        let can_fail = self.can_fail.map(|text| Expression::parse(&text));
        let explanations = self.explanation.into_iter().map(ExplanationText::parsed);
        Ok(Claim {
            number: self.number,
            figure: self.figure,
            says: self.says,
            modes: self.modes,
            paper: paper.transpose()?,
            metric,
            unit: Format::parse(&self.unit)?,
            direction: direction.transpose()?,
            can_fail: can_fail.transpose()?,
            shown: Template::parse(&self.shown)?,
            not_comparable: self.not_comparable.map(NotComparableText::parsed).transpose()?,
            by_design: self.by_design.map(ByDesignText::parsed).transpose()?,
            explanations: explanations.collect::<Result<_>>()?,
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
}
