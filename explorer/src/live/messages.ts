// The lines of a live database and of a recording: items of the control protocol (docs/control.md), and notes of the
// command.

/** A key: text if it is UTF-8. */
export type KeyText = string | { hex: string };

export interface PlacedTable {
  table: number;
  run: number;
  level: number;
  start: KeyText;
  end: KeyText | null;
  bytes: number;
  entries: number;
  tombstones: number;
}

export interface Latency {
  name: string;
  count: number;
  p50_micros: number;
  p99_micros: number;
  p999_micros: number;
  max_micros: number;
}

export interface Stall {
  keyspace: string;
  stops: boolean;
  cause: string;
  measured: number;
  delay_at: number;
  stop_at: number;
  until: string;
  micros: number;
}

export interface SampleJob {
  id: number | null;
  keyspace: string;
  job: "flush" | "compaction";
  state: "running" | "paused" | "queued";
  what: string;
  why: string;
  total_bytes: number;
  remaining_bytes: number | null;
  written_bytes: number | null;
  share: number | null;
  running_micros: number | null;
  bytes_per_second: number | null;
  seconds_left: number | null;
}

export interface SampleTree {
  keyspace: string;
  design: string;
  memtable_bytes: number;
  memtable_capacity: number;
  immutable_memtables: number;
  levels: { runs: number; tables: number; bytes: number; capacity: number | null }[];
}

export interface Sample {
  item: "sample";
  at_micros: number;
  interval_micros: number;
  health: string;
  error: string | null;
  operations: Record<string, number>;
  per_second: { writes: number; deletes: number; gets: number; scans: number; scan_entries: number; written_bytes: number };
  latencies: Latency[];
  stalls: Stall[];
  stalled_share: number;
  jobs: SampleJob[];
  memory: { budget: number; memtables: number; cache: number; pinned: number; open_tables: number; jobs: number };
  io: { log_written: number; flush_written: number; compaction_read: number; compaction_written: number; table_read: number };
  write_amplification: number | null;
  cache_hits: number | null;
  snapshots: number;
  trees: SampleTree[];
}

export interface Tables {
  item: "tables";
  at_micros: number;
  is_whole: boolean;
  trees: { keyspace: string; removed: number[]; added: PlacedTable[] }[];
  jobs: { id: number; inputs: number[]; output_level: number }[];
}

export interface LoggedEvent {
  item: "event";
  number: number;
  at_micros: number;
  event: string;
  text: string;
  details: Record<string, unknown>;
}

export interface Connected {
  item: "connected";
  at_micros: number;
  database: string;
  process: { pid: number; program: string; version: string } | null;
  options: { durability: string; io_budget: string; memory_budget: number } | null;
}

export interface Disconnected {
  item: "disconnected";
  at_micros: number;
  text: string;
}

export type Line = Sample | Tables | LoggedEvent | Connected | Disconnected;

const ITEMS = ["sample", "tables", "event", "connected", "disconnected"];

/** The lists that a sample must have. */
const LISTS = ["trees", "jobs", "stalls", "latencies"] as const;
const GROUPS = ["per_second", "memory", "io"] as const;

function isSample(line: object): boolean {
  const fields = line as Record<string, unknown>;
  const isGroup = (value: unknown) => typeof value === "object" && value !== null;
  return LISTS.every((name) => Array.isArray(fields[name])) && GROUPS.every((name) => isGroup(fields[name]));
}

function isTables(line: object): boolean {
  const { trees, jobs } = line as Record<string, unknown>;
  return Array.isArray(trees) && Array.isArray(jobs);
}

/** Reads a line; undefined if it is of a kind that this version does not know. Throws if it is none. */
export function lineOf(text: string): Line | undefined {
  const line = JSON.parse(text) as { item?: unknown; at_micros?: unknown };
  if (typeof line !== "object" || line === null || typeof line.item !== "string" || typeof line.at_micros !== "number") {
    throw new Error("it is no line of a recording");
  }
  if ((line.item === "sample" && !isSample(line)) || (line.item === "tables" && !isTables(line))) {
    throw new Error(`it is no ${line.item} of a recording`);
  }
  return ITEMS.includes(line.item) ? (line as Line) : undefined;
}
