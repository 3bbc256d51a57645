//! Gets by the number of threads (Dent §2.4.2, §5), from a disk and from memory.
//!
//! The tree is the one of Fig. 3, whose gets search all runs. From the disk, tables are read past
//! the page cache with few blocks in memory, so that each run of a get is a read of the device.

use std::path::Path;

use anyhow::Result;
use terrane_lab::host::progress;
use terrane_lab::output::human;

use super::talk::ProgramRun;
use super::workload::{CommandWorkload, KeyDistribution};
use super::{DentSizes, MANY_RUNS, PUTS, TreeParameters};
use crate::results::Results;

const THREADS: [u32; 4] = [1, 2, 4, 8];

/// The number of gets of a point, from the disk, where each reads all runs, and from memory.
const DISK_GETS: f64 = 1000.0;
const MEMORY_GETS: f64 = 30_000.0;

pub(super) fn measure(sizes: &DentSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let spinner = progress::spinner("gets by threads");
    let mut rows = Vec::new();
    for (place, gets, more) in
        [("disk", DISK_GETS, &["--direct"][..]), ("memory", MEMORY_GETS, &[])]
    {
        let puts = sizes.count(PUTS);
        let gets = sizes.count(gets).max(100);
        let workload = CommandWorkload::new(KeyDistribution::Uniform, puts, gets, sizes.seed);
        let mut first = None;
        for threads in THREADS {
            spinner.set_message(format!("gets from {place}, {threads} threads"));
            let parameters = TreeParameters { threads, ..MANY_RUNS };
            let run = |_| sizes.ours(parameters, more, &workload, dir);
            let rounds = (0..sizes.rounds.max(1)).map(run).collect::<Result<Vec<_>>>()?;
            let Some(run) = rounds.iter().copied().reduce(ProgramRun::best) else { continue };
            let first = *first.get_or_insert(run);
            rows.push(row(place, threads, gets, run, first));
            let keys = [place, &*threads.to_string()];
            let rates = rounds.iter().filter_map(|run| run.gets_per_second);
            let micros: Vec<f64> = rates.map(|rate| 1e6 / rate).collect();
            results.record_least("threads_get_micros", &keys, &micros);
            let cpu: Vec<f64> = rounds.iter().filter_map(|run| run.get_cpu_micros).collect();
            results.record_least("threads_get_cpu", &keys, &cpu);
        }
    }
    spinner.finish_and_clear();
    let introduction = "b = 100, f = 1000, r = 0.5, uniform puts as in Fig. 3: a get searches nearly all runs. *Disk* is \
                        `--direct`,\nwhich reads tables past the page cache.";
    let headers = ["data", "t", "gets", "µs a get", "faster than t = 1", "cpu"];
    results.table_with_introduction("Gets by threads", introduction, &headers, rows);
    Ok(())
}

fn row(place: &str, threads: u32, gets: u64, run: ProgramRun, first: ProgramRun) -> Vec<String> {
    let rate = |run: ProgramRun| run.gets_per_second.unwrap_or(f64::NAN);
    vec![
        place.to_owned(),
        threads.to_string(),
        human::count(gets),
        human::number(1e6 / rate(run)),
        human::ratio(rate(run) / rate(first)),
        run.get_cpu_micros.map_or("-".to_owned(), human::number),
    ]
}
