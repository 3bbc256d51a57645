//! `terrane advise`: which design suits a workload, what it gains and costs, and what a change takes.
//!
//! [`terrane_lab::advice`] searches; this module prints.

mod arguments;
pub(crate) mod show;

use std::io::Write;

use anyhow::Result;
use terrane::{Db, Keyspace};
use terrane_lab::advice::AdviceCase;
use terrane_lab::advice::decide::{ChangeDecision, ChangeTerms};
use terrane_lab::advice::memtables::sample;
use terrane_lab::advice::question::{OperationProfile, RecordProfile};
use terrane_lab::advice::report::{AdviceReport, WorkloadSource};
use terrane_lab::advice::search::SearchResult;
use terrane_lab::output::json::write_line;

pub(crate) use arguments::AdviseArgs;

use crate::exit::{Exit, usage};
use crate::open;
use crate::output;
use crate::terminal::Paint;
use terrane_lab::output::human;

impl AdviseArgs {
    /// Prints advice, and with `--apply` changes the design if the change pays for itself.
    pub(crate) fn run(&self) -> Result<Exit> {
        let Some(dir) = &self.db else {
            if self.apply {
                return Err(usage("--apply needs a database; name its directory"));
            }
            let case = self.case(self.design()?, None, None)?;
            let found = case.search()?;
            let source =
                if self.mix.is_none() { WorkloadSource::Assumed } else { WorkloadSource::Given };
            self.print(&case, &found, None, source)?;
            return Ok(Exit::Done);
        };
        let db = if self.apply { open::existing(dir)? } else { open::read_only(dir)? };
        let done =
            open::keyspace(&db, &self.keyspace).and_then(|keyspace| self.advise(&db, &keyspace));
        let closed = if self.apply { db.close() } else { Ok(()) };
        done?;
        closed?;
        Ok(Exit::Done)
    }

    fn advise(&self, db: &Db, keyspace: &Keyspace) -> Result<()> {
        let history = db.remembered_operations();
        let (counted, source) = match (&self.mix, OperationProfile::counted(&history)) {
            (Some(_), _) => (None, WorkloadSource::Given),
            (None, Some(counted)) => (Some(counted), WorkloadSource::Recorded(history.total())),
            (None, None) => {
                return Err(usage(format!(
                    "the database recorded only {}, too few for advice; describe the workload with \
                     --mix",
                    human::counted(history.total(), "operation")
                )));
            }
        };
        let shape = keyspace.tree().shape;
        let records = RecordProfile::of_tree(&shape, &self.machine()?);
        let mut case = self.case(keyspace.design(), records, counted)?;
        case.prefixes = sample(keyspace, case.records.count)?;
        let found = case.search()?;
        let terms = ChangeTerms { gain: self.gain / 100.0, within: self.within };
        let decision = ChangeDecision::of(&case, &found, keyspace, terms)?;
        self.print(&case, &found, Some(&decision), source)?;
        if self.apply {
            decision.apply(keyspace)?;
        }
        Ok(())
    }

    /// Returns the flags of a benchmark with the operations and sizes in question, and with few
    /// enough records to finish in minutes.
    fn trial(&self, case: &AdviceCase) -> String {
        const RECORDS_MAX: f64 = 10e6;
        const KEY_BYTES: f64 = 16.0;
        let mix = self.mix.as_ref().map_or_else(String::new, |mix| format!(" --mix '{mix}'"));
        let records = case.records.count.min(RECORDS_MAX).round();
        let value_bytes = (case.records.bytes - KEY_BYTES).max(0.0).round();
        format!("{mix} --num {records} --value-size {value_bytes}")
    }

    fn print(
        &self,
        case: &AdviceCase,
        found: &SearchResult,
        decision: Option<&ChangeDecision>,
        source: WorkloadSource,
    ) -> Result<()> {
        let mut out = output::text_or_json(self.json);
        let report = AdviceReport {
            case,
            found,
            decision,
            db: self.db.as_deref(),
            top: self.top,
            applies: self.apply,
            source,
            trial: self.trial(case),
        };
        if self.json {
            write_line(&mut out, &report.json())?;
        } else {
            show::advice(&mut out, &report, Paint::stdout())?;
        }
        Ok(out.flush()?)
    }
}
