//! The experiments of five papers on LSM trees: measures their figures on this engine and in its simulator,
//! and judges their claims.
//!
//! | module | one line |
//! |---|---|
//! | [`commands`] | the program `terrane-papers`: `list`, `run`, `report`, `items` |
//! | [`report`] | the page, plots and data of measured experiments |
//! | [`checklist`] | the items of the papers and their states: `docs/papers/README.md` |
//! | [`experiments`], [`experiment`] | the measurements, one experiment per paper |
//! | [`figures`] | the figures of the papers: published points, and ours on the same axes |
//! | `needs` | the measurements that one figure needs |
//! | [`judge`] | the claims as data, and the verdicts on them |
//! | [`results`] | the measurements of an experiment |
//! | [`citation`] | places in papers: figures and spans of them |
#![forbid(unsafe_code)]

pub mod checklist;
pub mod citation;
pub mod commands;
pub mod experiment;
pub mod experiments;
pub mod figures;
pub mod judge;
mod needs;
pub mod report;
pub mod results;
