// What is computed beside the page.
import { expect, test } from "@playwright/test";
import type { Played, RawEvent, Results, Windows } from "../src/engine/requests";
import { KeyScale, LAST, keyOf, shownKey } from "../src/live/keys";
import { lineOf, type Line, type Sample } from "../src/live/messages";
import { LiveStore } from "../src/live/store";
import { whatIf } from "../src/live/what_if";
import { front } from "../src/model/pareto";
import { Player } from "../src/model/player";
import { progress, traceOf } from "../src/model/trace";
import { unsteady, verdict } from "../src/model/verdict";
import { bytes, clock, count, duration, quantity, seconds } from "../src/model/words";
import { shortNames } from "../src/view/series";
import { Clock } from "../src/state/clock";
import { DATA, constantsOf, fault, fromHash, requestOf, toHash, valueOf, withValue, type Setup } from "../src/state/setup";

function played(events: RawEvent[]): Played {
  return { events, seconds: 100, trace_ended: null } as unknown as Played;
}

const EVENTS: RawEvent[] = [
  [0, "start", [[1, 1, 1, 0, 1, 1000, 10]]],
  [5, "full", 1],
  [5, "flush", 100, null, []],
  [10, "flushed", [], [[2, 2, 0, 0, 1, 100, 1]]],
  [10, "merge", 1, "level 0 is full", 0, 1, [1, 2], 1100, 1050],
  [10, "share", 1, 0, 1],
  [20, "share", 1, 0.5, 0],
  [30, "share", 1, 0.5, 1],
  [35, "block", "level-0-runs", 4],
  [40, "merged", 1, [1, 2], [[3, 3, 1, 0, 0.5, 500, 5], [4, 3, 1, 0.5, 1, 550, 6]]],
  [40, "unblock"],
  [50, "move", "one run moves", 1, 2, [3], [[3, 4, 2, 0, 0.5, 500, 5]]],
  [60, "drop", [4]],
];

/** The state at a time, as text. */
function state(player: Player): string {
  const tables = [...player.tables.values()].map((table) => `${table.id}@${table.level}`).sort();
  return JSON.stringify([tables, player.running.size, player.immutable, player.block]);
}

test("a trace plays forward and back to the same states", () => {
  const player = new Player(traceOf(played(EVENTS)));
  const times = [0, 5, 7, 10, 25, 36, 40, 55, 70];
  const forward = times.map((at) => { player.seek(at); return state(player); });
  expect(forward[0]).toBe(JSON.stringify([["1@1"], 0, 0, null]));
  expect(forward[2]).toBe(JSON.stringify([["1@1"], 1, 1, null]));
  expect(forward[5]).toContain("level-0-runs");
  expect(forward[7]).toBe(JSON.stringify([["3@2", "4@1"], 0, 0, null]));
  expect(forward[8]).toBe(JSON.stringify([["3@2"], 0, 0, null]));
  for (const at of [8, 3, 7, 0, 6, 1, 5, 2, 4, 8, 0]) {
    player.seek(times[at] ?? 0);
    expect(state(player)).toBe(forward[at]);
  }
});

test("a paused merge makes no progress", () => {
  const trace = traceOf(played(EVENTS));
  const job = trace.jobs.find((one) => one.kind === "merge");
  if (!job) throw new Error("no merge");
  const done = (at: number) => progress(job, at);
  expect(done(15)).toEqual({ done: 0.25, share: 1 });
  expect(done(25)).toEqual({ done: 0.5, share: 0 });
  expect(done(35)).toEqual({ done: 0.75, share: 1 });
});

test("steps go to begins of jobs and stops", () => {
  const player = new Player(traceOf(played(EVENTS)));
  expect(player.nextEvent()).toBe(5);
  player.seek(10);
  expect([player.lastEvent(), player.nextEvent()]).toEqual([5, 35]);
  player.seek(90);
  expect([player.lastEvent(), player.nextEvent()]).toEqual([60, undefined]);
});

