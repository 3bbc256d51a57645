//! Manifests: frames of edits, each twice.

use crate::walk::{Walk, little, place};

pub(crate) fn dump(bytes: &[u8], number: u64) -> String {
    let mut walk = Walk::new(bytes);
    while walk.at() < bytes.len() {
        let at = walk.at();
        let len = little(&bytes[at + 8..at + 12]);
        walk.title("frame");
        let payload = &bytes[at + 16..at + 16 + len as usize];
        walk.checksum(payload, place(number, at as u64).wrapping_add(len));
        walk.number(4, "length");
        let inverted = little(walk.take(4, "length, inverted"));
        assert_eq!(inverted, u64::from(!(len as u32)));
        edit(&mut walk, at + 16 + len as usize);
        let copy = walk.at();
        assert_eq!(&bytes[copy + 8..copy + 16 + len as usize], &bytes[at + 8..copy]);
        walk.checksum(payload, place(number, copy as u64).wrapping_add(len));
        walk.copy(8 + len as usize, "the rest of the frame again");
    }
    walk.finish()
}

fn edit(walk: &mut Walk<'_>, end: usize) {
    walk.number(8, "version");
    walk.number(8, "epoch");
    while walk.at() < end {
        let tag = walk.varint("tag");
        let len = walk.varint("length");
        let end = walk.at() + len as usize;
        change(walk, tag, end);
        assert_eq!(walk.at(), end);
    }
}

fn change(walk: &mut Walk<'_>, tag: u64, end: usize) {
    match tag {
        1 => drop(walk.varint("database")),
        3 => drop(walk.varint("next table")),
        5 => drop(walk.varint("next run")),
        7 => drop(walk.varint("next keyspace")),
        9 => drop(walk.varint("last sequence number")),
        11 => drop(walk.varint("required segment")),
        12 => {
            walk.slice("option");
            walk.slice("value");
        }
        13 => {
            walk.varint("keyspace");
            walk.slice("name");
            walk.slice("design");
        }
        16 => {
            for what in [
                "remembered writes",
                "remembered deletes",
                "remembered bytes written",
                "remembered lookups",
                "remembered lookups that found",
                "remembered scans",
                "remembered entries of scans",
                "remembered microseconds open",
            ] {
                walk.varint(what);
            }
        }
        17 => {
            walk.varint("keyspace");
            walk.varint("is in tables before log position");
        }
        32 => drop(walk.varint("the last ingest has sequence number")),
        18 => drop(walk.varint("the log is durable up to position")),
        19 => add_table(walk),
        21 => {
            walk.varint("keyspace");
            walk.varint("removed table");
        }
        unknown => panic!("tag {unknown}, up to {end}"),
    }
}

fn add_table(walk: &mut Walk<'_>) {
    walk.varint("keyspace");
    walk.varint("level");
    walk.varint("run");
    walk.number(8, "table");
    walk.number(8, "writer");
    walk.take(8, "checksum of the whole file, seed 0");
    walk.slice("first key");
    if walk.number(1, "has an end") == 1 {
        walk.slice("end");
    }
    for what in [
        "bytes",
        "entries",
        "tombstones",
        "range tombstones",
        "smallest sequence number",
        "largest sequence number",
        "made at",
    ] {
        walk.varint(what);
    }
    if walk.number(1, "has tombstones") == 1 {
        walk.varint("oldest tombstone at");
    }
}
