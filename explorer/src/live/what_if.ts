// A setup of the explorer that continues a live database: its tree, its workload of the last minutes, its budget.
import { toHash, type Setup } from "../state/setup";
import type { LiveStore } from "./store";
import type { LiveTree } from "./tree";

/** The time over which the workload is averaged, in seconds. */
const RECENT = 300;

/** What a design is compared with, in this order of preference. */
const OTHERS = ["leveling", "tiering", "lazy-leveling"];

function rounded(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** Returns the runs of a tree as the explorer reads them: levels from the first on, each with the entries of its runs. */
export function runsText(tree: LiveTree): string {
  const levels: Map<number, number>[] = [];
  for (const table of tree.present.values()) {
    while (levels.length <= table.level) levels.push(new Map());
    const runs = levels[table.level];
    runs?.set(table.run, (runs.get(table.run) ?? 0) + table.entries);
  }
  const newestFirst = (runs: Map<number, number>) => [...runs].sort(([one], [other]) => other - one).map(([, entries]) => rounded(entries)).join(",");
  return levels.map((runs) => newestFirst(runs) || "-").join(";");
}

export interface WhatIf {
  hash: string;
  /** What the setup assumes, in a sentence. */
  assumes: string;
}

/** Returns the setup; null if the tree has no tables yet. */
export function whatIf(store: LiveStore, tree: LiveTree): WhatIf | null {
  const design = tree.last?.design;
  const tables = [...tree.present.values()];
  const entries = tables.reduce((sum, table) => sum + table.entries, 0);
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0);
  if (!design || entries === 0) return null;
  const byLevel = new Map<number, number>();
  for (const table of tables) byLevel.set(table.level, (byLevel.get(table.level) ?? 0) + table.entries);
  const [largest, records] = [...byLevel].reduce((most, one) => (one[1] > most[1] ? one : most));
  const runs = new Set(tables.filter(({ level }) => level === largest).map(({ run }) => run));
  const recent = store.samples.slice(store.sampleAt(store.end - RECENT));
  const mean = (of: (sample: (typeof recent)[number]) => number) => recent.reduce((sum, one) => sum + of(one), 0) / Math.max(1, recent.length);
  const rates = {
    writes: mean((one) => one.per_second.writes), deletes: mean((one) => one.per_second.deletes),
    gets: mean((one) => one.per_second.gets), scans: mean((one) => one.per_second.scans),
    entries: mean((one) => one.per_second.scan_entries),
    bytes: mean((one) => one.per_second.written_bytes),
  };
  const values: Record<string, string> = {
    records: rounded(records), "record-size": rounded(Math.max(1, rates.writes > 0 && rates.bytes > 0 ? rates.bytes / rates.writes : bytes / entries)), runs: runsText(tree), time: "1h",
    budget: budgetOf(store),
  };
  let workload = "the page's own workload, because nothing was written in the last minutes";
  if (rates.writes > 0) {
    const share = (rate: number) => rounded((100 * rate) / rates.writes);
    values["update"] = share(Math.max(0, rates.writes - rates.deletes));
    values["delete"] = share(rates.deletes);
    values["get"] = share(rates.gets);
    values["scan"] = share(rates.scans);
    if (rates.scans > 0) values["scan-entries"] = rounded(Math.max(1, rates.entries / rates.scans));
    // Writers who were stopped would have written more.
    const isHeld = mean((one) => Number(one.stalls.some((stall) => stall.keyspace === tree.keyspace))) > 0.05;
    values["arrival"] = isHeld ? "closed" : `constant(${rounded(rates.writes)})`;
    workload = isHeld ? "writers that write as fast as they can, because they were stopped" : `${rounded(rates.writes)} writes a second, as in the last minutes`;
  }
  // That of a batch is no time of a write: then one writer could not have made as many.
  const micros = store.last?.latencies.find(({ name }) => name === "write")?.p50_micros ?? 0;
  if (micros > 0 && rates.writes * micros < 0.9e6) values["write-time"] = rounded(micros);
  const first = design.split(/[ ;]/)[0] ?? "";
  const other = OTHERS.find((one) => !first.includes(one)) ?? "tiering";
  const setup: Setup = { designs: [design, withSizes(other, design)], values };
  // Samples have no rates of single keyspaces.
  const all = (store.last?.trees.length ?? 1) > 1 ? "; all operations of the database in this keyspace" : "";
  const overlap = runs.size > 1 ? "; as many records as the entries of the largest level, though its runs may share keys" : "";
  const budget = values["budget"] ? `an I/O budget of ${values["budget"]}` : "no I/O budget";
  return { hash: toHash(setup), assumes: `The tree of now, ${workload}; records of ${values["record-size"]} bytes; ${budget}, and otherwise the device of the page; uniform keys; every write an update or a delete${all}${overlap}.` };
}

/** Gives a design the memtable of another one, so that they differ in what matters. */
function withSizes(name: string, design: string): string {
  const sizes = design.split(";").map((part) => part.trim()).filter((part) => /^(buffer|table|block)=/.test(part));
  return [name, ...sizes].join("; ");
}

function budgetOf(store: LiveStore): string {
  // A number of bytes may have no unit.
  const match = /^(?:leftover\()?([0-9.]+) ?([KMGT]?i?B)?/.exec(store.connected?.options?.io_budget ?? "");
  return match ? `${match[1]}${match[2] ?? "B"}/s` : "";
}