test("numbers are written and read as people do", () => {
  expect([bytes(1536), bytes(64 * 1024 ** 2), count(12_345), seconds(0.0015), seconds(90), clock(3723)])
    .toEqual(["1.50 KiB", "64 MiB", "12.3 k", "1.50 ms", "90 s", "1:02:03"]);
  expect([quantity("10M"), quantity("64MiB"), quantity("20MB/s"), quantity("1e9"), quantity("many"), quantity("5X")])
    .toEqual([1e7, 64 * 1024 ** 2, 2e7, 1e9, undefined, undefined]);
  expect([duration("2h"), duration("90"), duration("1.5min"), duration("soon")]).toEqual([7200, 90, 90, undefined]);
});

test("an address holds a whole setup", () => {
  const { setup, view } = fromHash("#design=leveling&design=tiering+T%3D4%3B+L0%3D2&records=5M&ttl=1h&at=77");
  expect(setup.designs).toEqual(["leveling", "tiering T=4; L0=2"]);
  expect([valueOf(setup, "records"), valueOf(setup, "ttl"), valueOf(setup, "keys"), view.at]).toEqual(["5M", "1h", "uniform", "77"]);
  expect(fromHash(toHash(setup)).setup).toEqual(setup);
  // A default is not part of the address.
  expect(toHash(withValue(setup, "records", "10M"))).not.toContain("records");
  expect(fromHash("#design=a&design=b&design=c&design=d&design=e").setup.designs).toHaveLength(4);
  expect(requestOf(setup, "leveling").workload).toMatchObject({ records: 5e6, ttl_seconds: 3600 });
});

test("faults of fields are sentences", () => {
  const records = DATA[0];
  if (!records) throw new Error("no field");
  expect(fault(records, "many")).toContain("'many' is no number");
  expect(fault(records, "")).toContain("missing");
  expect(fault(records, "100M")).toBeUndefined();
  expect(() => requestOf({ designs: [], values: { time: "soon" } }, "x")).toThrow("'soon' is no time");
});

test("the front has the points that none beats", () => {
  const points = [[1, 9], [2, 5], [2, 6], [3, 5], [4, 1], [9, 2]].map(([x = 0, y = 0]) => ({ x, y }));
  expect(front(points)).toEqual([0, 1, 4]);
});

test("a verdict names the largest difference first", () => {
  const results = (rate: number, write: number, runs: number, more: Partial<Results> = {}): Results => ({
    rate, write_amplification: write, missing: 0, runs, most_runs: 0, space_amplification: 1, stalled_seconds: 0, offered: null, ...more,
  } as Results);
  const lines = verdict([
    { name: "leveling", results: results(1000, 10, 4) },
    { name: "tiering", results: results(1500, 2, 12) },
  ]);
  expect(lines).toEqual([
    "Leveling writes 5x the bytes of tiering for each byte of the user.",
    "A scan reads 3x the runs in tiering as in leveling.",
    "Tiering takes 1.50x the writes of leveling.",
  ]);
  const stopped = { stalled_seconds: 60, longest: 30, offered: 900, stalled_by: ["level-0-runs", 60] } as Partial<Results>;
  const [first] = verdict([
    { name: "a", results: results(1, 1, 1) }, { name: "b", results: results(1, 1, 1, stopped) },
  ]);
  expect(first).toBe("B stops writers for 60 s by level-0-runs; the slowest write takes 30 s.");
  expect(verdict([{ name: "a", results: results(1, 1, 1) }])).toEqual([]);
});

test("a run whose debt grows to its end is not steady", () => {
  const windows = (space_amplification: number[], queued: number[] = space_amplification.map(() => 0)) => ({ space_amplification, queued }) as unknown as Windows;
  const results = { rate: 1000 } as Results;
  const saw = Array.from({ length: 40 }, (_, at) => 1 + (at % 10));
  expect(unsteady(windows(saw), results)).toBeUndefined();
  const growing = Array.from({ length: 40 }, (_, at) => 1 + at / 4);
  expect(unsteady(windows(growing), results)).toContain("space amplification reaches 10.8x in the last quarter, and 8.25x before");
  expect(unsteady(windows(saw, growing.map((size) => size * 1000)), results)).toContain("writes wait in the last quarter");
  // Ten windows say nothing.
  expect(unsteady(windows(growing.slice(0, 10)), results)).toBeUndefined();
});

