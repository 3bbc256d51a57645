//! Advice for a database that is open, by what it has counted.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use terrane::policy::advice::{Limits, Objective};
use terrane::{Db, Keyspace, Stats};
use terrane_sim::Machine;

use super::decide::{Decision, Terms};
use super::question::{Operations, Records};
use super::search::Found;
use super::tell::Telling;
use super::{Case, filter_bits_of};

/// Designs that are played: someone waits.
const EFFORT: usize = 80;

/// Designs that are told of.
const TOLD: usize = 3;

/// Since when operations are counted: the last advice, or the beginning.
#[derive(Debug)]
pub(in crate::commands) struct Since {
    stats: Stats,
    at: Instant,
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
            is_mix_assumed: false,
        }
    }
}

impl Since {
    /// From now on.
    pub(in crate::commands) fn now(db: &Db) -> Self {
        Self { stats: db.stats(), at: Instant::now() }
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
        let time: Duration = next.at - self.at;
        let operations = Operations::counted(&self.stats, &next.stats, time).ok_or_else(|| {
            anyhow!("there were fewer than 1000 operations since the last advice")
        })?;
        let machine = Machine::default();
        let records = Records::of_tree(&keyspace.tree().shape, &machine)
            .ok_or_else(|| anyhow!("nothing was flushed yet, so there is no tree to advise on"))?;
        let now = keyspace.design();
        let case = Case {
            operations,
            records,
            filter_bits: filter_bits_of(&now),
            memory: next.stats.memory.budget_bytes,
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
