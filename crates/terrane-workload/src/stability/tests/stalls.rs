//! Stalls of known length, against computed latencies.

use super::*;
use crate::stability::{Criteria, Criterion, Schedule, Stall, Verdict};

/// Paper §3.2: five clients, a load of 1000 writes per second, and a stall of one second.
const STALL_AT: u64 = 10 * SECOND;

/// The time between the start of the clock and the start of the phase.
const LEAD: u64 = 20 * MILLI;

#[test]
fn the_paper_s_example_closed_has_five_delayed_writes() {
    let clock = clock(5);
    // Five clients that take 5 ms per write complete 1000 writes per second.
    let server = Server::stalling(&clock, 5 * MILLI, STALL_AT + LEAD, SECOND);
    let report = phase(&server, Load::Closed, 5, 20);
    let delayed = report.processing.samples() as f64 * 1e-3;
    assert_eq!(report.completed, 19_000, "the writes of the stalled second do not occur");
    assert!((18.9..19.1).contains(&delayed));
    assert!(is_near(report.write.max_micros(), SECOND + 5 * MILLI));
    let percent = 100.0 * (1.0 - 5.5 / 19_000.0);
    assert!(is_near(report.write.percentile_micros(percent), 5 * MILLI), "only five are delayed");
    let percent = 100.0 * (1.0 - 4.5 / 19_000.0);
    assert!(is_near(report.write.percentile_micros(percent), SECOND + 5 * MILLI));
    assert_eq!(report.offered, None);
}

#[test]
fn the_paper_s_example_open_has_a_thousand_that_wait_for_half_a_second() {
    let clock = clock(5);
    let server = Server::stalling(&clock, MILLI, STALL_AT + LEAD, SECOND);
    let report = phase(&server, Load::Open(Schedule::constant(1000.0)), 5, 20);
    assert_eq!((report.offered, report.completed, report.unfinished), (Some(20_000), 20_000, 0));
    let delayed: Vec<f64> = (0..20_000)
        .map(|rank| report.write.percentile_micros(100.0 * (f64::from(rank) + 0.5) / 20_000.0))
        .filter(|micros| *micros > 1001.0)
        .collect();
    // The writes of the stalled second, and those that arrive while the backlog drains: the server
    // completes five per millisecond, of which one is new, so 250 in a quarter of a second.
    assert!((1245..=1255).contains(&delayed.len()), "{}", delayed.len());
    let thousand = &delayed[delayed.len() - 1000..];
    let mean = thousand.iter().sum::<f64>() / 1000.0;
    assert!(mean >= 0.5e6, "{mean}");
    assert!(is_near(report.write.max_micros(), SECOND + MILLI));
    // Only five writes were in the engine; processing latencies do not show the waiting writes.
    let percent = 100.0 * (1.0 - 5.5 / 20_000.0);
    assert!(is_near(report.processing.percentile_micros(percent), MILLI));
    assert!(is_near(report.processing.max_micros(), SECOND + MILLI));
}

#[test]
fn a_stall_is_found_where_it_was_and_fails_its_criteria() {
    let clock = clock(1);
    let server = Server::stalling(&clock, MILLI / 10, 5 * SECOND + LEAD, 3 * SECOND);
    let report = phase(&server, Load::Open(Schedule::constant(1000.0)), 1, 20);
    let stalls = report.stalls();
    assert_eq!(stalls.len(), 1);
    let Stall { begin_seconds, seconds } = stalls[0];
    // A tick in which a write ended is not part of a stall, so both ends are exact to a tick.
    assert!((begin_seconds - 5.1).abs() < 0.01 && (seconds - 2.9).abs() < 0.01, "{stalls:?}");
    assert_eq!(report.slowest_second_share(), Some(0.0));
    let verdict = Verdict::of(&report, &Criteria::default());
    let failed: Vec<_> =
        verdict.findings.iter().filter(|one| !one.is_met()).map(|one| one.criterion).collect();
    let expected = [Criterion::TailLatency, Criterion::Stall, Criterion::SlowestSecond];
    assert_eq!(failed, expected);
    assert!(!verdict.is_sustainable());
}

#[test]
fn an_engine_that_keeps_up_is_sustainable_and_has_no_stalls() {
    let clock = clock(1);
    let server = Server::new(&clock, |_| MILLI);
    let report = phase(&server, Load::Open(Schedule::constant(950.0)), 1, 10);
    assert!(report.stalls().is_empty());
    assert!(is_near(report.write.max_micros(), MILLI));
    assert_eq!(report.late.max_micros(), 0.0);
    assert!(report.slowest_second_share().unwrap() > 0.99);
    assert!(Verdict::of(&report, &Criteria::default()).is_sustainable());
}

#[test]
fn an_overloaded_engine_falls_behind_and_its_queue_is_counted() {
    let clock = clock(1);
    let server = Server::new(&clock, |_| 2 * MILLI);
    let report = phase(&server, Load::Open(Schedule::constant(1000.0)), 1, 10);
    assert_eq!((report.completed, report.unfinished), (5000, 5000));
    // The oldest waiting write arrived after five seconds, and has waited for the other five.
    assert!((report.longest_wait_left_seconds - 5.0).abs() < 0.01);
    assert!(report.stalls().is_empty(), "the engine is slow but never stalls");
    let verdict = Verdict::of(&report, &Criteria::default());
    assert!(!verdict.is_sustainable());
    let slowest = report.slowest_second_share().unwrap();
    assert!((slowest - 0.5).abs() < 0.01, "{slowest}");
}

#[test]
fn backlogs_of_bursts_drain_and_the_slowest_second_is_relative_to_its_arrivals() {
    let clock = clock(1);
    let server = Server::new(&clock, |_| MILLI);
    // The server completes 1000 per second: two seconds of 2000 leave a backlog of 2000 for the six
    // seconds of 500.
    let schedule = Schedule::burst(500.0, 6.0, 2000.0, 2.0);
    let report = phase(&server, Load::Open(schedule), 1, 16);
    // The first burst begins at 6 and ends at 8 with 2000 waiting writes, which drain by 12.
    assert!(is_near(report.write.max_micros(), 2 * SECOND), "{}", report.write.max_micros());
    let slowest = report.slowest_second_share().unwrap();
    assert!((slowest - 0.5).abs() < 0.01, "{slowest}");
    let windows = report.timeline.windows(1.0);
    assert_eq!(windows[2].completed, 500);
    assert_eq!(windows[9].completed, 1000);
    assert_eq!(windows[13].completed, 500);
}

#[test]
fn only_the_timeline_includes_the_warm_up() {
    let clock = clock(1);
    // The first two seconds are ten times as fast as the rest.
    let server =
        Server::new(&clock, |start| if start < 2 * SECOND + LEAD { MILLI } else { 10 * MILLI });
    let options = PhaseOptions {
        load: Load::Closed,
        duration: Duration::from_secs(12),
        warm_up: Duration::from_secs(2),
        writers: 1,
        readers: 0,
        query: Query::Point,
        run: RunOptions { num: 10, ..RunOptions::default() },
    };
    let report = run_phase(&server, &options, &clock, &Unwatched).unwrap();
    assert!((report.per_second() - 100.0).abs() < 0.2, "{}", report.per_second());
    assert_eq!(report.timeline.windows(1.0)[0].completed, 999);
    assert_eq!(report.samples.len(), 12 * 4 + 1);
    assert_eq!(report.seconds, 10.0);
}
