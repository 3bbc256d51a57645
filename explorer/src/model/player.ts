// The state of a tree at a time of its trace.
import type { Admission, Block, Job, Step, Table, Trace } from "./trace";

export class Player {
  readonly trace: Trace;
  /** The tables, by number. */
  readonly tables = new Map<number, Table>();
  readonly running = new Set<Job>();
  immutable = 0;
  admission: Admission = { how: "proceed", cause: "", measured: 0, limit: 0 };
  block: Block | null = null;
  /** How many steps have been applied. */
  next = 0;
  /** Grows with every change of the tables. */
  version = 0;
  #at = 0;
  #levels: { version: number; levels: Map<number, Table[]>[] } = { version: -1, levels: [] };

  constructor(trace: Trace) {
    this.trace = trace;
    this.seek(0);
  }

  get at(): number {
    return this.#at;
  }

  /** Moves the clock, forward or back. */
  seek(at: number): void {
    this.#at = at;
    const { steps } = this.trace;
    for (let step = steps[this.next]; step && step.at <= at; step = steps[this.next]) {
      this.#apply(step);
      this.next += 1;
    }
    for (let step = steps[this.next - 1]; step && step.at > at; step = steps[this.next - 1]) {
      this.#undo(step);
      this.next -= 1;
    }
  }

  /** Returns the time of the next begin of a job or stop of writers; undefined at the end. */
  nextEvent(): number | undefined {
    for (let number = this.next; number < this.trace.steps.length; number += 1) {
      const step = this.trace.steps[number];
      if (step?.text !== undefined && step.at > this.#at) return step.at;
    }
    return undefined;
  }

  /** Returns the time of the last such event before now. */
  lastEvent(): number | undefined {
    for (let number = this.next - 1; number >= 0; number -= 1) {
      const step = this.trace.steps[number];
      if (step?.text !== undefined && step.at < this.#at - 1e-9) return step.at;
    }
    return undefined;
  }

  /** Returns how full the active memtable is, from 0 to 1. */
  activeShare(): number {
    const { filled } = this.trace;
    const after = firstAfter(filled, this.#at);
    const from = after > 0 ? (filled[after - 1] ?? 0) : 0;
    const until = filled[after];
    if (until === undefined) {
      // The last memtable does not become full; it fills like the one before.
      const before = after > 1 ? from - (filled[after - 2] ?? 0) : this.trace.seconds;
      return Math.min(1, (this.#at - from) / Math.max(before, 1e-9));
    }
    // A memtable that became full while writers were stopped was replaced later.
    const stop = this.trace.stopped[firstAfter(this.trace.stopped, from)] ?? Infinity;
    return Math.min(1, (this.#at - from) / Math.max(Math.min(until, stop) - from, 1e-9));
  }

  /** Returns the tables of each level, by run from the newest. The same as before while the version is. */
  levels(): Map<number, Table[]>[] {
    if (this.#levels.version !== this.version) this.#levels = { version: this.version, levels: this.#group() };
    return this.#levels.levels;
  }

  #group(): Map<number, Table[]>[] {
    const levels: Map<number, Table[]>[] = [];
    for (const table of this.tables.values()) {
      while (levels.length <= table.level) levels.push(new Map());
      const runs = levels[table.level];
      const run = runs?.get(table.run);
      if (run) run.push(table);
      else runs?.set(table.run, [table]);
    }
    return levels.map((runs) => new Map([...runs].sort(([one], [other]) => other - one)));
  }

  #change(removed: Table[], added: Table[]): void {
    if (removed.length + added.length > 0) this.version += 1;
    for (const table of removed) this.tables.delete(table.id);
    for (const table of added) this.tables.set(table.id, table);
  }

  #apply(step: Step): void {
    this.#change(step.removed, step.added);
    if (step.began) this.running.add(step.began);
    if (step.ended) this.running.delete(step.ended);
    if (step.immutable) this.immutable = step.immutable[1];
    if (step.admission) this.admission = step.admission[1];
    if (step.block) this.block = step.block[1];
  }

  #undo(step: Step): void {
    this.#change(step.added, step.removed);
    if (step.began) this.running.delete(step.began);
    if (step.ended) this.running.add(step.ended);
    if (step.immutable) this.immutable = step.immutable[0];
    if (step.admission) this.admission = step.admission[0];
    if (step.block) this.block = step.block[0];
  }
}

/** Returns the number of the first element above a value. */
export function firstAfter(sorted: number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
