"""The metrics of the engine as fields. Written by `tools/stats_fields.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metrics:
    """Counters since the database was opened, and current sizes."""

    writes: int
    """Operations written, counting each operation of a batch."""
    deletes: int
    """Deletes of keys and of ranges among the writes."""
    user_bytes_written: int
    """User bytes written: the lengths of keys and values as passed in."""
    gets: int
    """Point lookups, counting each key of a `multi_get`."""
    gets_found: int
    """Point lookups that found a value."""
    scans: int
    """Iterators and other scans started."""
    scan_entries: int
    """Entries that iterators moved to."""
    scan_dead_keys: int
    """Deleted keys that iterators stepped over one at a time, which makes them slow. Keys skipped in bulk do
    not count."""
    get_blocks: int
    """Data blocks searched by point lookups, cached or not."""
    filter_probes: int
    """Filters probed by point lookups."""
    filter_negatives: int
    """Filter probes that excluded the key."""
    filter_false_positives: int
    """Filter probes that did not exclude a key that the table lacks."""
    direct_refused: int
    """Tables that should have bypassed the page cache but went through it because the file system does not
    support direct I/O."""
    table_bytes_read: int
    """Bytes read from tables by readers."""
    value_bytes_read: int
    """Bytes of values read from value files."""
    damaged_reads: int
    """Blocks of tables and values that reads, flushes or compactions found damaged or missing, each time that
    they found them."""
    log_bytes_written: int
    """Bytes written to the log."""
    log_kept_bytes: int
    """Bytes of log files that are kept only for readers of changes, by `keep_changes`."""
    log_syncs: int
    """Syncs of the log."""
    log_wait_micros: int
    """Time that writers waited for a file of the log: for a new one, or for the header of one to be synced.
    Other threads do both ahead of need, unless writers fill a file faster than the device can sync one."""
    manifest_bytes_written: int
    """Bytes written to manifests."""
    flushes: int
    """Memtables flushed."""
    flush_bytes_written: int
    """Bytes written by flushes."""
    flush_micros: int
    """Wall time of flushes."""
    flushes_merged: int
    """Flushes that merged with level 0 or were added to one of its runs, under `flush=merge`."""
    flushes_apart: int
    """Flushes that made a new run under `flush=merge`, because the tables that they overlap were claimed by a
    compaction, about to be compacted, or too large."""
    ingests: int
    """Ingests added to trees."""
    ingested_bytes: int
    """Bytes of the keys and values that were ingested, as passed in."""
    ingest_bytes_written: int
    """Bytes of the tables and value files of ingests."""
    compactions: int
    """Compactions that rewrote data."""
    move_compactions: int
    """Compactions that only moved tables (the compaction paper's pseudo-compactions)."""
    trivial_moves: int
    """Tables that changed level without being rewritten."""
    compaction_bytes_read: int
    """Bytes read by compactions and by flushes that merge."""
    compaction_bytes_written: int
    """Bytes written by compactions."""
    collections: int
    """Collections of value files, which also count as compactions."""
    joins: int
    """Joins of small tables of the last level, which also count as compactions."""
    value_bytes_relocated: int
    """Bytes of value files written by compactions, mostly for relocated values. They are part of
    `compaction_bytes_written`."""
    compaction_cpu_micros: int
    """Processor time of compactions that rewrote data, 0 if the operating system does not report it; the rest
    of their wall time is mostly waiting for storage."""
    compaction_planning_cpu_micros: int
    """The part of `compaction_cpu_micros` before a merge: taking locks, listing snapshots, and choosing the
    tables to merge together."""
    compaction_installing_cpu_micros: int
    """The part of `compaction_cpu_micros` after a merge: syncing the directory, and changing the manifest and
    the tree. Between the two parts, tables are read, merged, written and synced."""
    compaction_filter_removed: int
    """Values that compaction filters removed."""
    compaction_filter_replaced: int
    """Values that compaction filters replaced."""
    tables_dropped: int
    """Tables dropped unread because a range tombstone covered them or all of their values had expired."""
    replayed_writes: int
    """Writes replayed from the log when the database was opened."""
    dropped_log_records: int
    """Log records dropped when the database was opened, because a power failure lost records before them."""
    table_bytes: int
    """Bytes of all tables."""
    value_files: int
    """Value files of all trees."""
    value_bytes: int
    """Bytes of values in value files, with their records."""
    value_live_bytes: int
    """Bytes of values in value files to which tables point. The rest is garbage, or values that are not
    flushed."""
    table_entries: int
    """Point entries of all tables, including tombstones and old versions."""
    table_tombstones: int
    """Point tombstones of all tables."""
    table_range_tombstones: int
    """Range tombstones of all tables."""
    table_expiring: int
    """Entries of all tables whose values expire or have expired."""
    oldest_tombstone_micros: int | None
    """Time since the oldest remaining tombstone was flushed; `None` without tombstones."""
    tables: int
    """Tables of all trees."""
    sorted_runs: int
    """Sorted runs of all trees."""
    levels: int
    """Levels of the deepest tree, down to its last level with tables."""
    open_files: int
    """Table files that are open."""
    open_files_closed: int
    """Table files closed because `open_files` allows no more. Many per second mean that reads open files
    again and again, and that the option is too small."""
    snapshots: int
    """Sequence numbers pinned by snapshots."""
    cache_data_hits: int
    """Data blocks found in the cache."""
    cache_data_misses: int
    """Data blocks read because the cache lacked them."""
    cache_record_hits: int
    """Point lookups answered by a record in memory whose data block is not."""
    cache_record_bytes: int
    """Bytes of the cache that such records take."""
    cache_index_hits: int
    """Index blocks found in the cache."""
    cache_index_misses: int
    """Index blocks read because the cache lacked them."""
    cache_filter_hits: int
    """Filters found in the cache."""
    cache_filter_misses: int
    """Filters read because the cache lacked them."""
    cache_warmed: int
    """Blocks that flushes and compactions inserted into the cache."""
    cache_warmed_bytes: int
    """Bytes of the blocks that flushes and compactions inserted into the cache."""
    membuffer_writes: int
    """Operations that completed in a Membuffer; the others went to its lower level directly."""
    updates_in_place: int
    """Versions overwritten in place."""
    membuffer_drained: int
    """Versions that drain threads moved to a lower level, without those that scans and flushes moved."""
    membuffer_drain_micros: int
    """Time that drain threads spent moving versions."""
    gets_retried: int
    """Point lookups repeated because their version was overwritten in place."""
    scan_restarts: int
    """Scans restarted because they met a newer version, under `scan=restart`."""
    scan_fallbacks: int
    """Scans that blocked writers after too many restarts, under `scan=restart`."""
    scan_masters: int
    """Moments for which scans drained the Membuffer, to start or to restart, under `scan=restart`."""
    scan_piggybacks: int
    """Moments of running scans that other scans shared, to start or to restart, under `scan=restart`."""
    scan_reuses: int
    """Moments of finished scans that later scans reused, under `scan=restart`."""
    stalled_writes: int
    """Writes that were stopped or delayed."""
    stall_level0_runs_micros: int
    """Time writers were stopped because level 0 had too many runs."""
    stall_level_runs_micros: int
    """Time writers were stopped because some level had too many runs."""
    stall_total_runs_micros: int
    """Time writers were stopped because all levels together had too many runs."""
    stall_immutable_memtables_micros: int
    """Time writers were stopped because too many immutable memtables awaited their flush."""
    stall_compactions_due_micros: int
    """Time writers were stopped because the tree was out of shape."""
    stall_value_space_micros: int
    """Time writers were stopped because value files took too much space."""
    stall_memory_budget_micros: int
    """Time writers were stopped because memtables took all that they may of the memory budget."""
    stall_delay_micros: int
    """Time by which writers were delayed."""
    memory_budget_bytes: int
    """The memory budget."""
    memtable_bytes: int
    """Memory of memtables, including memory kept for the next ones."""
    kept_memtable_bytes: int
    """Memory of replaced memtables that iterators, snapshots and values still use."""
    cache_bytes: int
    """Memory of the buffer pool without pinned blocks: blocks and records in the cache, and room for more."""
    pinned_bytes: int
    """Blocks pinned by iterators and values that are not in the cache."""
    open_table_bytes: int
    """Memory of open tables without their blocks: range tombstones, samples of indexes, and a word per
    block."""
    job_bytes: int
    """Buffers of flushes, compactions and ingests."""
    transaction_bytes: int
    """Writes of open transactions, and the keys that they have read."""
    storage_bytes_written: int
    """Bytes written to storage: log, tables and manifests."""
    storage_bytes_read: int
    """Bytes of tables read by readers, flushes and compactions."""
    stall_micros: int
    """Time that writers lost to stalls of all causes."""
    memory_bytes: int
    """Memory of all holders."""