test("names of designs differ where the designs do", () => {
  expect(shortNames(["leveling", "tiering T=3"])).toEqual(["leveling", "tiering T=3"]);
  expect(shortNames(["tiering T=3; scheduler=fair; stop=30", "tiering T=3; scheduler=greedy; stop=30"]))
    .toEqual(["tiering T=3; scheduler=fair", "tiering T=3; scheduler=greedy"]);
  expect(shortNames(["leveling", "leveling"])).toEqual(["A: leveling", "B: leveling"]);
  expect(shortNames(["leveling; filter=5"])).toEqual(["leveling"]);
});

test("keys are in order, and a place is a share of the bytes", () => {
  expect(keyOf("é") > keyOf("z")).toBe(true);
  expect(keyOf({ hex: "00ff" })).toBe("\u0000\u00ff");
  expect([shownKey("ada"), shownKey("a\n"), shownKey({ hex: "00ff" })]).toEqual(["'ada'", "610a", "00ff"]);

  // Two tables of a run, the second three times as large, and a small one above them over nearly all keys.
  const span = (start: string, end: string, bytes: number) => ({ start, end, bytes });
  const scale = new KeyScale([span("user:000", "user:300", 100), span("user:300", "user:999", 300), span("user:001", "user:998", 1)]);
  expect(scale.place("user:000")).toBe(0);
  expect(scale.place("user:999")).toBe(1);
  expect(scale.place("user:300")).toBeCloseTo(0.25, 1);
  expect(scale.place("user:001")).toBeLessThan(0.01);
  expect(scale.place("user:998")).toBeGreaterThan(0.99);
  expect(scale.covers("user:500") && !scale.covers("zebra")).toBe(true);
  expect(scale.place("user:5")).toBeGreaterThan(scale.place("user:2"));

  // Clusters with long prefixes, and a range without an end.
  const clusters = new KeyScale([span("a/1", "a/2", 50), span("very/long/prefix/1", "very/long/prefix/9", 50), span("a/1", LAST, 1)]);
  const places = ["a/1", "a/2", "very/long/prefix/1", "very/long/prefix/9", LAST].map((key) => clusters.place(key));
  expect(places).toEqual([...places].sort((one, other) => one - other));
  expect((places[1] ?? 0) - (places[0] ?? 0)).toBeGreaterThan(0.4);
  expect((places[3] ?? 0) - (places[2] ?? 0)).toBeGreaterThan(0.4);
  expect(new KeyScale([]).place("a")).toBe(0.5);
});

/** A sample of a tree at a second. */
function sample(at: number, more: Partial<Sample> = {}, tree: Partial<Sample["trees"][number]> = {}): Sample {
  return {
    item: "sample", at_micros: 1e15 + at * 1e6, jobs: [], stalls: [], stalled_share: 0, latencies: [],
    per_second: { writes: 1000, deletes: 250, gets: 500, scans: 0, scan_entries: 0, written_bytes: 0 },
    trees: [{ keyspace: "default", design: "tiering T=4; buffer=1MiB", memtable_bytes: 1, memtable_capacity: 2, immutable_memtables: 0, levels: [], ...tree }],
    ...more,
  } as unknown as Sample;
}

function tables(at: number, isWhole: boolean, removed: number[], added: [number, number, number][], jobs: unknown[] = []): Line {
  const place = ([table, run, level]: [number, number, number]) => ({ table, run, level, start: "a", end: "b", bytes: 1000, entries: 10, tombstones: 0 });
  return { item: "tables", at_micros: 1e15 + at * 1e6, is_whole: isWhole, trees: [{ keyspace: "default", removed, added: added.map(place) }], jobs } as unknown as Line;
}

