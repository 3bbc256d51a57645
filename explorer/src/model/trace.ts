// A trace whose events can be applied and undone, so that the clock can run both ways.
import type { Played, RawEvent, RawTable } from "../engine/requests";

export interface Table {
  id: number;
  run: number;
  level: number;
  start: number;
  end: number;
  bytes: number;
  entries: number;
}

/** A flush or a compaction, from its begin to its end. */
export interface Job {
  kind: "flush" | "merge";
  number: number;
  reason: string | null;
  from: number;
  into: number;
  inputs: number[];
  read: number;
  written: number;
  began: number;
  /** When it ended; infinite if it had not ended with the trace. */
  ended: number;
  /** Times at which its share of the bandwidth changed, with the part that was done. */
  shares: { at: number; done: number; share: number }[];
}

/** What writers may do. */
export interface Admission {
  how: "proceed" | "delay" | "stop";
  cause: string;
  measured: number;
  limit: number;
}

export interface Block {
  cause: string;
  measured: number;
  since: number;
}

/** A change of the state, with what undoes it. */
export interface Step {
  at: number;
  kind: string;
  removed: Table[];
  added: Table[];
  began?: Job;
  ended?: Job;
  immutable?: [number, number];
  admission?: [Admission, Admission];
  block?: [Block | null, Block | null];
  /** What the log says; absent if nothing. */
  text?: string;
  job?: Job;
}

export interface Trace {
  steps: Step[];
  jobs: Job[];
  /** The times at which memtables were replaced. */
  filled: number[];
  /** The times at which writers were stopped. */
  stopped: number[];
  seconds: number;
  /** The time after which nothing is known. */
  known: number;
  capacity: number;
}

const PROCEED: Admission = { how: "proceed", cause: "", measured: 0, limit: 0 };

function tableOf([id, run, level, start, end, bytes, entries]: RawTable): Table {
  return { id, run, level, start, end, bytes, entries };
}

/** Builds steps from events, each of which depends on those before it. */
class Builder {
  steps: Step[] = [];
  jobs: Job[] = [];
  filled: number[] = [];
  stopped: number[] = [];
  #tables = new Map<number, Table>();
  #merges = new Map<number, Job>();
  #flush: Job | undefined;
  #immutable = 0;
  #admission = PROCEED;
  #block: Block | null = null;

  #push(at: number, kind: string, more: Partial<Step> = {}): void {
    this.steps.push({ at, kind, removed: [], added: [], ...more });
  }

  #changed(removed: number[], added: RawTable[]): { removed: Table[]; added: Table[] } {
    const gone = removed.map((id) => this.#tables.get(id)).filter((table) => table !== undefined);
    for (const id of removed) this.#tables.delete(id);
    const tables = added.map(tableOf);
    for (const table of tables) this.#tables.set(table.id, table);
    return { removed: gone, added: tables };
  }

  #begin(at: number, job: Job): void {
    this.jobs.push(job);
    this.#push(at, job.kind, { began: job, job, text: job.reason ?? "flush: a new run of level 0" });
  }

  #setBlock(at: number, block: Block | null, text: string): void {
    this.#push(at, "block", { block: [this.#block, block], text });
    this.#block = block;
  }

  add(event: RawEvent): void {
    const [at, kind, a, b, c, d, e, f, g] = event;
    switch (kind) {
      case "start":
        this.#push(at, kind, this.#changed([], a as RawTable[]));
        break;
      case "full":
        this.filled.push(at);
        this.#push(at, kind, { immutable: [this.#immutable, a as number] });
        this.#immutable = a as number;
        break;
      case "flush": {
        const reason = b as string | null;
        const job: Job = {
          kind: "flush", number: 0, reason, from: 0, into: 0, inputs: c as number[], read: 0,
          written: a as number, began: at, ended: Infinity, shares: [{ at, done: 0, share: 1 }],
        };
        this.#flush = job;
        this.#begin(at, job);
        break;
      }
      case "flushed": {
        if (this.#flush) this.#flush.ended = at;
        const immutable: [number, number] = [this.#immutable, this.#immutable - 1];
        this.#immutable -= 1;
        const changed = this.#changed(a as number[], b as RawTable[]);
        this.#push(at, kind, { ...changed, immutable, ...(this.#flush ? { ended: this.#flush } : {}) });
        this.#flush = undefined;
        break;
      }
      case "merge": {
        const job: Job = {
          kind: "merge", number: a as number, reason: b as string, from: c as number,
          into: d as number, inputs: e as number[], read: f as number, written: g as number,
          began: at, ended: Infinity, shares: [{ at, done: 0, share: 0 }],
        };
        this.#merges.set(job.number, job);
        this.#begin(at, job);
        break;
      }
      case "share":
        this.#merges.get(a as number)?.shares.push({ at, done: b as number, share: c as number });
        break;
      case "merged": {
        const job = this.#merges.get(a as number);
        if (job) job.ended = at;
        this.#merges.delete(a as number);
        const changed = this.#changed(b as number[], c as RawTable[]);
        this.#push(at, kind, { ...changed, ...(job ? { ended: job } : {}) });
        break;
      }
      case "move":
        this.#push(at, kind, { ...this.#changed(d as number[], e as RawTable[]), text: a as string });
        break;
      case "drop": {
        const changed = this.#changed(a as number[], []);
        const text = `expired: ${changed.removed.length} tables without live values are dropped`;
        this.#push(at, kind, { ...changed, text });
        break;
      }
      case "admit": {
        const how = a as Admission["how"];
        const now = how === "proceed" ? PROCEED
          : { how, cause: b as string, measured: c as number, limit: d as number };
        this.#push(at, kind, { admission: [this.#admission, now] });
        this.#admission = now;
        break;
      }
      case "block":
        this.stopped.push(at);
        this.#setBlock(at, { cause: a as string, measured: b as number, since: at },
          `writers stop: ${a as string}, ${b as number}`);
        break;
      case "unblock": {
        const since = this.#block?.since ?? at;
        this.#setBlock(at, null, `writers continue after ${(at - since).toPrecision(3)} s`);
        break;
      }
    }
  }
}

export function traceOf(played: Played): Trace {
  const builder = new Builder();
  for (const event of played.events) builder.add(event);
  const known = played.trace_ended ?? played.seconds;
  const { steps, jobs, filled, stopped } = builder;
  return { steps, jobs, filled, stopped, seconds: played.seconds, known, capacity: 0 };
}

/** Returns the part of a job that is done at a time. */
export function progress(job: Job, at: number): { done: number; share: number } {
  let last = job.shares[0] ?? { at: job.began, done: 0, share: 1 };
  let next = { at: job.ended, done: 1 };
  for (const share of job.shares) {
    if (share.at > at) {
      next = share;
      break;
    }
    last = share;
  }
  const span = next.at - last.at;
  const part = span > 0 && Number.isFinite(span) ? (at - last.at) / span : 0;
  return { done: last.done + (next.done - last.done) * Math.min(1, Math.max(0, part)), share: last.share };
}
