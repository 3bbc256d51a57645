//! Random schedules and service times, compared with a naive queue.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::latency::Latency;
use crate::stability::{PERCENTILES, Schedule};

/// The time between the start of the clock and the start of the phase.
const LEAD: u64 = 20 * MILLI;

/// A pseudo-random service time derived from the start time, so that the order of two writes that
/// start together does not matter.
fn service(moment: u64, seed: u64, mean_nanos: u64) -> u64 {
    let mixed = (moment ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    // One write in sixty-four takes twenty times as long as the others.
    let factor = if (mixed >> 40).is_multiple_of(64) { 20 } else { 1 };
    1 + (mixed >> 20) % (2 * mean_nanos) * factor
}

fn schedule(rng: &mut Xoshiro256PlusPlus) -> Schedule {
    let mut between = |low: u64, high: u64| (low + rng.next_u64() % (high - low)) as f64;
    if between(0, 2) > 0.0 {
        Schedule::constant(between(50, 3000))
    } else {
        let (low, high) = (between(0, 500), between(500, 5000));
        Schedule::burst(low, between(1, 20) / 10.0, high, between(1, 20) / 10.0)
    }
}

#[test]
fn latencies_equal_those_of_a_naive_queue() {
    for seed in 0..40 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let writers = 1 + (rng.next_u64() % 4) as u32;
        let schedule = schedule(&mut rng);
        // The load ranges from half idle to permanently overloaded.
        let utilization = 0.5 + (rng.next_u64() % 100) as f64 / 100.0;
        let mean = f64::from(writers) * 1e9 / schedule.mean_per_second() * utilization / 1.3;
        let mean = (mean as u64).max(1);

        let clock = clock(writers);
        let server = Server::new(&clock, move |start| service(start - LEAD, seed, mean));
        let report = phase(&server, Load::Open(schedule), writers, 4);

        let end = 4 * SECOND;
        let arrivals = (0..).map(|index| schedule.time_of(index));
        let (done, unfinished) =
            naive::latencies(arrivals, writers as usize, end, |start| service(start, seed, mean));
        let (mut write, mut processing) = (Latency::new(), Latency::new());
        for (whole, own) in &done {
            write.record(Duration::from_nanos(*whole));
            processing.record(Duration::from_nanos(*own));
        }
        let offered = schedule.arrivals_before(end);
        let due = schedule.time_of(offered - unfinished as u64);
        for index in offered - unfinished as u64..offered {
            write.record(Duration::from_nanos(end - schedule.time_of(index)));
        }
        let context = format!("seed {seed}: {writers} writers, {schedule:?}, {mean} ns");
        assert_eq!(report.offered, Some(offered), "{context}");
        assert_eq!(report.completed, done.len() as u64, "{context}");
        assert_eq!(report.unfinished, unfinished as u64, "{context}");
        assert_eq!(report.processing.summary(), processing.summary(), "{context}");
        for percent in PERCENTILES {
            let (ours, naive) =
                (report.write.percentile_micros(percent), write.percentile_micros(percent));
            assert_eq!(ours, naive, "{context}, {percent} %");
        }
        assert_eq!(report.write.max_micros(), write.max_micros(), "{context}");
        let left = if unfinished > 0 { (end - due) as f64 / 1e9 } else { 0.0 };
        assert_eq!(report.longest_wait_left_seconds, left, "{context}");
        assert_eq!(
            report.timeline.ticks().iter().map(|tick| tick.completed).sum::<u64>(),
            report.completed
        );
    }
}
