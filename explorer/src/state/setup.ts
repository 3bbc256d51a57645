// What a picture shows: designs, workload and machine, as the texts that users type. The address of the page
// contains the texts that differ from the defaults.
import type { Machine, Simulate, Workload } from "../engine/requests";
import { duration, quantity } from "../model/words";

/** The most designs that are compared. */
export const DESIGNS_MAX = 4;

/** How a field is read. */
type Kind = "quantity" | "share" | "number" | "text" | "duration" | "rate";

export interface Field {
  key: string;
  label: string;
  kind: Kind;
  initial: string;
  hint: string;
  /** The values of a menu. */
  options?: string[];
  /** True if the field may be empty. */
  optional?: boolean;
}

export const DATA: Field[] = [
  { key: "records", label: "Records", kind: "quantity", initial: "10M", hint: "such as 100M or 1e9" },
  { key: "record-size", label: "Record", kind: "quantity", initial: "1KiB", hint: "bytes of key and value" },
  { key: "key-size", label: "Key", kind: "quantity", initial: "16", hint: "bytes" },
  { key: "keys", label: "Keys", kind: "text", initial: "uniform", hint: "uniform or zipf(0.99)" },
  { key: "ttl", label: "Time to live", kind: "duration", initial: "", optional: true, hint: "such as 1h; empty: for ever" },
  { key: "start", label: "Start", kind: "text", initial: "auto", hint: "the tree at the start", options: ["auto", "empty", "loaded", "settled"] },
  { key: "runs", label: "Start runs", kind: "text", initial: "", optional: true, hint: "instead: levels from 0 on, each with the entries of its runs, such as 900,900;5e4" },
];

export const OPERATIONS: Field[] = [
  { key: "update", label: "Updates", kind: "share", initial: "100", hint: "share of operations" },
  { key: "insert", label: "Inserts", kind: "share", initial: "0", hint: "share of operations" },
  { key: "delete", label: "Deletes", kind: "share", initial: "0", hint: "share of operations" },
  { key: "get", label: "Lookups", kind: "share", initial: "0", hint: "of existing keys, share of operations" },
  { key: "missing", label: "Missing", kind: "share", initial: "0", hint: "lookups of missing keys, share of operations" },
  { key: "scan", label: "Scans", kind: "share", initial: "0", hint: "share of operations" },
  { key: "scan-entries", label: "Scan length", kind: "share", initial: "10", hint: "entries" },
  { key: "cold", label: "Cold blocks", kind: "share", initial: "1", hint: "share of the blocks of reads that come from the device" },
];

export const LOAD: Field[] = [
  { key: "arrival", label: "Arrival", kind: "text", initial: "closed", hint: "closed, constant(WRITES) a second, or burst(LOW,SECONDS,HIGH,SECONDS)" },
  { key: "writers", label: "Writers", kind: "quantity", initial: "1", hint: "at a time" },
  { key: "time", label: "Duration", kind: "duration", initial: "2h", hint: "virtual time, such as 90min" },
  { key: "seed", label: "Seed", kind: "quantity", initial: "1", hint: "of a settled tree" },
];

export const MACHINE: Field[] = [
  { key: "budget", label: "I/O budget", kind: "rate", initial: "100MB/s", optional: true, hint: "of flushes and merges; empty: the device" },
  { key: "device", label: "Device", kind: "rate", initial: "500MB/s", hint: "reads and writes together" },
  { key: "threads", label: "Merges", kind: "quantity", initial: "2", hint: "at a time" },
  { key: "write-time", label: "Write", kind: "share", initial: "1.5", hint: "µs of a write into log and memtable" },
  { key: "merge-time", label: "Merge", kind: "share", initial: "0.6", hint: "µs for each entry of a merge" },
  { key: "flush-time", label: "Flush", kind: "share", initial: "0.5", hint: "µs for each entry of a flush" },
  { key: "request-time", label: "Request", kind: "share", initial: "100", hint: "µs of a request to the device" },
  { key: "request-size", label: "Request size", kind: "quantity", initial: "", optional: true, hint: "the most bytes of a request, such as 128KiB; empty: the model's" },
  { key: "concurrency", label: "Requests", kind: "quantity", initial: "", optional: true, hint: "to the device at a time; empty: the model's" },
  { key: "memtable-entry", label: "Memtable entry", kind: "share", initial: "", optional: true, hint: "bytes in addition to key and value; empty: the model's" },
  { key: "table-entry", label: "Table entry", kind: "share", initial: "", optional: true, hint: "bytes in addition to key and value; empty: the model's" },
  { key: "tombstone", label: "Tombstone", kind: "number", initial: "", optional: true, hint: "bytes in a table in addition to the key, may be negative; empty: the model's" },
];

