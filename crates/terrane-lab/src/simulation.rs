//! The simulator: its constants, measured; its results as data; and a comparison with the engine.
//!
//! | module | one line |
//! |---|---|
//! | [`constants`] | what bytes and entries cost, in a file |
//! | [`calibrate`] | measures the constants with the engine |
//! | [`validate`] | compares the simulator with the engine: `docs/simulator.md` |
//! | [`report`] | the result of a simulation as JSON |

pub mod calibrate;
pub mod constants;
pub mod report;
pub mod validate;
