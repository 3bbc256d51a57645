//! The same runs with one thing changed, where a claim of the paper does not hold.
//!
//! - Fig. 11: two runs of each level and two of level 0 add up to more than 2L. A global limit of
//!   equally many runs isolates the effect of the kind of limit, and a rate of 100 % shows it under
//!   pressure.
//! - Fig. 10b: a wider limit shows that fair stops writers because of the limit, not the bandwidth.
//! - §5.2.2: phases of 64 hours show rates without the effect of the largest merges, which a
//!   scheduler postpones in part of a phase.

use anyhow::Result;

use super::sizes::SimulatedSizes;
use crate::experiments::stability::figures::{CONCURRENT, SCHEDULERS, full_merges, with};
use crate::experiments::stability::plan::{PhasePlan, PlanPart, PlannedArrival, PlayedPhases};
use crate::experiments::stability::scale::StabilityScale;
use crate::results::Results;

/// The ratio of leveling in Fig. 7 to 9 and 11 (§5.2.1).
const RATIO: u32 = 10;

/// The ratio at which fair stops writers under tiering.
const TIERING_RATIO: u32 = 6;

/// The length of the long phases, in phases.
const LONG: f64 = 32.0;

/// Returns the changed phases.
pub(super) fn parts(sizes: &SimulatedSizes) -> [PlanPart<'static>; 3] {
    let subject = format!("tiering T={TIERING_RATIO}");
    let wider = format!("{}; limit=global(3x)", with(&sizes.tiering(TIERING_RATIO), "fair"));
    let wider = named("wider", PhasePlan::running(format!("{subject} fair"), wider, &subject));
    let [tiering, _] = full_merges(sizes);
    let long = SCHEDULERS.map(|scheduler| {
        let testing = PhasePlan::testing(format!("tiering {scheduler}"), with(&tiering, scheduler));
        PhasePlan { length: LONG, ..named("long", testing) }
    });
    [
        PlanPart::new("Fig. 11", limits(sizes), limits_table),
        PlanPart::new("Fig. 10", vec![wider], |_, _| Ok(())),
        PlanPart::new("Fig. 7", long.to_vec(), |_, _| Ok(())),
    ]
}

/// Returns the phases of Fig. 11 with equally many runs under either limit, and at the full rate.
fn limits(sizes: &SimulatedSizes) -> Vec<PhasePlan> {
    // Two runs of each level and of level 0.
    let as_many = format!("limit=global({})", 2 * (sizes.levels(RATIO) + 1));
    let phases = CONCURRENT.iter().flat_map(|scheduler| {
        let design = with(&sizes.leveling(RATIO), scheduler);
        let of = "leveling fair";
        let running = |phase: &str, limit: &str| {
            let subject = format!("leveling {scheduler}");
            named(phase, PhasePlan::running(subject, format!("{design}; {limit}"), of))
        };
        let full = |plan| PhasePlan {
            arrival: PlannedArrival::Share { of: of.to_owned(), share: 1.0 },
            ..plan
        };
        [
            running("as many", &as_many),
            full(running("full as many", &as_many)),
            full(running("full local", "limit=local(2x)")),
        ]
    });
    phases.collect()
}

fn named(phase: &str, plan: PhasePlan) -> PhasePlan {
    PhasePlan { phase: phase.to_owned(), ..plan }
}

/// Adds the table of Fig. 11 with equally many runs under either limit.
fn limits_table(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    let mut rows = Vec::new();
    for scheduler in CONCURRENT {
        let subject = format!("leveling {scheduler}");
        for (name, phase) in [
            ("95 %, local", "local"),
            ("95 %, global", "as many"),
            ("100 %, local", "full local"),
            ("100 %, global", "full as many"),
        ] {
            rows.push((format!("{scheduler}, {name}"), subject.clone(), phase));
        }
    }
    played.table("Fig. 11: leveling, limits of as many runs in all", "", &rows, results)
}
