// The tree of a keyspace, put together from samples and changes of tables.
import { Player } from "../model/player";
import type { Job, Step, Table, Trace } from "../model/trace";
import { KeyScale, LAST, keyOf, type Key } from "./keys";
import type { LoggedEvent, PlacedTable, Sample, SampleJob, SampleTree, Tables } from "./messages";

/** How much longer than samples steps are kept, in seconds. */
const KEPT_MORE = 100;

/** Old states are forgotten this many at a time. */
const MOMENTS_AT_ONCE = 60;

/** A scale of keys is made anew once this many tables are new, or this part of all. */
const NEW_MIN = 32;
const NEW_PART = 0.2;

/** A table with the keys that it covers. Its place depends on the keys of all tables, and is found when it is drawn. */
export class KeyedTable implements Table {
  readonly id: number;
  readonly run: number;
  readonly level: number;
  readonly bytes: number;
  readonly entries: number;
  readonly first: PlacedTable["start"];
  readonly last: PlacedTable["end"];
  readonly from: Key;
  readonly to: Key;
  readonly #scales: { readonly scale: KeyScale };
  #placedBy: KeyScale | undefined;
  #start = 0;
  #end = 0;

  constructor(placed: PlacedTable, scales: { readonly scale: KeyScale }) {
    ({ table: this.id, run: this.run, level: this.level, bytes: this.bytes, entries: this.entries, start: this.first, end: this.last } = placed);
    [this.from, this.to] = [keyOf(this.first), this.last === null ? LAST : keyOf(this.last)];
    this.#scales = scales;
  }

  #place(): void {
    const { scale } = this.#scales;
    if (this.#placedBy === scale) return;
    this.#placedBy = scale;
    this.#start = scale.place(this.from);
    this.#end = Math.max(this.#start, scale.place(this.to));
  }

  get start(): number {
    this.#place();
    return this.#start;
  }

  get end(): number {
    this.#place();
    return this.#end;
  }
}

/** The scale of the keys of a tree, which is computed when it is next drawn: many changes may come before that. */
class LazyScale {
  readonly #tables: () => Iterable<KeyedTable>;
  #known: KeyScale | null = null;

  constructor(tables: () => Iterable<KeyedTable>) {
    this.#tables = tables;
  }

  get scale(): KeyScale {
    this.#known ??= new KeyScale([...this.#tables()].map(({ from, to, bytes }) => ({ start: from, end: to, bytes })));
    return this.#known;
  }

  /** Returns true if the next scale has this key within its bounds. */
  covers(key: Key): boolean {
    return this.#known?.covers(key) ?? true;
  }

  forget(): void {
    this.#known = null;
  }
}

/** The state of a memtable and of the levels at a time. */
interface Moment {
  at: number;
  tree: SampleTree;
}

function emptyTrace(): Trace {
  return { steps: [], jobs: [], filled: [], stopped: [], seconds: 0, known: Infinity, capacity: 0 };
}

/** A tree whose trace grows. */
export class LiveTree extends Player {
  readonly keyspace: string;
  /** The states of the memtable, by time. */
  readonly moments: Moment[] = [];
  #present = new Map<number, KeyedTable>();
  readonly #scales = new LazyScale(() => this.#present.values());
  #new = 0;
  #jobs = new Map<string, Job>();
  #immutable = 0;
  #how = "proceed";

  readonly #kept: number;

  /** Creates a tree whose past is kept for a time, in seconds. */
  constructor(keyspace: string, kept = 3600) {
    super(emptyTrace());
    this.keyspace = keyspace;
    this.#kept = kept + KEPT_MORE;
  }

  /** The time of the newest state; -1 if there is none. */
  get lastAt(): number {
    return this.moments.at(-1)?.at ?? -1;
  }

  /** The newest state. */
  get last(): SampleTree | undefined {
    return this.moments.at(-1)?.tree;
  }

  /** Returns the state at the time of the picture. */
  get moment(): SampleTree | undefined {
    return this.#momentAt(this.at)?.tree;
  }

  #momentAt(at: number): Moment | undefined {
    let [low, high] = [0, this.moments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.moments[middle]?.at ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    return this.moments[Math.max(0, low - 1)];
  }

  override activeShare(): number {
    const tree = this.moment;
    return tree && tree.memtable_capacity > 0 ? Math.min(1, tree.memtable_bytes / tree.memtable_capacity) : 0;
  }

  /** Returns the tables of now, which may be later than the picture. */
  get present(): ReadonlyMap<number, KeyedTable> {
    return this.#present;
  }

