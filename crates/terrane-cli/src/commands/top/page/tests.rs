//! A page of a database in trouble.

use super::*;

const SAMPLE: &str = r#"{
 "schema": 1,
 "at_micros": 1795690055000000,
 "interval_micros": 1000000,
 "health": "stopped",
 "error": null,
 "operations": {
  "writes": 9,
  "deletes": 0,
  "written_bytes": 9,
  "gets": 0,
  "gets_found": 0,
  "scans": 0,
  "scan_entries": 0,
  "open_micros": 9
 },
 "per_second": {
  "writes": 71234.4,
  "deletes": 0.0,
  "gets": 12.3,
  "scans": 2.0,
  "scan_entries": 40.0,
  "written_bytes": 12345678.0
 },
 "latencies": [
  {
   "name": "write",
   "count": 648,
   "p50_micros": 2.927,
   "p99_micros": 7.135,
   "p999_micros": 51.7,
   "max_micros": 2000000.0
  }
 ],
 "stalls": [
  {
   "keyspace": "default",
   "stops": true,
   "cause": "too many runs in level 0",
   "measured": 36,
   "delay_at": 20,
   "stop_at": 36,
   "until": "level 0 holds fewer than 36 runs",
   "micros": 1500000,
   "text": "all of it"
  }
 ],
 "stalled_share": 1.5,
 "jobs": [
  {
   "id": 7,
   "keyspace": "default",
   "job": "compaction",
   "state": "running",
   "what": "L0 r5: 5 + L0 r4: 4 + L1 r2: 3 into L1 r2, and more",
   "why": "run-count: level 0 has 5 runs of 4",
   "total_bytes": 10485760,
   "remaining_bytes": 2621440,
   "written_bytes": 1,
   "share": 1.0,
   "running_micros": 5,
   "bytes_per_second": 1048576.0,
   "seconds_left": 2.5
  },
  {
   "id": null,
   "keyspace": "default",
   "job": "flush",
   "state": "queued",
   "what": "a memtable with 9 entries",
   "why": "the memtable is full",
   "total_bytes": 4194304,
   "remaining_bytes": null,
   "written_bytes": null,
   "share": null,
   "running_micros": null,
   "bytes_per_second": null,
   "seconds_left": null
  }
 ],
 "memory": {
  "budget": 536870912,
  "memtables": 18874368,
  "cache": 1048576,
  "pinned": 12288,
  "open_tables": 22938,
  "jobs": 4865392
 },
 "io": {
  "log_written": 1.0,
  "flush_written": 2.0,
  "compaction_read": 3.0,
  "compaction_written": 4.0,
  "table_read": 5.0
 },
 "write_amplification": 1.22,
 "cache_hits": 0.981,
 "snapshots": 1,
 "trees": [
  {
   "keyspace": "default",
   "design": "leveling T=4",
   "memtable_bytes": 1814036,
   "memtable_capacity": 4194304,
   "immutable_memtables": 1,
   "levels": [
    {"runs": 5, "tables": 5, "bytes": 12792627, "capacity": 4194304},
    {"runs": 0, "tables": 0, "bytes": 0, "capacity": 1}
   ]
  }
 ]
}"#;

#[test]
fn a_page_shows_the_stall_with_its_threshold_and_each_job_with_its_reason() {
    let sample: Sample = serde_json::from_str(SAMPLE).unwrap();
    let origin = Origin { title: "db · process 7 (app)".to_owned() };
    let page = lines(&sample, &origin, 80, Paint::off()).join("\n");
    assert_eq!(
        page,
        "\
db · process 7 (app)                                      1.00 s to 10:47:35 UTC
health         stopped
operations/s   71,234 writes, 12.3 gets, 2.00 scans of 40.0 entries
I/O per second user writes 11.8 MiB, log 1 B, flushes 2 B, reads 5 B
               compactions 3 B read, 4 B written
latency              p50       p99     p99.9       max  measured
  write          2.93 µs   7.14 µs   51.7 µs    2.00 s       648
stalls         default: stopped for 1.50 s, by too many runs in level 0
               36 now, delayed at 20, stopped at 36
               until level 0 holds fewer than 36 runs
               writers lost 1.50 s a second
jobs           running compaction of default: L0 r5: 5 + L0 r4: 4 + L1 r2: 3 in…
               75%     10.0 MiB at 1.00 MiB/s, 2.50 s left
                       because of run-count: level 0 has 5 runs of 4
               queued  flush of default: a memtable with 9 entries
                       4.00 MiB
                       because the memtable is full
memory         23.7 MiB of 512 MiB: memtables 18.0 MiB, cache 1.00 MiB
               pinned 12.0 KiB, open tables 22.4 KiB, jobs 4.64 MiB
since opening  write amplification 1.22; cache hits now 98.1%; 1 snapshot
tree           default: memtable 1.73 MiB of 4.00 MiB, 1 immutable
  level 0       12.2 MiB       5 runs     5 tables   305% of 4.00 MiB"
    );
    let unwritten =
        SAMPLE.replace("\"write_amplification\": 1.22", "\"write_amplification\": null");
    let unwritten: Sample = serde_json::from_str(&unwritten).unwrap();
    let page = lines(&unwritten, &origin, 80, Paint::off()).join("\n");
    assert!(page.contains("write amplification -; cache hits now 98.1%"), "{page}");
    for columns in [40, 60, 200] {
        let all = lines(&sample, &origin, columns, Paint::off());
        assert!(all.iter().all(|line| line.chars().count() <= columns), "{all:?}");
    }
}
