//! What *FloDB: Unlocking Memory in Persistent Key-Value Stores* (`EuroSys` 2017) says.
//!
//! Every claim is checked for the paper's two levels, whose lower one is a skip-list, and for ours,
//! whose lower one is the B-link tree. Other systems are stood for by the skip-list alone, a
//! multi-version one as in LevelDB and `RocksDB`, on the same engine: what differs is the memtable
//! and nothing else.
//!
//! | module | one line |
//! |---|---|
//! | [`setting`] | sizes, and the memtables |
//! | [`structures`] | latency by size; hash table against skip-list (Fig. 3, 4, 5, 7) |
//! | [`draining`] | multi-insert (Fig. 8) |
//! | [`workloads`] | by threads, on a tree (Fig. 9 to 12) |
//! | [`scans`] | scans beside writes, and how often they begin again (Fig. 13, 14) |
//! | [`memory`] | by the size of memory, and the ablation (Fig. 15 to 17) |
//! | [`alone`], [`database`] | threads on a memtable alone, and on a database |

mod alone;
mod database;
mod draining;
mod memory;
mod scans;
mod setting;
mod structures;
mod workloads;

use std::path::Path;

use anyhow::Result;

use super::report::Report;
use setting::Setting;
pub(super) use setting::Sizes;

/// Measures everything; the document.
pub(super) fn document(sizes: Sizes, dir: &Path, machine: &str) -> Result<String> {
    let setting = Setting::new(sizes);
    let mut report = Report::default();
    structures::measure(&setting, &mut report);
    draining::measure(&setting, &mut report);
    workloads::measure(&setting, dir, &mut report)?;
    scans::measure(&setting, dir, &mut report)?;
    memory::measure(&setting, dir, &mut report)?;
    let sizes = &setting.sizes;
    let join = |numbers: Vec<String>| numbers.join(", ");
    Ok(format!(
        "# FloDB, measured\n\n\
         What the paper *FloDB: Unlocking Memory in Persistent Key-Value Stores* (EuroSys 2017) says \
         of its two levels,\nand whether it holds here. [flodb.md](flodb.md) says what this memtable \
         is. This page is written by\n\n```sh\nterrane bench claims flodb --scale {} \
         --rounds {} --output docs/flodb-claims.md\n```\n\n\
         on this machine: {machine}. Threads {}, memory {} MiB, {} keys of 8 bytes with \
         values of {} on\nthe tree, seed {}, best of {} rounds, in which the memtables take turns.\n\n\
         *Published* has a skip-list as its lower level, *ours* the B-link tree. One more thread \
         drains. The skip-list\nalone stands for the systems that the paper compares with: same \
         engine, same tree, same flushes.\n\n{}",
        sizes.scale,
        sizes.rounds,
        join(sizes.threads.iter().map(u32::to_string).collect()),
        join(setting.memory_bytes().iter().map(|bytes| setting::mib(*bytes)).collect()),
        setting.keys(),
        setting::VALUE_BYTES,
        sizes.seed,
        sizes.rounds,
        report.results(),
    ))
}
