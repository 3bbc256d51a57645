//! Advice for an open database, from its counters.

use crate::output::human;
use anyhow::{Result, anyhow};
use terrane::{Db, Keyspace, OperationCounts};
use terrane_policy::advice::{Limits, Objective};
use terrane_sim::MachineModel;

use super::case::{AdviceCase, filter_bits_of};
use super::decide::{ChangeDecision, ChangeTerms};
use super::memtables::sample;
use super::question::{OPERATIONS_MIN, OperationProfile, RecordProfile};
use super::report::{AdviceReport, WorkloadSource};
use super::search::SearchResult;

/// The maximum number of designs to simulate; it is low because a user is waiting.
const EFFORT: usize = 80;

/// The number of designs to report.
const REPORTED_DESIGNS: usize = 3;

/// The operations since the last advice, or since the start.
#[derive(Debug)]
pub struct OperationWindow {
    counts: OperationCounts,
}

/// A piece of advice.
#[derive(Debug)]
pub struct LiveAdvice {
    case: AdviceCase,
    found: SearchResult,
    /// Whether to change the design.
    pub decision: ChangeDecision,
}

impl LiveAdvice {
    /// Returns the advice for printing; `applies` says whether a worthwhile change is made.
    pub fn report(&self, applies: bool) -> AdviceReport<'_> {
        AdviceReport {
            case: &self.case,
            found: &self.found,
            decision: Some(&self.decision),
            db: None,
            top: REPORTED_DESIGNS,
            applies,
            source: WorkloadSource::Given,
            trial: String::new(),
        }
    }
}

impl OperationWindow {
    /// Starts a window now.
    pub fn now(db: &Db) -> Self {
        Self { counts: db.operations() }
    }

    /// Gives advice based on the operations of the current window, and starts a new window.
    ///
    /// # Errors
    ///
    /// If there are too few operations; the window then continues.
    pub fn advise(
        &mut self,
        db: &Db,
        keyspace: &Keyspace,
        terms: ChangeTerms,
    ) -> Result<LiveAdvice> {
        let counts = db.operations().since(&self.counts);
        let operations = OperationProfile::counted(&counts).ok_or_else(|| {
            anyhow!(
                "advise needs {} operations since the last advice, but counted {}; `terrane advise DIR \
                 --mix SHARES` needs none",
                human::count(OPERATIONS_MIN),
                human::count(counts.total())
            )
        })?;
        let machine = MachineModel::default();
        let records = RecordProfile::of_tree(&keyspace.tree().shape, &machine)
            .ok_or_else(|| anyhow!("no tree to advise on: nothing was flushed yet"))?;
        let prefixes = sample(keyspace, records.count)?;
        // The window starts after the scans of `sample`, so that it does not count them.
        let next = Self::now(db);
        let now = keyspace.design();
        let case = AdviceCase {
            operations,
            records,
            filter_bits: filter_bits_of(&now),
            memory: db.stats().memory.budget_bytes,
            machine,
            objective: Objective::default(),
            limits: Limits::default(),
            writers: 1,
            prefixes,
            effort: EFFORT,
            seed: 1,
            now,
        };
        let found = case.search()?;
        let decision = ChangeDecision::of(&case, &found, keyspace, terms)?;
        *self = next;
        Ok(LiveAdvice { case, found, decision })
    }
}
