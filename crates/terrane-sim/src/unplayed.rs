//! The parts of a design and its workload that a simulation leaves out.

use terrane_policy::design::{Compression, MemtableKind};
use terrane_policy::strategy::Movement;
use terrane_policy::{Design, TriggerKind};

use crate::keys::Skew;
use crate::simulation::SimulationSetup;

/// Returns a sentence for each part of a setup that is simulated only approximately or not at all.
/// For a setup without such parts, the results represent the whole design.
pub fn unplayed(setup: &SimulationSetup) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in setup.alone().iter().flat_map(unplayed_alone) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// Returns the sentences for a setup of a single tree.
fn unplayed_alone(setup: &SimulationSetup) -> Vec<String> {
    let SimulationSetup { design, workload, .. } = setup;
    let mix = &workload.mix;
    let mut notes = Vec::new();
    let has_deletes = mix.deletes > 0.0 || mix.range_deletes > 0.0;
    let expires = mix.expiring > 0.0;
    if !has_deletes && !expires {
        let kinds = [TriggerKind::TombstoneTtl, TriggerKind::TombstoneDensity];
        let idle = kinds.into_iter().filter(|kind| has_trigger(design, *kind));
        let mut idle: Vec<&str> = idle.map(|kind| kind.info().name).collect();
        let moves =
            [(Movement::MostTombstones, "most-tombstones"), (Movement::ExpiredTtl, "expired-ttl")];
        idle.extend(
            moves.iter().filter(|(one, _)| has_movement(design, *one)).map(|(_, name)| *name),
        );
        if !idle.is_empty() {
            notes.push(format!(
                "the workload has no deletes, so {} never decides anything; see --mix and --ttl",
                idle.join(" and ")
            ));
        }
    }
    if has_deletes && !mix.deleted_return && workload.skew != Skew::Uniform {
        notes.push(
            "deletes of popular keys do not make other keys popular: the skew is over all keys"
                .to_owned(),
        );
    }
    if expires {
        notes.push("records of the initial tree, if it has any, never expire".to_owned());
    }
    if expires && !mix.deleted_return && mix.inserts < 1.0 {
        notes.push("updates and deletes also choose keys whose values have expired".to_owned());
    }
    if has_trigger(design, TriggerKind::ReadTriggered) || has_movement(design, Movement::Coldest) {
        notes.push("reads never decide which tables are compacted".to_owned());
    }
    if design.compression.values().iter().any(|one| *one != Compression::None) {
        notes.push("tables are not compressed".to_owned());
    }
    if matches!(design.memtable, MemtableKind::FloDb(_)) {
        notes.push(
            "the memtable keeps every version of a key, so repeated updates fill it sooner than \
             in place"
                .to_owned(),
        );
    }
    notes
}

fn has_trigger(design: &Design, kind: TriggerKind) -> bool {
    design.strategy.triggers.values().iter().flatten().any(|trigger| trigger.kind() == kind)
}

fn has_movement(design: &Design, movement: Movement) -> bool {
    design.strategy.movement.values().iter().flatten().any(|one| *one == movement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineModel;
    use crate::mix::WriteMix;
    use crate::workload::{Arrival, ReadLoad, WriteLoad};

    #[test]
    fn parts_that_are_not_simulated_are_named() {
        let notes = |design: &str, mix: WriteMix| {
            let workload = WriteLoad {
                records: 1e6,
                key_bytes: 16.0,
                record_bytes: 100.0,
                skew: Skew::Zipf(0.99),
                arrival: Arrival::Closed,
                writers: 1,
                mix,
                reads: ReadLoad::default(),
            };
            let design = design.parse().unwrap();
            unplayed(&SimulationSetup::new(design, workload, MachineModel::default())).join("; ")
        };
        let updates = WriteMix::default();
        assert_eq!(notes("balanced", updates), "");
        assert!(notes("lethe", updates).contains("no deletes"), "{}", notes("lethe", updates));
        let deletes = WriteMix { deletes: 0.1, ..updates };
        assert_eq!(notes("lethe", deletes), "");
        let for_good = WriteMix { deleted_return: false, ..deletes };
        assert!(notes("lethe", for_good).contains("popular"));
        let expiring = WriteMix { expiring: 1.0, ttl_seconds: 60.0, ..updates };
        assert!(notes("lethe", expiring).contains("never expire"));
        let existing = WriteMix { deleted_return: false, ..expiring };
        assert!(notes("lethe", existing).contains("also choose keys whose values have expired"));
        assert!(notes("balanced; compression=lz4", updates).contains("compressed"));
        assert!(notes("balanced; memtable=flodb", updates).contains("memtable"));
        assert!(notes("balanced; movement=coldest", updates).contains("reads"));
    }
}
