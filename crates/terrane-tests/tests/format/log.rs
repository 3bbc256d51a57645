//! Log segments: a header, records, and zeros.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::walk::{Walk, little, place};

const MAGIC: &[u8; 8] = b"TERRLOG\0";

pub(crate) fn dump(bytes: &[u8]) -> String {
    let mut walk = Walk::new(bytes);
    walk.title("header");
    assert_eq!(walk.take(8, "magic \"TERRLOG\\0\""), MAGIC);
    assert_eq!(walk.number(4, "version"), 1);
    walk.number(4, "reserved");
    walk.number(8, "database");
    walk.number(8, "segment");
    let nonce = walk.number(8, "nonce");
    walk.number(8, "position of the first record");
    walk.number(8, "segment before");
    walk.number(8, "which ends at position");
    walk.take(16, "boot");
    walk.number(8, "begun at");
    walk.checksum(&bytes[..88], little(MAGIC));
    walk.zeros(256 - 96, "");
    walk.number(8, "note: manifest version");
    walk.checksum(&bytes[256..264], place(nonce, 256));
    walk.number(8, "note: durable before position");
    walk.checksum(&bytes[272..280], place(nonce, 272));
    walk.zeros(512 - 288, "");
    while bytes[walk.at()..walk.at() + 16].iter().any(|&byte| byte != 0) {
        record(&mut walk, bytes, nonce);
    }
    walk.zeros(bytes.len() - walk.at(), "nothing was written here");
    walk.finish()
}

fn record(walk: &mut Walk<'_>, bytes: &[u8], nonce: u64) {
    walk.title("record");
    let at = walk.at();
    let len = little(&bytes[at + 8..at + 12]) as usize;
    let payload = &bytes[at + 24..at + 24 + len];
    walk.checksum(payload, xxh3_64_with_seed(&bytes[at + 8..at + 24], place(nonce, at as u64)));
    walk.number(4, "length");
    let kind = walk.number(4, "kind");
    walk.number(8, "sequence number");
    let end = at + 24 + len;
    match kind {
        1 => {
            while walk.at() < end {
                operation(walk);
            }
        }
        2 | 3 => drop(walk.number(8, "durable before position")),
        4 => {}
        unknown => panic!("kind {unknown}"),
    }
    assert_eq!(walk.at(), end);
    walk.zeros(end.next_multiple_of(8) - end, "up to a multiple of 8");
}

fn operation(walk: &mut Walk<'_>) {
    let tag = walk.number(1, "operation");
    walk.varint("keyspace");
    walk.slice(if tag < 2 { "key" } else { "first key" });
    match tag {
        0 | 3 => {}
        1 => drop(walk.slice("value")),
        2 => drop(walk.slice("end")),
        unknown => panic!("operation {unknown}"),
    }
}
