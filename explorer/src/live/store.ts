// What is known of a database: from its lines, live or of a recording.
import type { Connected, Line, LoggedEvent, Sample, Tables } from "./messages";
import { LiveTree } from "./tree";

/** How long samples of a live database are kept, in seconds, and how many events. */
const KEPT = 3600;
const EVENTS_MAX = 10_000;

/** Samples that are further apart than this many intervals have a gap between them. */
const GAP = 3;

/** An event, or a note of the command. */
export interface Entry {
  at: number;
  text: string;
  kind: string;
}

export class LiveStore {
  /** How long samples are kept, in seconds: a recording is kept whole. */
  readonly kept: number;

  constructor(isRecording = false) {
    this.kept = isRecording ? Infinity : KEPT;
  }

  /** The time of the first line, in microseconds since the Unix epoch. Other times are in seconds since then. */
  origin = 0;
  end = 0;
  samples: Sample[] = [];
  /** The end of each sample's interval. */
  times: number[] = [];
  entries: Entry[] = [];
  trees = new Map<string, LiveTree>();
  connected: Connected | null = null;
  /** Why there are no newer lines; empty while there are. */
  lost = "";
  /** Lines that were read, and lines that could not be. */
  lines = 0;
  unread = 0;
  #jobs = new Map<number, Tables["jobs"][number]>();
  #events = 0;

  /** Returns a time of the protocol in seconds. */
  seconds(micros: number): number {
    return (micros - this.origin) / 1e6;
  }

  /** Returns a time as the local clock shows it. */
  wall(at: number): Date {
    return new Date(this.origin / 1e3 + at * 1e3);
  }

  /** The newest sample. */
  get last(): Sample | undefined {
    return this.samples.at(-1);
  }

  /** Returns the position of the sample at a time. */
  sampleAt(at: number): number {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.times[middle] ?? 0) <= at + 1e-9) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  tree(keyspace: string): LiveTree {
    const known = this.trees.get(keyspace);
    if (known) return known;
    const tree = new LiveTree(keyspace, this.kept);
    this.trees.set(keyspace, tree);
    return tree;
  }

  add(line: Line): void {
    this.lines += 1;
    // Events of before the connection are older than its first line.
    if (this.origin === 0) this.origin = line.at_micros;
    // A wall clock that is set back does not make the picture stand still.
    const known = line.item === "event" ? 0 : this.end;
    const at = Math.max(known, this.seconds(line.at_micros));
    this.end = Math.max(this.end, at);
    switch (line.item) {
      case "connected":
        this.#connect(at, line);
        break;
      case "disconnected":
        this.lost = line.text;
        for (const tree of this.trees.values()) tree.endJobs(at);
        this.#note(at, line.text, "note");
        break;
      case "event":
        this.#event(line);
        break;
      case "tables":
        this.#tables(at, line);
        break;
      case "sample":
        this.#sample(at, line);
        break;
    }
  }

  #connect(at: number, line: Connected): void {
    const isSame = line.process !== null && this.connected?.process?.pid === line.process.pid;
    this.connected = line;
    this.lost = "";
    // Another process counts its jobs and events anew.
    if (!isSame) {
      this.#jobs.clear();
      this.#events = 0;
      for (const tree of this.trees.values()) tree.endJobs(at);
    }
    const who = line.process ? `process ${line.process.pid} (${line.process.program}) has the database open` : "the files of the database";
    this.#note(at, who, "note");
  }

  #note(at: number, text: string, kind: string): void {
    this.entries.push({ at, text, kind });
    if (this.entries.length > EVENTS_MAX && this.kept < Infinity) this.entries.splice(0, this.entries.length - EVENTS_MAX);
  }

  #event(line: LoggedEvent): void {
    if (line.number <= this.#events) return;
    const at = this.seconds(line.at_micros);
    const missed = this.#events > 0 ? line.number - this.#events - 1 : 0;
    if (missed > 0) this.#note(at, `${missed} events are missing: there were too many in one interval`, "note");
    this.#events = line.number;
    this.#note(at, line.text, line.event);
    const keyspace = line.details["keyspace"];
    const tree = typeof keyspace === "string" ? this.trees.get(keyspace) : undefined;
    if (at >= 0) tree?.event(at, line);
  }

  #tables(at: number, line: Tables): void {
    const changed = new Set<string>();
    for (const changes of line.trees) {
      changed.add(changes.keyspace);
      this.tree(changes.keyspace).change(at, changes, line.is_whole);
    }
    if (line.is_whole) {
      for (const [keyspace, tree] of this.trees) {
        if (!changed.has(keyspace)) tree.change(at, { keyspace, removed: [], added: [] }, true);
      }
    }
    for (const job of line.jobs) {
      this.#jobs.set(job.id, job);
      // It may have begun in an earlier sample.
      for (const tree of this.trees.values()) tree.takeInputs(job);
    }
  }

  #sample(at: number, sample: Sample): void {
    this.samples.push(sample);
    this.times.push(at);
    for (const { keyspace } of sample.trees) this.tree(keyspace);
    for (const tree of this.trees.values()) tree.sample(at, sample, this.#jobs);
    const running = new Set(sample.jobs.map((job) => job.id));
    for (const id of this.#jobs.keys()) if (!running.has(id)) this.#jobs.delete(id);
    // Keyspaces that were dropped, once nothing of them is in the hour.
    const names = new Set(sample.trees.map(({ keyspace }) => keyspace));
    for (const [name, tree] of this.trees) if (!names.has(name) && tree.lastAt < at - this.kept) this.trees.delete(name);
    const old = this.times.findIndex((time) => time >= at - this.kept);
    if (old > 60) {
      this.times.splice(0, old);
      this.samples.splice(0, old);
    }
  }

  /** Returns true if nothing is known of the time before a sample: the process was gone, or did not answer. */
  isAfterGap(place: number): boolean {
    const [time, before, interval] = [this.times[place], this.times[place - 1], this.samples[place]?.interval_micros ?? 0];
    return time !== undefined && before !== undefined && interval > 0 && time - before > (GAP * interval) / 1e6;
  }

  /** The first time of which something is known. */
  get begin(): number {
    return this.times[0] ?? 0;
  }
}
