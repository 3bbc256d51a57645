//! Advice for a database that is open, by what it has counted.

use anyhow::{Result, anyhow};
use terrane::policy::advice::{Limits, Objective};
use terrane::{Db, Keyspace, OperationCounts};
use terrane_sim::Machine;

use super::decide::{Decision, Terms};
use super::question::{OPERATIONS_MIN, Operations, Records};
use super::search::Found;
use super::tell::{Source, Telling};
use super::{Case, filter_bits_of};

/// Designs that are played: someone waits.
const EFFORT: usize = 80;

/// Designs that are told of.
const TOLD: usize = 3;

/// Since when operations are counted: the last advice, or the beginning.
#[derive(Debug)]
pub(in crate::commands) struct Since {
    counts: OperationCounts,
}

/// What came out.
#[derive(Debug)]
pub(in crate::commands) struct Advice {
    case: Case,
    found: Found,
    pub(in crate::commands) decision: Decision,
}

impl Advice {
    /// What there is to tell, where a change that is worth it is made or not.
    pub(in crate::commands) fn telling(&self, applies: bool) -> Telling<'_> {
        Telling {
            case: &self.case,
            found: &self.found,
            decision: Some(&self.decision),
            db: None,
            top: TOLD,
            applies,
            source: Source::Given,
        }
    }
}

impl Since {
    /// From now on.
    pub(in crate::commands) fn now(db: &Db) -> Self {
        Self { counts: db.operations() }
    }

    /// Advises by what was done since, and begins to count anew.
    ///
    /// # Errors
    /// There is too little to go by: then counting goes on.
    pub(in crate::commands) fn advise(
        &mut self,
        db: &Db,
        keyspace: &Keyspace,
        terms: Terms,
    ) -> Result<Advice> {
        let next = Self::now(db);
        let counts = next.counts.since(&self.counts);
        let operations = Operations::counted(&counts).ok_or_else(|| {
            anyhow!(
                "there were fewer than {OPERATIONS_MIN} operations since the last advice: {}",
                counts.total()
            )
        })?;
        let machine = Machine::default();
        let records = Records::of_tree(&keyspace.tree().shape, &machine)
            .ok_or_else(|| anyhow!("nothing was flushed yet, so there is no tree to advise on"))?;
        let now = keyspace.design();
        let case = Case {
            operations,
            records,
            filter_bits: filter_bits_of(&now),
            memory: db.stats().memory.budget_bytes,
            machine,
            objective: Objective::default(),
            limits: Limits::default(),
            effort: EFFORT,
            seed: 1,
            now,
        };
        let found = case.search()?;
        let decision = Decision::of(&case, &found, keyspace, terms)?;
        *self = next;
        Ok(Advice { case, found, decision })
    }
}