/** The constants in a file of 'terrane simulate calibrate', and the fields that have them. */
const CONSTANTS: Record<string, (value: number) => [string, string]> = {
  device_mb_per_second: (value) => ["device", `${value}MB/s`],
  request_micros: (value) => ["request-time", String(value)],
  request_kib: (value) => ["request-size", `${value}KiB`],
  concurrency: (value) => ["concurrency", String(value)],
  write_micros: (value) => ["write-time", String(value)],
  flush_micros_per_entry: (value) => ["flush-time", String(value)],
  merge_micros_per_entry: (value) => ["merge-time", String(value)],
  memtable_bytes_per_entry: (value) => ["memtable-entry", String(value)],
  table_bytes_per_entry: (value) => ["table-entry", String(value)],
  table_bytes_per_tombstone: (value) => ["tombstone", String(value)],
};

/** Reads a file of constants: fields with their texts. Throws a sentence if it is none. */
export function constantsOf(text: string): [string, string][] {
  const given = new Map<string, number>();
  for (const line of text.split("\n").map((one) => one.replace(/#.*/, "").trim())) {
    if (line === "") continue;
    const [, key = "", value = ""] = /^([a-z_]+)\s*=\s*(-?[0-9][0-9_.e+-]*)$/.exec(line) ?? [];
    if (!(key in CONSTANTS) || !Number.isFinite(Number(value))) throw new Error(`'${line.slice(0, 60)}' is no constant of 'terrane simulate calibrate'`);
    given.set(key, Number(value));
  }
  const missing = Object.keys(CONSTANTS).find((key) => !given.has(key) && key !== "table_bytes_per_tombstone");
  if (missing) throw new Error(`the file has no ${missing}, as 'terrane simulate calibrate' writes it`);
  return [...given].flatMap(([key, value]) => {
    const field = CONSTANTS[key]?.(value);
    return field ? [field] : [];
  });
}

export const FIELDS: Field[] = [...DATA, ...OPERATIONS, ...LOAD, ...MACHINE];

export interface Setup {
  designs: string[];
  /** The texts of the fields that differ from their defaults. */
  values: Record<string, string>;
}

export const INITIAL: Setup = { designs: ["balanced"], values: {} };

export function valueOf(setup: Setup, key: string): string {
  return setup.values[key] ?? FIELDS.find((field) => field.key === key)?.initial ?? "";
}

export function withValue(setup: Setup, key: string, text: string): Setup {
  const values = { ...setup.values, [key]: text };
  if (text === FIELDS.find((field) => field.key === key)?.initial) delete values[key];
  return { ...setup, values };
}

/** Returns the address of a picture, without its page. */
export function toHash(setup: Setup, view: Record<string, string> = {}): string {
  const parameters = new URLSearchParams();
  for (const design of setup.designs) parameters.append("design", design);
  for (const field of FIELDS) {
    const text = setup.values[field.key];
    if (text !== undefined) parameters.set(field.key, text);
  }
  for (const [key, text] of Object.entries(view)) parameters.set(key, text);
  return `#${parameters.toString()}`;
}

/** Reads an address. Unknown parameters are ignored, and so is what comes after the fourth design. */
export function fromHash(hash: string): { setup: Setup; view: Record<string, string> } {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const designs = parameters.getAll("design").slice(0, DESIGNS_MAX);
  let setup: Setup = { designs: designs.length > 0 ? designs : INITIAL.designs, values: {} };
  const view: Record<string, string> = {};
  for (const [key, text] of parameters) {
    if (FIELDS.some((field) => field.key === key)) setup = withValue(setup, key, text);
    else if (key !== "design") view[key] = text;
  }
  return { setup, view };
}

/** Reads the runs to start from: levels separated by semicolons, the entries of runs by commas, newest first. */
export function runsOf(text: string): number[][] {
  const levels = text.split(";").map((level) => level.split(",").map((run) => run.trim()).filter((run) => run !== "" && run !== "-"));
  return levels.map((level) => level.map((run) => quantity(run) ?? NaN));
}

/** Returns why a text is no value of a field; undefined if it is one. */
export function fault(field: Field, text: string): string | undefined {
  if (field.key === "runs" && runsOf(text).flat().some((entries) => !(entries >= 1))) {
    return `${field.label}: '${text}' is no list of entries such as 900,900;5e4`;
  }
  if (text.trim() === "") return field.optional ? undefined : `${field.label} is missing`;
  switch (field.kind) {
    case "text":
      return undefined;
    case "duration":
      return (duration(text) ?? 0) > 0 ? undefined : `${field.label}: '${text}' is no time such as 90s, 30min or 2h`;
    case "number":
      return Number.isFinite(Number(text)) ? undefined : `${field.label}: '${text}' is no number`;
    case "share":
      return Number.isFinite(Number(text)) && Number(text) >= 0 ? undefined : `${field.label}: '${text}' is no number`;
    default:
      return (quantity(text) ?? -1) >= 0 ? undefined : `${field.label}: '${text}' is no number such as 100, 10M or 64MiB`;
  }
}

/** The most tables and events of a trace: some 200 MB in the page. */
const TRACE_MAX = 2_000_000;
const WINDOWS = 240;
/** The most tables: more than a picture has pixels. Larger trees get larger tables. */
const TABLES_MAX = 4000;

/** Returns the simulation of one design. Throws the first fault as an error. */
export function requestOf(setup: Setup, design: string): Simulate {
  for (const field of FIELDS) {
    const wrong = fault(field, valueOf(setup, field.key));
    if (wrong) throw new Error(wrong);
  }
  const text = (key: string) => valueOf(setup, key).trim();
  const number = (key: string) => quantity(text(key)) ?? 0;
  const share = (key: string) => Number(text(key));
  const optional = (key: string) => (text(key) === "" ? null : number(key));
  const workload: Workload = {
    records: number("records"),
    key_bytes: number("key-size"),
    record_bytes: number("record-size"),
    skew: text("keys"),
    arrival: text("arrival"),
    writers: Math.round(number("writers")),
    update: share("update"),
    insert: share("insert"),
    delete: share("delete"),
    get: share("get"),
    missing: share("missing"),
    scan: share("scan"),
    scan_entries: share("scan-entries"),
    cold: share("cold"),
    ttl_seconds: text("ttl") === "" ? null : (duration(text("ttl")) ?? null),
  };
  const machine: Machine = {
    budget: optional("budget"),
    slots: Math.round(number("threads")),
    device_bytes_per_second: number("device"),
    write_seconds: share("write-time") * 1e-6,
    merge_seconds: share("merge-time") * 1e-6,
    flush_seconds: share("flush-time") * 1e-6,
    request_seconds: share("request-time") * 1e-6,
    request_bytes: optional("request-size"),
    concurrency: optional("concurrency"),
    memtable_entry_bytes: optional("memtable-entry"),
    table_entry_bytes: optional("table-entry"),
    table_tombstone_bytes: text("tombstone") === "" ? null : Number(text("tombstone")),
  };
  return {
    call: "simulate", design, workload, machine, start: text("start"), runs: text("runs") === "" ? null : runsOf(text("runs")), seed: Math.round(number("seed")),
    seconds: duration(text("time")) ?? 0, windows: WINDOWS, tables_max: TABLES_MAX, trace_max: TRACE_MAX,
  };
}
