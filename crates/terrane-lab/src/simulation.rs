//! Calibrates the simulator, reports its results, and compares it with the engine.
//!
//! | module | one line |
//! |---|---|
//! | [`constants`] | a file with the costs of entries and bytes |
//! | [`calibrate`] | measures the constants with the engine |
//! | [`device`] | bandwidth, cost per request and concurrency of a device |
//! | [`figures`] | the plots of simulations |
//! | [`map`] | which share of the maximum holds, for many designs |
//! | [`mix`] | a mix of operations as the load of a simulation |
//! | [`validate`] | compares the simulator with the engine: `docs/simulator.md` |
//! | [`report`] | the result of a simulation as JSON |
//! | [`trees`] | several trees, from text |

pub mod calibrate;
pub mod constants;
pub mod device;
pub mod figures;
pub mod map;
pub mod mix;
pub mod report;
pub mod trees;
pub mod validate;
