import type uPlot from "uplot";
import { useState } from "preact/hooks";
import type { Sample } from "../../live/messages";
import type { LiveStore } from "../../live/store";
import { bytes, count, factor, plain, seconds } from "../../model/words";
import type { Clock } from "../../state/clock";
import { HEIGHT, axes, cursor, usePlot } from "../plot";
import { colour, seriesColour } from "../series";
import { timeOfDay } from "./LiveClockBar";

interface Line {
  name: string;
  of(sample: Sample): number | null;
}

interface Chart {
  title: string;
  lines: Line[];
  format(value: number): string;
  logarithmic?: boolean;
}

const rate = (value: number) => `${count(value)}/s`;
const bandwidth = (value: number) => `${bytes(value)}/s`;
const percent = (value: number) => `${plain(value * 100)} %`;

function latency(name: string, of: "p50_micros" | "p99_micros" | "max_micros"): Line["of"] {
  return (sample) => {
    const micros = sample.latencies.find((one) => one.name === name)?.[of] ?? 0;
    return micros > 0 ? micros / 1e6 : null;
  };
}

function latencies(title: string, name: string): Chart {
  return {
    title, format: seconds, logarithmic: true,
    lines: [
      { name: "50 %", of: latency(name, "p50_micros") },
      { name: "99 %", of: latency(name, "p99_micros") },
      { name: "longest measured", of: latency(name, "max_micros") },
    ],
  };
}

function charts(keyspace: string): Chart[] {
  return [
    {
      title: "Operations a second", format: rate,
      lines: [
        { name: "writes", of: (one) => one.per_second.writes }, { name: "gets", of: (one) => one.per_second.gets },
        { name: "scans", of: (one) => one.per_second.scans },
      ],
    },
    latencies("Latency of writes", "write"),
    latencies("Latency of gets", "get"),
    { title: "Time that all writers together lost to stalls, a second", format: seconds, lines: [{ name: "lost", of: (one) => one.stalled_share }] },
    {
      title: "Written", format: bandwidth,
      lines: [
        { name: "log", of: (one) => one.io.log_written }, { name: "flushes", of: (one) => one.io.flush_written },
        { name: "compactions", of: (one) => one.io.compaction_written },
      ],
    },
    {
      title: "Read", format: bandwidth,
      lines: [{ name: "lookups and scans", of: (one) => one.io.table_read }, { name: "compactions", of: (one) => one.io.compaction_read }],
    },
    {
      title: "Sorted runs", format: plain,
      lines: [{ name: "runs", of: (one) => one.trees.find((tree) => tree.keyspace === keyspace)?.levels.reduce((sum, level) => sum + level.runs, 0) ?? null }],
    },
    {
      title: "Memory", format: bytes,
      lines: [
        { name: "memtables", of: (one) => one.memory.memtables }, { name: "cache", of: (one) => one.memory.cache },
        { name: "the rest", of: ({ memory }) => memory.pinned + memory.open_tables + memory.jobs },
      ],
    },
    { title: "Blocks found in the cache", format: percent, lines: [{ name: "share", of: (one) => one.cache_hits }] },
    { title: "Write amplification since opening", format: factor, lines: [{ name: "factor", of: (one) => one.write_amplification }] },
  ];
}

const RANGES: [string, number][] = [["the last 5 minutes", 300], ["the last 15 minutes", 900], ["the last 1 hour", 3600]];
const ALL: [string, number] = ["all", Infinity];

