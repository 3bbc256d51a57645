// The requests and answers of crates/terrane-explorer.

export interface NamedDesign {
  name: string;
  about: string;
  source: string;
  is_row: boolean;
  beyond: string;
  words: [string, string, string, string];
}

export interface Catalogue {
  default: string;
  designs: NamedDesign[];
  choices: { key: string; values: string[] }[];
}

export interface DescribedDesign {
  text: string;
  eagerness: string;
  settings: [string, string][];
  capacities: (number | null)[];
  runs: number[];
}

export interface Workload {
  records: number;
  key_bytes: number;
  record_bytes: number;
  skew: string;
  arrival: string;
  writers: number;
  update: number;
  insert: number;
  delete: number;
  get: number;
  missing: number;
  scan: number;
  scan_entries: number;
  cold: number;
  ttl_seconds: number | null;
}

export interface Machine {
  budget: number | null;
  slots: number;
  device_bytes_per_second: number | null;
  write_seconds: number | null;
  flush_seconds: number | null;
  merge_seconds: number | null;
  request_seconds: number | null;
  request_bytes: number | null;
  concurrency: number | null;
  memtable_entry_bytes: number | null;
  table_entry_bytes: number | null;
  table_tombstone_bytes: number | null;
}

export interface Simulate {
  call: "simulate";
  design: string;
  workload: Workload;
  machine: Machine;
  start: string;
  /** The entries of the runs of each level, newest first; null for `start`. */
  runs: number[][] | null;
  seed: number;
  seconds: number;
  windows: number;
  tables_max: number;
  trace_max: number;
}

/** An event as crates/terrane-explorer/src/events.rs describes it. */
export type RawEvent = [number, string, ...unknown[]];
export type RawTable = [number, number, number, number, number, number, number];

export interface Windows {
  at: number[];
  rate: number[];
  offered: (number | null)[];
  queued: number[];
  stalled: number[];
  runs: number[];
  p50: (number | null)[];
  p99: (number | null)[];
  longest: (number | null)[];
  written: number[];
  write_amplification: (number | null)[];
  space_amplification: number[];
  found: number[];
  missing: number[];
  levels: number[][];
  value_bytes: number[];
}

export interface Results {
  writes: number;
  rate: number;
  offered: number | null;
  queued: number;
  write_amplification: number | null;
  space_amplification: number | null;
  found: number | null;
  missing: number | null;
  runs: number;
  most_runs: number;
  p50: number | null;
  p99: number | null;
  p999: number | null;
  longest: number | null;
  stalls: number;
  stalled_seconds: number;
  longest_stall: number;
  stalled_by: [string, number] | null;
  delayed_seconds: number;
  flushes: number;
  merges: number;
  moves: number;
  drops: number;
  bytes: number;
  stuck: string | null;
}

export interface Played {
  design: string;
  seconds: number;
  events: RawEvent[];
  trace_ended: number | null;
  windows: Windows;
  results: Results;
}

export interface Point {
  text: string;
  name: string | null;
  write: number;
  missing: number;
  found: number;
  space: number;
  runs: number;
}

export interface LevelLookups {
  found: number;
  missing: number;
  runs: number;
  false_positives: number[];
}

export type Request =
  | { call: "catalogue" }
  | { call: "design"; text: string }
  | { call: "change"; text: string; key: string; value: string }
  | Simulate
  | { call: "points"; records: number; record_bytes: number; buffer: string; marked: string[] }
  | { call: "levels"; text: string; levels: [number, number][] };

export interface Answers {
  catalogue: Catalogue;
  design: DescribedDesign;
  change: DescribedDesign;
  simulate: Played;
  points: Point[];
  levels: LevelLookups;
}
