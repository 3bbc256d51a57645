//! Tests which bytes compactions read, and that they leave the cache to readers.

use terrane::{CacheWarming, Db, KeyspaceOptions, ReadMode};

use crate::support::{DIR, in_memory};

const DESIGN: &str = "1-leveling T=4 L0=8 base=1MiB; buffer=1MiB; table=64KiB; block=512B";

fn fill(db: &Db, round: u8) {
    for number in 0..3000u32 {
        db.put(number.to_be_bytes(), [round; 100]).unwrap();
    }
    db.flush().unwrap();
}

#[test]
fn a_compaction_bypasses_the_cache_and_counts_its_reads() {
    let modes = [
        (ReadMode::Cached, "none"),
        (ReadMode::Direct, "lz4"),
        (ReadMode::Cached, "lz4"),
        (ReadMode::Direct, if cfg!(feature = "zstd") { "zstd" } else { "none" }),
    ];
    for (read_mode, compression) in modes {
        let (options, _) = in_memory();
        let design = format!("{DESIGN}; compression={compression}").parse().unwrap();
        let options = options.read_mode(read_mode).cache_warming(CacheWarming::None);
        let db = options.design(design).open(DIR).unwrap();
        let hot = db.keyspace("hot", KeyspaceOptions::new()).unwrap();
        for number in 0..500u32 {
            hot.put(number.to_be_bytes(), [9; 100]).unwrap();
        }
        (0..4).for_each(|round| fill(&db, round));
        let read_hot = || {
            (0..500u32).for_each(|number| assert!(hot.contains(number.to_be_bytes()).unwrap()));
        };
        read_hot();
        let before = db.stats();
        let inputs = before.table_bytes;
        assert!(before.memory.cache_bytes > 1000 && db.tree().shape.run_count() == 4);
        db.compact_range(..).unwrap();
        let after = db.stats();
        assert_eq!(after.compactions, 1);
        let what = format!("{read_mode:?} {compression}");
        assert_eq!(after.memory.cache_bytes, before.memory.cache_bytes, "{what}");
        assert_eq!(after.cache, before.cache, "{what}");
        let read = after.compaction_bytes_read;
        // Compactions read all parts of four runs except filters and properties. The hot keyspace
        // is not compacted.
        assert!(read > inputs * 7 / 10 && read < inputs, "{what}: {read} of {inputs}");
        read_hot();
        let last = db.stats().cache;
        let misses = (last.data_misses, last.index_misses, last.filter_misses);
        let wanted = (before.cache.data_misses, before.cache.index_misses);
        assert_eq!(misses, (wanted.0, wanted.1, before.cache.filter_misses), "{what}");
        assert_eq!(db.iter().unwrap().count(), 3000);
        for number in (0..3000u32).step_by(97) {
            assert_eq!(db.get(number.to_be_bytes()).unwrap().unwrap(), [3; 100]);
        }
    }
}

#[test]
fn tables_dropped_unread_are_not_counted_as_read() {
    for read_mode in [ReadMode::Cached, ReadMode::Direct] {
        let (options, _) = in_memory();
        let db = options.read_mode(read_mode).design(DESIGN.parse().unwrap()).open(DIR).unwrap();
        fill(&db, 1);
        db.delete_range(..).unwrap();
        // Only the flush precedes the compaction, which drops the table itself.
        db.compact_range(..).unwrap();
        let stats = db.stats();
        assert!(stats.tables_dropped > 0 && stats.table_bytes == 0);
        assert!(stats.compaction_bytes_read < 1000, "{}", stats.compaction_bytes_read);
    }
}
