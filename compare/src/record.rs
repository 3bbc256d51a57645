//! One line of results: a measurement and everything that affects it.

use serde::{Deserialize, Serialize};

use crate::job::Measurement;
use crate::machine::Machine;
use crate::settings::Settings;

/// Increased when the meaning of a field changes.
pub(crate) const SCHEMA: u32 = 1;

/// A measurement and its circumstances; one line of the JSON file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    /// When the measurement ended, in seconds since 1970.
    pub(crate) unix_seconds: u64,
    /// The number of the repetition, from 1 on, and the position of the measurement in it.
    pub(crate) repetition: u32,
    pub(crate) position: usize,
    pub(crate) engine: String,
    pub(crate) engine_version: String,
    /// What the engine promises after an unsynced write.
    pub(crate) engine_promise: String,
    pub(crate) row: String,
    #[serde(flatten)]
    pub(crate) measurement: Measurement,
    pub(crate) threads: u32,
    pub(crate) seed: u64,
    /// The settings with which the engine was opened; the compression is the one that the engine
    /// used.
    pub(crate) settings: Settings,
    pub(crate) machine: Machine,
    pub(crate) command: Vec<String>,
}
