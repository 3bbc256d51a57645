//! bLSM: Fig. 6.

use anyhow::Result;
use terrane_sim::{Arrival, Simulation, Skew};

use super::setting::{HEADERS, Setting, row, variation};
use crate::document::Document;
use crate::human;
use crate::human::seconds;

/// §4.2: 1 GB of memory, here for one memtable that is written and one that is flushed; a ratio of
/// ten, eight writers, at most two runs a level.
const DESIGN: &str = "blsm-spring; buffer=512MiB";

pub(super) fn play(setting: &Setting, document: &mut Document) -> Result<()> {
    let mut rows = Vec::new();
    let mut rates = Vec::new();
    for (name, skew) in [("uniform", Skew::Uniform), ("zipf", Skew::Zipf(0.99))] {
        let mut setup = setting.setup(DESIGN)?;
        (setup.workload.skew, setup.workload.writers) = (skew, 8);
        let tree = setting.loaded(&setup);
        let testing = Simulation::new(&setup, tree.clone()).run(setting.seconds()).0;
        let rate = testing.rate_from(setting.warm_up());
        setup.workload.arrival = Arrival::Constant((0.95 * rate).max(1.0));
        let running = Simulation::new(&setup, tree).run(setting.seconds()).0;
        rows.push(row(&format!("{name}, testing"), &testing, setting.warm_up()));
        rows.push(row(&format!("{name}, running"), &running, 0.0));
        rates.push(rate);
        if skew != Skew::Uniform {
            continue;
        }
        let varies = variation(&testing, setting.warm_up());
        document.claim(
            "Fig. 6a",
            "as fast as it takes writes, bLSM's rate varies much, with regular peaks",
            (format!("standard deviation {:.0} % of the mean", varies * 100.0), varies > 0.3),
            "",
        );
        let (all, each) = (&running.latencies, &running.processing);
        document.claim(
            "Fig. 6c, S3-72",
            "processing a write takes a bounded time, but with its time in the queue a write takes far longer",
            (
                format!(
                    "p99 {} with the queue, {} without it",
                    seconds(all.quantile(0.99)),
                    seconds(each.quantile(0.99))
                ),
                all.quantile(0.99) > 10.0 * each.quantile(0.99),
            ),
            "",
        );
    }
    document.claim(
        "Fig. 6a",
        "skewed updates make it faster, as entries that were overwritten go earlier",
        (
            format!("{} and {} writes/s", human::number(rates[0]), human::number(rates[1])),
            rates[1] > rates[0],
        ),
        "",
    );
    document.table("Fig. 6: bLSM, two levels on disk", &HEADERS, &rows);
    document.text(
        "The design is `blsm-spring`. Its scheduler is `gear`: a merge has bandwidth in proportion to what it \
         has left over the room that\nis left in its level. While what was in a level is on its way down, \
         writers are slowed down by how far the level is full again,\nand stop when it would need a third \
         run. The rate is that of half the memory: what is flushed needs the other half.",
    );
    Ok(())
}
