//! Tests the verdicts that one run gives on phases of several lengths.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use terrane_sim::{
    Arrival, InitialTree, MachineModel, RateVerdict, ReadLoad, Simulation, SimulationSetup, Skew,
    WriteLoad, WriteMix, initial_tree, phases,
};

fn setup(design: &str) -> SimulationSetup {
    let workload = WriteLoad {
        records: 60_000.0,
        key_bytes: 16.0,
        record_bytes: 1024.0,
        skew: Skew::Uniform,
        arrival: Arrival::Closed,
        writers: 1,
        mix: WriteMix::default(),
        reads: ReadLoad::default(),
    };
    let machine = MachineModel { budget: Some(20e6), slots: 16, ..MachineModel::default() };
    let mut setup = SimulationSetup::new(design.parse().unwrap(), workload, machine);
    setup.window_seconds = 1.0;
    setup
}

#[test]
fn one_run_has_the_verdicts_of_a_run_of_each_phase() {
    let (lengths, mut found) = ([20.0, 45.0, 90.0], Vec::new());
    for design in ["tiering T=6", "leveling T=4; granularity=level"] {
        for rest in ["scheduler=fair; limit=level0", "scheduler=single; limit=local(2x)"] {
            let text = format!("{design}; {rest}; buffer=1MiB; buffers=1; violation=stop");
            let mut setup = setup(&text);
            let tree = initial_tree(&setup, InitialTree::Settled, 3);
            let maximum = phases::greatest(&setup, &tree, 90.0).rate_from(15.0);
            for share in [0.3, 0.7, 0.9, 1.0, 1.3, 3.0] {
                setup.workload.arrival = Arrival::Constant(share * maximum);
                let of = |seconds: &f64| {
                    RateVerdict::of(&Simulation::new(&setup, tree.clone()).run(*seconds).0)
                };
                let apart: Vec<RateVerdict> = lengths.iter().map(of).collect();
                let verdicts = phases::verdicts(&setup, tree.clone(), &lengths);
                assert_eq!(verdicts, apart, "{text} at {share}");
                found.push(verdicts);
            }
        }
    }
    // Some rates are sustainable, some are not, and some only in short phases.
    let all = |verdict| found.iter().filter(|one| one.iter().all(|of| *of == verdict)).count();
    let same = all(RateVerdict::Sustainable) + all(RateVerdict::Unsustainable);
    assert!(all(RateVerdict::Sustainable) > 3 && all(RateVerdict::Unsustainable) > 3, "{found:?}");
    assert!(same < found.len(), "{found:?}");
}
