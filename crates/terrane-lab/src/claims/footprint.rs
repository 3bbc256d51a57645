//! Memory of many entries by X and H: Fig. 3.

use terrane_policy::MemtableKind;

use super::report::{Claim, Report, times};
use super::setting::{ENTRY_BYTES, Mode, PREFIX, Setting, hash_linked_list, hash_skip_list};
use crate::memtable::Load;

const PREFIXES: [u8; 5] = [2, 4, 6, 8, 10];
const BUCKETS: [u32; 6] = [1, 10, 100, 1000, 10_000, 100_000];

/// Two footprints are alike if they are this close.
const ALIKE: f64 = 0.10;

/// Bytes per entry.
struct Footprints {
    vector: f64,
    skip_list: f64,
    tree: f64,
    /// Of hash skip-list and hash linked-list.
    by_prefix: [[f64; PREFIXES.len()]; 2],
    by_buckets: [[f64; BUCKETS.len()]; 2],
}

pub(super) fn measure(setting: &Setting, report: &mut Report) {
    let load = Load::new(setting.entries_footprint(), ENTRY_BYTES, setting.seed);
    let per_entry = |kind: MemtableKind| load.memory(kind).used_bytes() as f64 / load.len() as f64;
    let hashed: [fn(Mode, u8, u32) -> MemtableKind; 2] = [hash_skip_list, hash_linked_list];
    for mode in Mode::ALL {
        let footprints = Footprints {
            vector: per_entry(MemtableKind::VECTOR),
            skip_list: per_entry(MemtableKind::SKIP_LIST),
            tree: per_entry(MemtableKind::BTree),
            by_prefix: hashed
                .map(|kind| PREFIXES.map(|x| per_entry(kind(mode, x, setting.buckets())))),
            by_buckets: hashed.map(|kind| BUCKETS.map(|h| per_entry(kind(mode, PREFIX, h)))),
        };
        let headers = PREFIXES.map(|x| format!("X={x}"));
        let title =
            format!("Fig. 3a: bytes per entry by X, H={}, {}", setting.buckets(), mode.name());
        footprints.table(title, &headers, &footprints.by_prefix, report);
        let headers = BUCKETS.map(|h| format!("H={h}"));
        let title = format!("Fig. 3b: bytes per entry by H, X={PREFIX}, {}", mode.name());
        footprints.table(title, &headers, &footprints.by_buckets, report);
        footprints.claims(mode, report);
    }
}

impl Footprints {
    fn table<const N: usize>(
        &self,
        title: String,
        headers: &[String; N],
        hashed: &[[f64; N]; 2],
        report: &mut Report,
    ) {
        let row = |name: &str, values: &[f64; N]| {
            let cells = values.iter().map(|value| format!("{value:.1}"));
            std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>()
        };
        let rows = vec![
            row("vector", &[self.vector; N]),
            row("skip-list", &[self.skip_list; N]),
            row("B-link tree", &[self.tree; N]),
            row("hash skip-list", &hashed[0]),
            row("hash linked-list", &hashed[1]),
        ];
        let headers: Vec<&str> =
            std::iter::once("memtable").chain(headers.iter().map(String::as_str)).collect();
        report.table(title, &headers, rows);
    }

    fn claims(&self, mode: Mode, report: &mut Report) {
        let [skip_x, linked_x] = &self.by_prefix;
        let [skip_h, linked_h] = &self.by_buckets;
        let hashed = || [&skip_x[..], linked_x, skip_h, linked_h].into_iter();
        let least = hashed().flatten().copied().fold(self.skip_list, f64::min) / self.vector;
        report.claim(Claim::new(
            "Fig. 3",
            "a vector has the smallest footprint",
            mode,
            (format!("the next one takes {}", times(least)), least > 1.0),
            "",
        ));
        // At the paper's best settings, and at the most buckets.
        let last = (PREFIXES.len() - 1, BUCKETS.len() - 1);
        let by_prefix = skip_x[last.0] / linked_x[last.0].max(self.skip_list);
        let by_buckets = skip_h[last.1] / linked_h[last.1].max(self.skip_list);
        let most = by_prefix.min(by_buckets);
        report.claim(Claim::new(
            "Fig. 3",
            "a hash skip-list has the largest",
            mode,
            (format!("{} of the next", times(most)), most > 1.0),
            "",
        ));
        let near = [skip_x[0], linked_x[0], skip_h[0], linked_h[0]];
        let off = near.map(|value| (value / self.skip_list - 1.0).abs());
        let off = off.into_iter().fold(0.0, f64::max);
        report.claim(Claim::new(
            "Fig. 3",
            "with X=2 or H=1 the hashed ones are close to the skip-list",
            mode,
            (format!("within {:.0} %", off * 100.0), off <= ALIKE),
            "",
        ));
        let grows = |values: &[f64]| values.windows(2).all(|pair| pair[1] >= pair[0] * 0.998);
        let x = skip_x[PREFIXES.len() - 1] / skip_x[0];
        let h = skip_h[BUCKETS.len() - 1] / skip_h[0];
        report.claim(Claim::new(
            "Fig. 3",
            "footprints of the hashed ones grow with X and with H",
            mode,
            (
                format!("hash skip-list by {} with X, {} with H", times(x), times(h)),
                hashed().all(grows) && x > 1.01 && h > 1.01,
            ),
            "",
        ));
    }
}