test("lines of a database make a tree that plays forward and back", () => {
  const store = new LiveStore();
  const job = { id: 5, keyspace: "default", job: "compaction", state: "running", what: "", why: "level 0 is full", total_bytes: 100, remaining_bytes: 40, share: 1, running_micros: 5e5 };
  const stall = { keyspace: "default", stops: true, cause: "level-0-runs", measured: 9, delay_at: 5, stop_at: 9, until: "", micros: 0 };
  const lines: Line[] = [
    { item: "connected", at_micros: 1e15, database: "db", process: null, options: { durability: "sync", io_budget: "leftover(50MiB)", memory_budget: 1 } },
    tables(1, true, [], [[1, 1, 0], [2, 2, 0]]), sample(1),
    tables(2, false, [], [[3, 3, 0]], [{ id: 5, inputs: [1, 2], output_level: 1 }]),
    sample(2, { jobs: [job], stalls: [stall] } as unknown as Partial<Sample>, { immutable_memtables: 2 }),
    // Table 3 moves; the job has ended.
    tables(3, false, [1, 2, 3], [[4, 4, 1], [3, 5, 1]]), sample(3),
    // Another process: what was known is replaced.
    tables(4, true, [], [[9, 1, 0]]), sample(4),
  ];
  for (const line of lines) store.add(line);
  const tree = store.tree("default");
  const at = (time: number) => { tree.seek(time); return state(tree); };
  const forward = [1, 2, 3, 4].map(at);
  expect(forward).toEqual([
    JSON.stringify([["1@0", "2@0"], 0, 0, null]),
    JSON.stringify([["1@0", "2@0", "3@0"], 1, 2, { cause: "level-0-runs", measured: 9, since: 2 }]),
    JSON.stringify([["3@1", "4@1"], 0, 0, null]),
    JSON.stringify([["9@0"], 0, 0, null]),
  ]);
  expect([3, 2, 1].map(at)).toEqual([...forward.slice(0, 3)].reverse());
  tree.seek(2);
  const [running] = [...tree.running];
  if (!running) throw new Error("no job");
  expect([running.from, running.into, running.inputs, running.began]).toEqual([0, 1, [1, 2], 1.5]);
  expect(progress(running, 2).done).toBeCloseTo(0.6);

  const question = whatIf(store, tree);
  const { setup } = fromHash(question?.hash ?? "");
  expect(setup.designs[0]).toBe("tiering T=4; buffer=1MiB");
  expect(setup.designs[1]).toBe("leveling; buffer=1MiB");
  expect(setup.values).toMatchObject({ runs: "10", records: "10", "record-size": "100", budget: "50MiB/s", update: "75", delete: "25", get: "50", time: "1h" });
  // Writers were stopped in one of four samples, so they would have written more.
  expect(setup.values).not.toHaveProperty("arrival");
  expect(requestOf(setup, "tiering").runs).toEqual([[10]]);
});

test("a job does not outlive its process, although the next one counts anew", () => {
  const store = new LiveStore();
  const job = { id: 5, keyspace: "default", job: "compaction", state: "running", what: "", why: "", total_bytes: 100, remaining_bytes: 40, share: 1, running_micros: 0 };
  const running = (at: number) => sample(at, { jobs: [job] } as unknown as Partial<Sample>);
  const connected = (at: number) => ({ item: "connected", at_micros: 1e15 + at * 1e6, database: "db", process: null, options: null }) as Line;
  for (const line of [connected(0), tables(1, true, [], [[1, 1, 0]]), running(1), connected(2), tables(3, true, [], [[1, 1, 0]]), running(3)]) store.add(line);
  const { jobs } = store.tree("default").trace;
  expect(jobs.map(({ began, ended }) => [began, ended])).toEqual([[1, 2], [3, Infinity]]);
});

test("an idle tree that is shown for days takes the memory of an hour", () => {
  const store = new LiveStore();
  store.add(tables(0, true, [], [[1, 1, 0]]));
  for (let at = 1; at <= 20_000; at += 1) store.add(sample(at));
  expect(store.samples.length).toBeLessThan(3700);
  const kept = store.tree("default").moments;
  expect(kept.length).toBeGreaterThan(3600);
  expect(kept.length).toBeLessThan(3800);
  expect(kept.at(-1)?.at).toBe(20_000);
});

