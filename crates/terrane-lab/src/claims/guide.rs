//! The paper's questions, answered with what was measured.

use super::insertion::Insertion;
use super::lookup::Lookup;
use super::report::{nanos, times};
use super::setting::{PREFIX, Setting};

type Measured = (&'static str, f64, f64);

fn find(kinds: &[Measured], name: &str) -> (f64, f64) {
    let found = kinds.iter().find(|(kind, ..)| *kind == name);
    found.map_or((f64::NAN, f64::NAN), |(_, each, longest)| (*each, *longest))
}

/// The answers, as a part of the document.
pub(super) fn answers(
    setting: &Setting,
    insertion: &Insertion,
    lookup: &Lookup,
    open: &str,
) -> String {
    [
        "## Which memtable?\n".to_owned(),
        ingestion(insertion),
        stalls(insertion, lookup),
        prefix_and_buckets(setting, lookup),
        open.to_owned(),
        LEFT_OUT.to_owned(),
        "**On memory and disks.** A larger buffer is flushed less often and compacted less; the \
         kinds differ in\nhow much of it is data (Fig. 3): what a table of buckets takes, entries \
         do not have. A design whose\nbuckets would take more than half of the buffer is \
         refused.\n"
            .to_owned(),
    ]
    .join("\n")
}

/// Which buffers of the later program are not here, and why; the figures are in a table.
const LEFT_OUT: &str = "**The later program's nine buffers.** Six of them are kinds of memtable here, \
and a plain list is one by its\nsettings; two are left out (figures in the table of the nine). A \
sorted vector moves half of itself at every\ninsert: for keys in no order that is far behind \
everything, and for keys in order, where it moves nothing,\na vector inserts and a hash vector looks \
up as fast. A skip-list whose nodes point to their keys misses the\ncache where ours has the key's \
head beside the link, and is behind it in every column. A list without a table\nis behind in every \
column from a few hundred entries on. The scan of an unsorted vector looks at two bytes\nof each \
entry here, and a bucket of the hash vector is a chain from new to old.\n";

fn ingestion(insertion: &Insertion) -> String {
    let mut kinds = insertion.kinds.clone();
    kinds.sort_by(|a, b| a.1.total_cmp(&b.1));
    let skip_list = find(&kinds, "skip-list").0;
    let list: Vec<String> = kinds
        .iter()
        .map(|(name, each, _)| format!("{name} {} ({})", nanos(*each), times(skip_list / each)))
        .collect();
    format!(
        "**(a) For much writing and little reading:** `vector`, with `prealloc` as large as the \
         buffer where the\nlongest insert counts. Per insert, and as a rate against the skip-list: \
         {}.\n",
        list.join(", ")
    )
}

fn stalls(insertion: &Insertion, lookup: &Lookup) -> String {
    let row = |name: &str| {
        let (each, longest) = find(&lookup.kinds, name);
        let insert = find(&insertion.kinds, name).1;
        format!("| {name} | {} | {} | {} |\n", nanos(each), nanos(longest), nanos(insert))
    };
    let rows: String = lookup.kinds.iter().map(|(name, ..)| row(name)).collect();
    format!(
        "**(b) Without stalls where lookups come between:** `btree`, the default, and \
         `hash-vector` where there are no\nranges, which sort it. A vector of ours sorts only \
         what came since the last lookup, so that it is slow where\nlookups are rare and many \
         entries came between them, and never as slow as copying; with `query=scan` it\nsorts \
         nothing for a lookup, which so has no longest one that sorts.\n\n\
         | memtable | lookup | longest lookup | longest insert |\n|---|---:|---:|---:|\n{rows}"
    )
}

fn prefix_and_buckets(setting: &Setting, lookup: &Lookup) -> String {
    let cost = |prefix: u8, buckets: u32| {
        let found = lookup.grid.iter().find(|(x, h, _)| (*x, *h) == (prefix, buckets));
        found.map_or(f64::NAN, |(_, _, mean)| *mean)
    };
    let most = setting.buckets();
    let best = lookup.grid.iter().min_by(|a, b| a.2.total_cmp(&b.2));
    let best = best.map_or(String::new(), |(x, h, mean)| {
        format!("The best here was X={x}, H={h} with {}", nanos(*mean))
    });
    format!(
        "**(c) X and H:** X long enough for as many prefixes as there are entries in a full \
         buffer, but no\nlonger than the prefix that ranges stay in; H about as many as entries, \
         and at most as many as prefixes.\nToo short a prefix or too few buckets put keys together: \
         at H={most}, X=2 takes {} of X={PREFIX}; at X={PREFIX},\nH=100 takes {} of H={most}. With \
         lists of as many levels as they need, as ours, that costs little, and\nthe settings decide \
         about memory and ranges more than about lookups. More buckets than prefixes cost\nmemory \
         alone. {best}.\n",
        times(cost(2, most) / cost(PREFIX, most)),
        times(cost(PREFIX, 100) / cost(PREFIX, most)),
    )
}
