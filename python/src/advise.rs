//! `terrane.advise`: which design suits a workload.

use pyo3::prelude::*;
use terrane_lab::advice::question::{OperationProfile, RecordProfile};
use terrane_lab::advice::report::{AdviceReport, WorkloadSource};
use terrane_lab::advice::{AdviceCase, filter_bits_of};
use terrane_lab::input::quantity::check_data;
use terrane_policy::advice::{Limits, Objective};
use terrane_sim::MachineModel;
use terrane_workload::OperationMix;

use crate::design::DesignArgument;
use crate::errors;

/// The question, as the package passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Question {
    mix: String,
    records: f64,
    record_size: f64,
    memory: u64,
    rate: Option<f64>,
    objective: Option<String>,
    effort: usize,
    top: usize,
    writers: u32,
    seed: u64,
}

/// Ranks designs, and returns the advice as JSON.
#[pyfunction]
pub(crate) fn advise(
    py: Python<'_>,
    design: DesignArgument,
    question: Question,
) -> PyResult<String> {
    let bad = |error: &dyn std::fmt::Display| errors::invalid(error.to_string());
    let mix: OperationMix = question.mix.parse().map_err(|error| bad(&error))?;
    check_data(question.records, question.record_size).map_err(errors::from_lab)?;
    let mut operations =
        OperationProfile::of_mix(&mix, question.records).map_err(errors::from_lab)?;
    operations.rate = question.rate.or(operations.rate);
    let objective = match &question.objective {
        None => Objective::default(),
        Some(text) => text.parse().map_err(|error| bad(&error))?,
    };
    let case = AdviceCase {
        operations,
        records: RecordProfile { count: question.records, bytes: question.record_size },
        filter_bits: filter_bits_of(&design.0),
        now: design.0,
        memory: question.memory,
        machine: MachineModel::default(),
        objective,
        limits: Limits::default(),
        writers: question.writers.max(1),
        prefixes: None,
        effort: question.effort.clamp(1, 10_000),
        seed: question.seed,
    };
    let found = py.detach(|| case.search()).map_err(errors::from_lab)?;
    let report = AdviceReport {
        case: &case,
        found: &found,
        decision: None,
        db: None,
        top: question.top,
        applies: false,
        source: WorkloadSource::Given,
        trial: String::new(),
    };
    serde_json::to_string(&report.json()).map_err(|error| bad(&error))
}