test("what if takes the budget and the size of what is written now", () => {
  const store = new LiveStore();
  store.add({ item: "connected", at_micros: 1e15, database: "db", process: null, options: { durability: "process", io_budget: "8000000", memory_budget: 1 } });
  // The tables have 100 bytes an entry.
  store.add(tables(1, true, [], [[1, 1, 0]]));
  store.add(sample(1, { per_second: { writes: 1000, deletes: 0, gets: 0, scans: 0, scan_entries: 0, written_bytes: 450_000 } }));
  const question = whatIf(store, store.tree("default"));
  expect(fromHash(question?.hash ?? "").setup.values).toMatchObject({ budget: "8000000B/s", "record-size": "450" });
  expect(question?.assumes).toContain("records of 450 bytes; an I/O budget of 8000000B/s");
});

test("a recording is kept whole", () => {
  const store = new LiveStore(true);
  store.add(tables(0, true, [], [[1, 1, 0]]));
  for (let at = 1; at <= 20_000; at += 1) store.add(sample(at));
  expect([store.samples.length, store.begin, store.tree("default").moments.length]).toEqual([20_000, 1, 20_000]);
});

const EVENT = { event: "flushed", details: { keyspace: "default" } };

function event(at: number, number: number): Line {
  return { item: "event", number, at_micros: 1e15 + at * 1e6, text: `event ${number}`, ...EVENT } as Line;
}

function connectedTo(at: number, pid: number): Line {
  return { item: "connected", at_micros: 1e15 + at * 1e6, database: "db", process: { pid, program: "p", version: "1" }, options: null };
}

test("a connection to the same process repeats no event and ends no job", () => {
  const store = new LiveStore();
  const job = { id: 5, keyspace: "default", job: "compaction", state: "running", what: "", why: "", total_bytes: 100, remaining_bytes: 40, share: 1, running_micros: 0 };
  const running = (at: number) => sample(at, { jobs: [job] } as unknown as Partial<Sample>);
  const lines = [connectedTo(0, 7), tables(1, true, [], [[1, 1, 0]]), running(1), event(1, 1), event(1, 2), connectedTo(2, 7), event(1, 1), event(1, 2), event(2, 6), running(3)];
  for (const line of lines) store.add(line);
  const { jobs } = store.tree("default").trace;
  expect(jobs.map(({ began, ended }) => [began, ended])).toEqual([[1, Infinity]]);
  const texts = store.entries.map(({ text }) => text);
  expect(texts.filter((text) => text.startsWith("event"))).toEqual(["event 1", "event 2", "event 6"]);
  expect(texts.some((text) => text.startsWith("3 events are missing"))).toBe(true);
  // Another process counts anew.
  store.add(connectedTo(4, 8));
  store.add(event(4, 1));
  expect(store.entries.at(-1)?.text).toBe("event 1");
});

test("the inputs of a job may be known later than the job", () => {
  const store = new LiveStore();
  const job = { id: 5, keyspace: "default", job: "compaction", state: "running", what: "", why: "", total_bytes: 100, remaining_bytes: 40, share: 1, running_micros: 0 };
  store.add(tables(1, true, [], [[1, 1, 1], [2, 2, 1]]));
  store.add(sample(1, { jobs: [job] } as unknown as Partial<Sample>));
  store.add(tables(2, false, [], [], [{ id: 5, inputs: [1, 2], output_level: 2 }]));
  const [known] = store.tree("default").trace.jobs;
  expect([known?.inputs, known?.from, known?.into]).toEqual([[1, 2], 1, 2]);
});

test("a wall clock that is set back does not stop the picture, and gaps are known", () => {
  const store = new LiveStore();
  const interval = { interval_micros: 1e6 };
  for (const at of [0, 1, 2, 300, 301, 100, 102]) store.add(sample(at, interval));
  expect(store.times).toEqual([0, 1, 2, 300, 301, 301, 301]);
  expect(store.times.map((_, place) => store.isAfterGap(place))).toEqual([false, false, false, true, false, false, false]);
});

