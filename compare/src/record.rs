//! One line of results: a measurement and everything that it depends on.

use serde::{Deserialize, Serialize};

use crate::job::Measurement;
use crate::machine::Machine;
use crate::settings::Settings;

/// Changes when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 1;

/// A measurement with its circumstances; a line of the JSON file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    /// When the measurement ended, in seconds since 1970.
    pub(crate) unix_seconds: u64,
    /// Which of the repetitions, from 1 on, and which measurement of that repetition.
    pub(crate) repetition: u32,
    pub(crate) position: usize,
    pub(crate) engine: String,
    pub(crate) engine_version: String,
    /// What an unsynced write of the engine promises.
    pub(crate) engine_promise: String,
    pub(crate) row: String,
    #[serde(flatten)]
    pub(crate) measurement: Measurement,
    pub(crate) threads: u32,
    pub(crate) seed: u64,
    /// What the engine was opened with; the compression is the one that it could do.
    pub(crate) settings: Settings,
    pub(crate) machine: Machine,
    pub(crate) command: Vec<String>,
}
