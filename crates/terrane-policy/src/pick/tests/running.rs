//! Parses running jobs from text.

use std::sync::Arc;

use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::shape::{TableId, TreeShape};

/// Parses running jobs: `3+2>L1` merges tables 3 and 2 into level 1, and `flush:4>L0` is a merging
/// flush that rewrites table 4. A job joins the oldest of its runs in its output level.
pub(super) fn jobs(text: &str, shape: &TreeShape) -> Vec<Compaction> {
    text.split(',').map(|job| one(job, shape)).collect()
}

pub(super) fn one(text: &str, shape: &TreeShape) -> Compaction {
    let flush = text.strip_prefix("flush:");
    let (tables, output) = flush.unwrap_or(text).split_once(">L").unwrap();
    let output: usize = output.parse().unwrap();
    let mut inputs: Vec<Input> = Vec::new();
    for id in tables.split('+') {
        let id = TableId(id.parse().unwrap());
        let place = shape.places().find(|place| place.table.id == id).unwrap();
        match inputs.iter_mut().find(|input| input.run == place.run) {
            Some(input) => input.tables.push(Arc::clone(place.table)),
            None => inputs.push(Input {
                level: place.level,
                run: place.run,
                tables: vec![Arc::clone(place.table)],
            }),
        }
    }
    let joined = inputs.iter().filter(|input| input.level == output).map(|input| input.run).min();
    let reason =
        flush.map_or(Reason::Manual { level: inputs[0].level, rewrites: false }, |_| Reason::Flush);
    Compaction {
        inputs,
        output: Output {
            level: output,
            placement: joined.map_or(Placement::NewRun, Placement::Join),
        },
        relocated: Vec::new(),
        reason,
    }
}