/** Charts on the clock of the tree. */
export function LiveCharts({ store, keyspace, clock }: { store: LiveStore; keyspace: string; clock: Clock }) {
  const isRecording = store.kept === Infinity;
  const [range, setRange] = useState(isRecording ? Infinity : 900);
  return (
    <section aria-labelledby="charts-title">
      <h2 id="charts-title">Over time</h2>
      <label class="keyspace">Shown{" "}
        <select value={range} onChange={(event) => setRange(Number(event.currentTarget.value))}>
          {(isRecording ? [...RANGES, ALL] : RANGES).map(([name, size]) => <option key={name} value={size}>{name}</option>)}
        </select>
      </label>
      <div class="charts">
        {charts(keyspace).map((chart) => <ChartView key={chart.title} chart={chart} store={store} keyspace={keyspace} clock={clock} range={range} />)}
        <LevelsChart store={store} keyspace={keyspace} clock={clock} range={range} />
      </div>
    </section>
  );
}

interface Shown {
  store: LiveStore;
  keyspace: string;
  clock: Clock;
  range: number;
}

/** A chart whose data grows. */
function useGrowing(shown: Shown, more: Partial<uPlot.Options> & { series: uPlot.Series[] }, format: (value: number) => string, columns: () => (number | null)[][], key: string) {
  const { store, clock, range, keyspace } = shown;
  const time = (value: number) => timeOfDay(store.wall(value));
  const data = () => [store.times, ...columns()] as unknown as uPlot.AlignedData;
  let last = -1;
  const fresh = () => {
    if (store.end === last) return null;
    last = store.end;
    return data();
  };
  return usePlot((width) => {
    last = store.end;
    const options: uPlot.Options = {
      width, height: HEIGHT, axes: axes(format, time), plugins: [cursor(clock)], cursor: { sync: { key: "live" }, points: { size: 5 } }, legend: { live: true }, ...more,
      series: [{ label: "time", value: (_, value) => (value === null ? "" : time(value)) }, ...more.series],
      scales: { x: { time: false, range: () => [Math.max(store.begin, store.end - range), Math.max(store.end, store.begin + 1)] }, ...more.scales },
    };
    return { options, data: data() };
  }, clock, [store, keyspace, range, key], fresh);
}

/** Returns the values of all samples; none after a gap, so that no line crosses it. */
function valuesOf(store: LiveStore, of: Line["of"]): (number | null)[] {
  return store.samples.map((sample, place) => (store.isAfterGap(place) ? null : of(sample)));
}

function ChartView({ chart, ...shown }: Shown & { chart: Chart }) {
  const series = chart.lines.map((line, number): uPlot.Series => ({
    label: line.name, stroke: () => seriesColour(number), width: 1.5, points: { show: false },
    value: (_, value) => (value === null ? "-" : chart.format(value)),
  }));
  const y: uPlot.Scale = chart.logarithmic ? { distr: 3 } : { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] };
  const place = useGrowing(shown, { series, scales: { y } }, chart.format, () => chart.lines.map((line) => valuesOf(shown.store, line.of)), chart.title);
  return <figure><figcaption>{chart.title}</figcaption><div ref={place} /></figure>;
}

const LEVELS = 7;

/** The bytes of each level, stacked, the deepest at the bottom. */
function LevelsChart(shown: Shown) {
  const levelsOf = (sample: Sample) => sample.trees.find((tree) => tree.keyspace === shown.keyspace)?.levels ?? [];
  const own = (at: number | null, level: number) => (at === null ? 0 : (levelsOf(shown.store.samples[at] as Sample)[level]?.bytes ?? 0));
  const order = Array.from({ length: LEVELS }, (_, place) => place);
  const series = order.map((level): uPlot.Series => ({
    label: `level ${level}`, stroke: () => colour("table"), width: 1, points: { show: false },
    fill: () => colour(`level-${level}`), value: (_, __, ___, at) => bytes(own(at ?? null, level)),
  }));
  // Each line is the sum of its level and the deeper ones.
  const columns = () => order.map((level) => valuesOf(shown.store, (sample) => levelsOf(sample).slice(level).reduce((sum, one) => sum + one.bytes, 0)));
  const place = useGrowing(shown, { series, scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] } } }, bytes, columns, "levels");
  return <figure><figcaption>Bytes by level</figcaption><div ref={place} /></figure>;
}