  #push(at: number, kind: string, more: Partial<Step>): void {
    const { steps } = this.trace;
    steps.push({ at: Math.max(at, steps.at(-1)?.at ?? 0), kind, removed: [], added: [], ...more });
  }

  /** Adds changes of tables. */
  change(at: number, changes: Tables["trees"][number], isWhole: boolean): void {
    const ids = isWhole ? [...this.#present.keys()] : changes.removed;
    const removed = ids.map((id) => this.#present.get(id)).filter((table) => table !== undefined);
    for (const id of ids) this.#present.delete(id);
    const added = changes.added.map((one) => new KeyedTable(one, this.#scales));
    for (const table of added) this.#present.set(table.id, table);
    if (removed.length + added.length === 0) return;
    this.#place(added);
    this.#push(at, "tables", { removed, added });
  }

  /** Makes the scale of keys anew if it does not fit the tables any more. */
  #place(added: KeyedTable[]): void {
    this.#new += added.length;
    const scales = this.#scales;
    const isOutside = added.some(({ from, to }) => !scales.covers(from) || !scales.covers(to));
    if (!isOutside && this.#new <= Math.max(NEW_MIN, this.#present.size * NEW_PART)) return;
    this.#new = 0;
    scales.forget();
  }

  /** Takes the tables of a job that was in a sample before they were known. */
  takeInputs(tables: Tables["jobs"][number]): void {
    const job = this.#jobs.get(String(tables.id));
    if (!job || job.inputs.length > 0) return;
    [job.inputs, job.into, job.from] = [tables.inputs, tables.output_level, this.#firstLevel(tables.inputs)];
  }

  #firstLevel(inputs: number[]): number {
    const levels = inputs.map((id) => this.#present.get(id)?.level).filter((level) => level !== undefined);
    return levels.length > 0 ? Math.min(...new Set(levels)) : 0;
  }

  /** Ends all jobs: the process has gone, or the keyspace was dropped. */
  endJobs(at: number): void {
    for (const job of this.#jobs.values()) this.#end(at, job);
    this.#jobs.clear();
  }

  /** Adds a sample. `inputs` has the tables of jobs by their number. */
  sample(at: number, sample: Sample, inputs: ReadonlyMap<number, Tables["jobs"][number]>): void {
    const tree = sample.trees.find(({ keyspace }) => keyspace === this.keyspace);
    if (!tree) {
      this.endJobs(at);
      return;
    }
    this.moments.push({ at, tree });
    if (tree.immutable_memtables !== this.#immutable) {
      this.#push(at, "immutable", { immutable: [this.#immutable, tree.immutable_memtables] });
      this.#immutable = tree.immutable_memtables;
    }
    this.#admit(at, sample);
    const own = sample.jobs.filter((job) => job.keyspace === this.keyspace && job.state !== "queued");
    const seen = new Set<string>();
    for (const view of own) {
      const name = view.id === null ? "flush" : String(view.id);
      seen.add(name);
      const job = this.#jobs.get(name) ?? this.#begin(at, name, view, inputs.get(view.id ?? -1));
      const done = view.remaining_bytes === null || view.total_bytes === 0 ? 0 : 1 - view.remaining_bytes / view.total_bytes;
      job.shares.push({ at, done, share: view.state === "paused" ? 0 : (view.share ?? 1) });
    }
    for (const [name, job] of this.#jobs) {
      if (seen.has(name)) continue;
      this.#jobs.delete(name);
      this.#end(at, job);
    }
    this.#trim(at);
  }

  #begin(at: number, name: string, view: SampleJob, tables: Tables["jobs"][number] | undefined): Job {
    const began = Math.max(at - (view.running_micros ?? 0) / 1e6, 0);
    const inputs = tables?.inputs ?? [];
    const job: Job = {
      kind: view.job === "flush" ? "flush" : "merge", number: view.id ?? 0, reason: view.why,
      from: this.#firstLevel(inputs), into: tables?.output_level ?? 0, inputs,
      read: view.total_bytes, written: view.total_bytes, began, ended: Infinity, shares: [{ at: began, done: 0, share: 1 }],
    };
    this.#jobs.set(name, job);
    this.trace.jobs.push(job);
    this.#push(at, job.kind, { began: job });
    return job;
  }

  #end(at: number, job: Job): void {
    job.ended = at;
    this.#push(at, "ended", { ended: job });
  }

  #admit(at: number, sample: Sample): void {
    const stall = sample.stalls.find(({ keyspace }) => keyspace === this.keyspace);
    const how = !stall ? "proceed" : stall.stops ? "stop" : "delay";
    if (how === this.#how) return;
    const last = this.trace.steps.findLast((step) => step.admission)?.admission?.[1] ?? { how: "proceed" as const, cause: "", measured: 0, limit: 0 };
    const block = this.trace.steps.findLast((step) => step.block)?.block?.[1] ?? null;
    const now = { how: how as "proceed" | "delay" | "stop", cause: stall?.cause ?? "", measured: stall?.measured ?? 0, limit: stall?.stop_at ?? 0 };
    this.#push(at, "admit", { admission: [last, now] });
    const next = how === "stop" ? { cause: now.cause, measured: now.measured, since: at - (stall?.micros ?? 0) / 1e6 } : null;
    if ((block === null) !== (next === null)) this.#push(at, "block", { block: [block, next] });
    this.#how = how;
  }

  /** Adds an event of this tree to those between which the clock steps. */
  event(at: number, event: LoggedEvent): void {
    this.#push(at, "event", { text: event.text });
  }

  /** Forgets steps that are too old to be undone. */
  #trim(now: number): void {
    const { steps, jobs } = this.trace;
    // A picture of a time before that stays where the first known one is.
    if (this.at < now - this.#kept) this.seek(now - this.#kept);
    // An idle tree has a state a second, and hardly any steps.
    const known = this.moments.findIndex((moment) => moment.at >= now - this.#kept);
    if (known > MOMENTS_AT_ONCE) this.moments.splice(0, known);
    const old = steps.findIndex((step) => step.at >= now - this.#kept);
    const count = Math.min(old < 0 ? steps.length : old, this.next);
    if (count < 1000) return;
    steps.splice(0, count);
    this.next -= count;
    const running = jobs.filter((job) => job.ended >= now - this.#kept);
    jobs.splice(0, jobs.length, ...running);
  }
}
