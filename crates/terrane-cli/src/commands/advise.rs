//! `terrane advise`: which design suits a workload, what the best ones gain and what they cost, which
//! to avoid, and what a change to the best would take.
//!
//! The compaction paper ends with three questions (§1, §6): how to avoid the worst choices, how to
//! adapt when the workload does, and how to find strategies that no system has. This asks the
//! simulator, which plays the policy of the engine, for every design of the catalogue and for designs
//! near the best of them, and ranks what it says by [`terrane::policy::advice`].
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags |
//! | [`question`] | what there is to do, from a mix or from what was counted |
//! | [`predict`] | what a design would cost |
//! | [`search`] | the catalogue, and beyond |
//! | [`decide`] | whether a change is worth what it takes |
//! | [`tell`] | what came out, for people and programs |
//! | [`live`] | the same for a database that is open: what the shell does |

mod arguments;
pub(in crate::commands) mod decide;
pub(in crate::commands) mod live;
pub(in crate::commands) mod predict;
pub(in crate::commands) mod question;
pub(in crate::commands) mod search;
mod tell;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use terrane::policy::advice::{Limits, Objective, Question};
use terrane::{Db, Design, Keyspace};
use terrane_sim::Machine;

pub(crate) use arguments::AdviseArgs;
use decide::{Decision, Terms};
use predict::World;
use question::{Operations, Records, prices};
use search::{Found, Search};
use tell::Source;

use crate::exit::{Exit, usage};
use crate::json::write_line;
use crate::{human, open, progress};

/// All that advice is given on.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Case {
    pub(in crate::commands) operations: Operations,
    pub(in crate::commands) records: Records,
    /// The design that there is.
    pub(in crate::commands) now: Design,
    /// Filter bits a key, on average.
    pub(in crate::commands) filter_bits: f64,
    /// Bytes of data that are in memory.
    pub(in crate::commands) memory: u64,
    pub(in crate::commands) machine: Machine,
    pub(in crate::commands) objective: Objective,
    pub(in crate::commands) limits: Limits,
    /// The most designs that are played.
    pub(in crate::commands) effort: usize,
    pub(in crate::commands) seed: u64,
}

impl Case {
    pub(in crate::commands) fn question(&self) -> Question {
        Question {
            shares: self.operations.shares,
            record_bytes: self.records.bytes,
            prices: prices(&self.machine, &self.now, self.records, self.memory),
            objective: self.objective,
            limits: self.limits,
        }
    }

    fn world(&self) -> World {
        World {
            records: self.records.count,
            record_bytes: self.records.bytes,
            skew: self.operations.skew,
            inserts: self.operations.inserts,
            writes: self.operations.shares.writes > 0.0,
            machine: self.machine,
            seed: self.seed,
        }
    }

    /// Looks for what is better than the present design.
    pub(in crate::commands) fn search(&self) -> Result<Found> {
        let bar = progress::bar(self.effort as u64, "trying designs");
        let told = progress::NowAndThen::start();
        let search = Search {
            question: &self.question(),
            world: &self.world(),
            filter_bits: self.filter_bits,
            rate: self.operations.rate.map(|rate| rate * self.operations.shares.writes),
            effort: self.effort,
        };
        let found = search.run(("now", &self.now), &|count| {
            bar.set_position(count as u64);
            told.tell(|| format!("tried {}", human::counted(count as u64, "design")));
        });
        bar.finish_and_clear();
        found.ok_or_else(|| {
            anyhow!("the present design cannot be played: its writers wait for ever")
        })
    }
}

/// Filter bits a key of a design, on average: those of the deep levels, which hold most keys.
pub(in crate::commands) fn filter_bits_of(design: &Design) -> f64 {
    design.filter_bits.values().last().copied().unwrap_or(10.0)
}

impl AdviseArgs {
    /// Advises, and changes the design if that is asked for and worth it.
    pub(crate) fn run(&self) -> Result<Exit> {
        let Some(dir) = &self.db else {
            if self.apply {
                return Err(usage("--apply is for a database, and none is given"));
            }
            let case = self.case(self.design()?, None, None)?;
            let found = case.search()?;
            let source = if self.mix.is_none() { Source::Assumed } else { Source::Given };
            self.tell(&case, &found, None, source)?;
            return Ok(Exit::Done);
        };
        let db = if self.apply { open::existing(dir)? } else { Db::open_read_only(dir)? };
        let done =
            open::keyspace(&db, &self.keyspace).and_then(|keyspace| self.advise(&db, &keyspace));
        let closed = if self.apply { db.close() } else { Ok(()) };
        done?;
        closed?;
        Ok(Exit::Done)
    }

    fn advise(&self, db: &Db, keyspace: &Keyspace) -> Result<()> {
        let remembered = db.remembered_operations();
        let (counted, source) = match (&self.mix, Operations::counted(&remembered)) {
            (Some(_), _) => (None, Source::Given),
            (None, Some(counted)) => (Some(counted), Source::Remembered(remembered.total())),
            (None, None) => {
                return Err(usage(format!(
                    "the database remembers {}, which is too little to go by: say with --mix what \
                     there is to do",
                    human::counted(remembered.total(), "operation")
                )));
            }
        };
        let shape = keyspace.tree().shape;
        let records = Records::of_tree(&shape, &self.machine()?);
        let case = self.case(keyspace.design(), records, counted)?;
        let found = case.search()?;
        let terms = Terms { gain: self.gain / 100.0, within: self.within };
        let decision = Decision::of(&case, &found, keyspace, terms)?;
        self.tell(&case, &found, Some(&decision), source)?;
        if self.apply {
            decision.apply(keyspace)?;
        }
        Ok(())
    }

    fn tell(
        &self,
        case: &Case,
        found: &Found,
        decision: Option<&Decision>,
        source: Source,
    ) -> Result<()> {
        let mut out = io::stdout().lock();
        let telling = tell::Telling {
            case,
            found,
            decision,
            db: self.db.as_deref(),
            top: self.top,
            applies: self.apply,
            source,
        };
        if self.json {
            write_line(&mut out, &telling.json())?;
        } else {
            telling.text(&mut out)?;
        }
        Ok(out.flush()?)
    }
}
