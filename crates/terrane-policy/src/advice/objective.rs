//! Weights of the costs, and limits on them.

use std::fmt;
use std::str::FromStr;

use super::costs::{DesignCosts, OperationShares, OperationTimes};
use crate::error::ParseError;

/// The weight of each cost; 1 leaves the time unchanged.
///
/// The text form names the weights that differ from the default: `write=1,lookup=2,space=0.5`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Time of writes.
    pub write: f64,
    /// Time of lookups.
    pub lookup: f64,
    /// Time of scans.
    pub range: f64,
    /// The fraction by which all times grow if the tables take twice the space of the data.
    pub space: f64,
    /// The fraction by which all times grow if writers are stalled all the time.
    pub stall: f64,
}

impl Default for Objective {
    /// Times have weight 1, space has a small weight, and stalls have a large weight.
    fn default() -> Self {
        Self { write: 1.0, lookup: 1.0, range: 1.0, space: 0.1, stall: 2.0 }
    }
}

/// Limits on the costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Bytes written to tables per byte that the user writes.
    pub written: Option<f64>,
    /// Data blocks per lookup.
    pub lookup_blocks: Option<f64>,
    /// Sorted runs.
    pub runs: Option<f64>,
    /// Bytes that the tables take per byte of live data.
    pub space: Option<f64>,
    /// The fraction of time for which writers are stalled.
    pub stalled: Option<f64>,
    /// The 99th percentile of write latency, in seconds.
    pub p99_seconds: Option<f64>,
}

impl Objective {
    /// Returns the weighted average time of an operation, in seconds.
    pub fn score(
        &self,
        costs: &DesignCosts,
        shares: &OperationShares,
        times: &OperationTimes,
    ) -> f64 {
        let time = self.write * shares.writes * times.write
            + self.lookup * shares.lookups() * times.lookup
            + self.range * shares.scans * times.scan;
        let space = 1.0 + self.space * (costs.space - 1.0).max(0.0);
        let stall = 1.0 + self.stall * shares.writes.min(1.0) * costs.stalled.unwrap_or(0.0);
        time * space * stall
    }

    fn weights(&self) -> [(&'static str, f64); 5] {
        [
            ("write", self.write),
            ("lookup", self.lookup),
            ("range", self.range),
            ("space", self.space),
            ("stall", self.stall),
        ]
    }
}

impl Limits {
    /// Lists the limits that the costs exceed, in words.
    pub fn exceeded(&self, costs: &DesignCosts, shares: &OperationShares) -> Vec<String> {
        let all = [
            ("bytes written", self.written, Some(costs.written)),
            ("blocks per lookup", self.lookup_blocks, Some(costs.lookup_blocks(shares))),
            ("sorted runs", self.runs, Some(costs.runs)),
            ("space", self.space, Some(costs.space)),
            ("fraction of time stalled", self.stalled, costs.stalled),
            ("p99 write latency in seconds", self.p99_seconds, costs.p99_seconds),
        ];
        let over = |(name, limit, cost): (&str, Option<f64>, Option<f64>)| {
            let (limit, cost) = (limit?, cost?);
            (cost > limit).then(|| format!("{name} {cost:.3} over {limit}"))
        };
        all.into_iter().filter_map(over).collect()
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, weight)) in self.weights().into_iter().enumerate() {
            write!(f, "{}{name}={weight}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Objective {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut objective = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let bad = || {
                let expected = "weights of write, lookup, range, space or stall from 0 to 1e6, \
                                such as write=1,lookup=2";
                ParseError::new("objective", word, expected)
            };
            let (name, weight) = word.split_once('=').ok_or_else(bad)?;
            let weight: f64 = weight.trim().parse().map_err(|_| bad())?;
            if !(0.0..=1e6).contains(&weight) {
                return Err(bad());
            }
            let place = match name.trim() {
                "write" => &mut objective.write,
                "lookup" => &mut objective.lookup,
                "range" => &mut objective.range,
                "space" => &mut objective.space,
                "stall" => &mut objective.stall,
                _ => return Err(bad()),
            };
            *place = weight;
        }
        Ok(objective)
    }
}
