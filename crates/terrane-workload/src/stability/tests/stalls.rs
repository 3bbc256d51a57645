//! Stalls of known length give the latencies that arithmetic gives.

use super::*;
use crate::stability::{Criteria, Criterion, Schedule, Stall, Verdict};

/// Paper §3.2: five clients, 1000 writes a second are wanted, and the engine stalls for a second.
const STALL_AT: u64 = 10 * SECOND;

/// The phase begins a little after the clock.
const LEAD: u64 = 20 * MILLI;

#[test]
fn the_paper_s_example_closed_has_five_delayed_writes() {
    let clock = clock(5);
    // Five clients of 5 ms a write make 1000 a second.
    let server = Server::stalling(&clock, 5 * MILLI, STALL_AT + LEAD, SECOND);
    let report = phase(&server, Load::Closed, 5, 20);
    let delayed = report.processing.samples() as f64 * 1e-3;
    assert_eq!(report.completed, 19_000, "the writes of that second do not occur");
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
    // Those of the stalled second, and those that came while these were done: five a
    // millisecond, one of which is new, so 250 in the quarter of a second that this takes.
    assert!((1245..=1255).contains(&delayed.len()), "{}", delayed.len());
    let thousand = &delayed[delayed.len() - 1000..];
    let mean = thousand.iter().sum::<f64>() / 1000.0;
    assert!(mean >= 0.5e6, "{mean}");
    assert!(is_near(report.write.max_micros(), SECOND + MILLI));
    // Five of them were with the engine; for the others its own latency says nothing.
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
    // A tick in which something ended is no stall, so both ends are exact to a tick.
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
    // The oldest that waits came after five seconds, and has waited for the other five.
    assert!((report.longest_wait_left_seconds - 5.0).abs() < 0.01);
    assert!(report.stalls().is_empty(), "it is slow, and never stands still");
    let verdict = Verdict::of(&report, &Criteria::default());
    assert!(!verdict.is_sustainable());
    let slowest = report.slowest_second_share().unwrap();
    assert!((slowest - 0.5).abs() < 0.01, "{slowest}");
}

#[test]
fn bursts_are_waited_out_and_the_slowest_second_is_held_against_its_own_arrivals() {
    let clock = clock(1);
    let server = Server::new(&clock, |_| MILLI);
    // 1000 a second can be done: two seconds of 2000 leave 2000 more for the six seconds of 500.
    let schedule = Schedule::burst(500.0, 6.0, 2000.0, 2.0);
    let report = phase(&server, Load::Open(schedule), 1, 16);
    // The first burst begins at 6, ends at 8 with 2000 waiting, and is over at 12.
    assert!(is_near(report.write.max_micros(), 2 * SECOND), "{}", report.write.max_micros());
    let slowest = report.slowest_second_share().unwrap();
    assert!((slowest - 0.5).abs() < 0.01, "{slowest}");
    let windows = report.timeline.windows(1.0);
    assert_eq!(windows[2].completed, 500);
    assert_eq!(windows[9].completed, 1000);
    assert_eq!(windows[13].completed, 500);
}

#[test]
fn warm_up_is_left_out_but_for_the_timeline() {
    let clock = clock(1);
    // The first two seconds are ten times as fast.
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