test("a line without its parts is no line", () => {
  expect(() => lineOf(JSON.stringify({ item: "sample", at_micros: 1, jobs: [] }))).toThrow("no sample");
  expect(() => lineOf(JSON.stringify({ item: "tables", at_micros: 1 }))).toThrow("no tables");
  expect(lineOf(JSON.stringify({ item: "of a later version", at_micros: 1 }))).toBeUndefined();
});

test("the places of keys are computed when they are drawn, not at each change", () => {
  const store = new LiveStore();
  const count = 20_000;
  const added = (table: number) => ({ table, run: table, level: 0, start: `k${String(table).padStart(8, "0")}`, end: `k${String(table + 1).padStart(8, "0")}`, bytes: 1000, entries: 1, tombstones: 0 });
  const line = (from: number, to: number) => ({ item: "tables", at_micros: 1e15, is_whole: from === 0, trees: [{ keyspace: "default", removed: [], added: Array.from({ length: to - from }, (_, place) => added(from + place)) }], jobs: [] }) as unknown as Line;
  store.add(line(0, count));
  const begun = performance.now();
  for (let table = count; table < count + 1000; table += 1) store.add(line(table, table + 1));
  // Each took 60 ms when every table beyond the last key made the scale anew.
  expect(performance.now() - begun).toBeLessThan(5000);
  const last = store.tree("default").present.get(count + 999);
  expect(last?.end).toBe(1);
  expect(last?.start).toBeGreaterThan(0.99);
});

test("a clock plays from the first known time", () => {
  const clock = new Clock();
  clock.setBounds(100, 200);
  clock.seek(200);
  globalThis.requestAnimationFrame = () => 1;
  globalThis.cancelAnimationFrame = () => undefined;
  clock.play();
  expect(clock.at).toBe(100);
  clock.pause();
});

test("runs to start from are read and checked", () => {
  const field = DATA.find(({ key }) => key === "runs");
  if (!field) throw new Error("no field");
  expect([fault(field, ""), fault(field, "900,9e2;-;5M")]).toEqual([undefined, undefined]);
  expect(fault(field, "900,many")).toContain("no list of entries");
  expect(fault(field, "0")).toContain("no list of entries");
  expect(requestOf({ designs: ["tiering"], values: { runs: "900,9e2;-;5M" } }, "tiering").runs).toEqual([[900, 900], [], [5e6]]);
  expect(requestOf({ designs: ["tiering"], values: {} }, "tiering").runs).toBeNull();
});

test("constants of a machine are read, and other files are not", () => {
  const file = "# what\ndevice_mb_per_second = 900.5\nrequest_micros = 80.0\nrequest_kib = 128.0\nconcurrency = 4\nwrite_micros = 1.2\n" +
    "flush_micros_per_entry = 0.4\nmerge_micros_per_entry = 0.5\nmemtable_bytes_per_entry = 30.0\ntable_bytes_per_entry = 6.5\ntable_bytes_per_tombstone = -2.0\n";
  let setup: Setup = { designs: ["tiering"], values: {} };
  for (const [key, text] of constantsOf(file)) setup = withValue(setup, key, text);
  expect(requestOf(setup, "tiering").machine).toMatchObject({
    device_bytes_per_second: 900.5e6, request_bytes: 131_072, concurrency: 4, memtable_entry_bytes: 30, table_entry_bytes: 6.5, table_tombstone_bytes: -2,
  });
  expect(requestOf(setup, "tiering").machine.write_seconds).toBeCloseTo(1.2e-6, 12);
  expect(fromHash(toHash(setup)).setup).toEqual(setup);
  expect(() => constantsOf("speed = 3")).toThrow("'speed = 3' is no constant");
  expect(() => constantsOf("write_micros = 1.0")).toThrow("the file has no device_mb_per_second");
});
