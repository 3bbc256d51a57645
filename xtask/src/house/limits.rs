//! The limits in `house.toml`, and the exceptions: values that are above their limit.

use std::collections::BTreeMap;
use std::fmt;

use super::measurement::{Measurement, Rule};

/// The limits, and the exceptions by rule and subject.
#[derive(Debug, PartialEq)]
pub(super) struct Limits {
    limits: BTreeMap<Rule, f64>,
    exceptions: BTreeMap<(Rule, String), f64>,
}

/// How a measurement compares with its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    Within,
    /// Below the exception, whose value this is.
    Fallen(f64),
    /// Above this limit or exception.
    Over(f64),
}

impl Limits {
    /// Reads the text of `house.toml`: `NAME = NUMBER` in sections, of which `[limits]` is the first.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parsed = Self { limits: BTreeMap::new(), exceptions: BTreeMap::new() };
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let fail = |what: &str| format!("xtask/house.toml:{}: {what}: {line}", index + 1);
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
                continue;
            }
            let (name, value) =
                line.split_once('=').ok_or_else(|| fail("expected NAME = NUMBER"))?;
            let name = name.trim().trim_matches('"');
            let value = value.trim().parse().map_err(|_| fail("expected NAME = NUMBER"))?;
            let is_limit = section == "limits";
            let key = if is_limit { name } else { &section };
            let rule = Rule::ALL.into_iter().find(|rule| rule.key() == key);
            let rule = rule.ok_or_else(|| fail("unknown rule"))?;
            if is_limit {
                parsed.limits.insert(rule, value);
            } else {
                parsed.exceptions.insert((rule, name.to_owned()), value);
            }
        }
        match Rule::ALL.into_iter().find(|rule| !parsed.limits.contains_key(rule)) {
            Some(rule) => Err(format!("xtask/house.toml: no {} in [limits]", rule.key())),
            None => Ok(parsed),
        }
    }

    /// Returns the limit for subjects without an exception.
    pub(super) fn limit(&self, rule: Rule) -> f64 {
        self.limits.get(&rule).copied().unwrap_or(0.0)
    }

    pub(super) fn judge(&self, measurement: &Measurement) -> Verdict {
        let limit = self.limit(measurement.rule);
        match self.exceptions.get(&(measurement.rule, measurement.subject.clone())) {
            Some(&exception) if measurement.value > exception => Verdict::Over(exception),
            Some(&exception) if measurement.value < exception => Verdict::Fallen(exception),
            None if measurement.value > limit => Verdict::Over(limit),
            _ => Verdict::Within,
        }
    }

    /// Returns the exceptions whose subjects no longer exist.
    pub(super) fn unused(&self, measurements: &[Measurement]) -> Vec<&str> {
        let is_measured = |rule: Rule, subject: &str| {
            measurements.iter().any(|other| other.rule == rule && other.subject == subject)
        };
        let keys = self.exceptions.keys();
        keys.filter(|(rule, subject)| !is_measured(*rule, subject))
            .map(|(_, subject)| subject.as_str())
            .collect()
    }

    /// Lowers each exception to its present value, and drops the exceptions that are within the
    /// limit.
    pub(super) fn lower(&mut self, measurements: &[Measurement]) {
        let mut lowered = BTreeMap::new();
        for ((rule, subject), exception) in &self.exceptions {
            let present = measurements
                .iter()
                .find(|other| other.rule == *rule && other.subject == *subject)
                .map_or(0.0, |measurement| measurement.value);
            if present > self.limit(*rule) {
                lowered.insert((*rule, subject.clone()), present.min(*exception));
            }
        }
        self.exceptions = lowered;
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Limits that `cargo xtask house` checks, and the exceptions of today by subject. An"
        )?;
        writeln!(
            f,
            "# exception may only fall; `cargo xtask house --lower` writes the values that fell."
        )?;
        writeln!(f, "\n[limits]")?;
        for rule in Rule::ALL {
            writeln!(f, "{} = {}", rule.key(), self.limit(rule))?;
        }
        for rule in Rule::ALL {
            let mut exceptions =
                self.exceptions.iter().filter(|((other, _), _)| *other == rule).peekable();
            if exceptions.peek().is_some() {
                writeln!(f, "\n[{}]", rule.key())?;
            }
            for ((_, subject), value) in exceptions {
                writeln!(f, "\"{subject}\" = {value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[limits]\nfile_lines = 400\nfunction_lines = 70\ncycle_files = 3\n\
        type_methods = 60\nvoice_markers = 10\n\n[file_lines]\n\
        \"a.rs\" = 500\n\"b.rs\" = 600\n";

    fn measurement(subject: &str, value: f64) -> Measurement {
        let rule = Rule::FileLines;
        Measurement { rule, subject: subject.into(), value, place: "p:1".into(), details: vec![] }
    }

    #[test]
    fn an_exception_may_fall_and_not_rise() {
        let limits = Limits::parse(TEXT).unwrap();
        let judge = |subject, value| limits.judge(&measurement(subject, value));
        assert_eq!(judge("a.rs", 500.0), Verdict::Within);
        assert_eq!(judge("a.rs", 501.0), Verdict::Over(500.0));
        assert_eq!(judge("a.rs", 450.0), Verdict::Fallen(500.0));
        assert_eq!(judge("a.rs", 400.0), Verdict::Fallen(500.0));
        assert_eq!(judge("new.rs", 400.0), Verdict::Within);
        assert_eq!(judge("new.rs", 401.0), Verdict::Over(400.0));
    }

    #[test]
    fn lowering_follows_the_values_down_only() {
        let mut limits = Limits::parse(TEXT).unwrap();
        assert_eq!(limits.unused(&[measurement("a.rs", 1.0)]), ["b.rs"]);
        limits.lower(&[
            measurement("a.rs", 450.0),
            measurement("b.rs", 700.0),
            measurement("c.rs", 900.0),
        ]);
        assert_eq!(limits.judge(&measurement("a.rs", 451.0)), Verdict::Over(450.0));
        assert_eq!(limits.judge(&measurement("b.rs", 601.0)), Verdict::Over(600.0));
        assert_eq!(limits.judge(&measurement("c.rs", 900.0)), Verdict::Over(400.0));
        limits.lower(&[measurement("a.rs", 400.0)]);
        assert_eq!(limits.judge(&measurement("a.rs", 500.0)), Verdict::Over(400.0));
    }

    #[test]
    fn the_file_reads_as_it_is_written() {
        let limits = Limits::parse(TEXT).unwrap();
        assert_eq!(Limits::parse(&limits.to_string()).unwrap(), limits);
        let error = Limits::parse("[limits]\nfile_lines 400").unwrap_err();
        assert_eq!(error, "xtask/house.toml:2: expected NAME = NUMBER: file_lines 400");
        let error = Limits::parse("[limits]\nfile_lines = 400").unwrap_err();
        assert_eq!(error, "xtask/house.toml: no function_lines in [limits]");
        assert!(Limits::parse("[no_rule]\na = 4").is_err());
    }
}
