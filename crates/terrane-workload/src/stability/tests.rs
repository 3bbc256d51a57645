//! Tests the drivers in virtual time, and compares them with computed latencies.

mod mixed;
mod naive;
mod queue;
mod server;
mod stalls;
mod virtual_clock;

use std::time::Duration;

use super::{Load, PhaseOptions, PhaseReport, Query, Unwatched, run_phase};
use crate::options::RunOptions;
use server::Server;
use virtual_clock::VirtualClock;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

/// Runs a phase of `seconds` on a server in virtual time.
fn phase(server: &Server<'_>, load: Load, writers: u32, seconds: u64) -> PhaseReport {
    let options = PhaseOptions {
        load,
        duration: Duration::from_secs(seconds),
        warm_up: Duration::ZERO,
        writers,
        readers: 0,
        query: Query::Point,
        run: RunOptions { num: 1000, ..RunOptions::default() },
    };
    run_phase(server, &options, server.clock(), &Unwatched).unwrap()
}

/// Returns a clock for `writers` and the observer.
fn clock(writers: u32) -> VirtualClock {
    VirtualClock::new(writers as usize + 1)
}

/// Returns true if a measured time equals the exact time to the three digits of a histogram.
fn is_near(micros: f64, nanos: u64) -> bool {
    let exact = nanos as f64 / 1e3;
    (micros - exact).abs() <= exact / 400.0 + 0.001
}
