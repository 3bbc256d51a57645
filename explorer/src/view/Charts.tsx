import type uPlot from "uplot";
import type { Windows } from "../engine/requests";
import type { Clock } from "../state/clock";
import type { Run } from "../state/run";
import { bytes, clock as clockText, count, factor, plain, seconds } from "../model/words";
import { axes, cursor, usePlot } from "./plot";
import { SERIES, colour, seriesColour, shortNames } from "./series";

interface Line {
  /** What the line shows, if a chart shows more than one quantity. */
  name?: string;
  dash?: number[];
  of(windows: Windows): (number | null)[];
}

interface Chart {
  title: string;
  lines: Line[];
  format(value: number): string;
  logarithmic?: boolean;
}

const CHARTS: Chart[] = [
  {
    title: "Writes a second", format: (value) => `${count(value)}/s`,
    lines: [{ name: "served", of: (w) => w.rate }, { name: "offered", dash: [3, 3], of: (w) => w.offered }],
  },
  {
    title: "Latency of writes", format: seconds, logarithmic: true,
    lines: [{ name: "99 %", of: (w) => w.p99 }, { name: "longest", dash: [3, 3], of: (w) => w.longest }],
  },
  { title: "Writers stopped", format: (value) => `${plain(value * 100)} %`, lines: [{ of: (w) => w.stalled }] },
  { title: "Sorted runs", format: plain, lines: [{ of: (w) => w.runs }] },
  { title: "Bytes written by flushes and merges", format: (value) => `${bytes(value)}/s`, lines: [{ of: (w) => w.written }] },
  { title: "Write amplification since the start", format: factor, lines: [{ of: (w) => w.write_amplification }] },
  { title: "Space amplification", format: factor, lines: [{ of: (w) => w.space_amplification }] },
  {
    title: "Blocks that a lookup reads", format: plain,
    lines: [{ name: "existing", of: (w) => w.found }, { name: "missing", dash: [3, 3], of: (w) => w.missing }],
  },
];

/** All charts, on the clock of the trees. */
export function Charts({ runs, clock }: { runs: Run[]; clock: Clock }) {
  // Old runs may have another duration than new ones.
  const isNew = runs.some((run) => run.played && !run.stale);
  const shown = runs.map((run) => (isNew && run.stale ? { text: run.text, stale: true } : run));
  if (shown.every((run) => !run.played)) return null;
  const names = shortNames(runs.map((run) => run.text), 60);
  return (
    <section aria-labelledby="charts-title">
      <h2 id="charts-title">Over time</h2>
      <Legend runs={runs} />
      <div class="charts">
        {CHARTS.map((chart) => <ChartView key={chart.title} chart={chart} runs={shown} clock={clock} />)}
        {shown.map((run, number) => run.played && <LevelsView key={`levels${number}`} run={run} name={names[number] ?? run.text} clock={clock} />)}
      </div>
    </section>
  );
}

function Legend({ runs }: { runs: Run[] }) {
  if (runs.length < 2) return null;
  const names = shortNames(runs.map((run) => run.text), 60);
  return (
    <ul class="legend">
      {names.map((name, number) => (
        <li key={number}><span class={`swatch series-${SERIES[number]}`} />{SERIES[number]?.toUpperCase()}: {name.replace(/^[A-D]: /, "")}</li>
      ))}
    </ul>
  );
}

function ChartView({ chart, runs, clock }: { chart: Chart; runs: Run[]; clock: Clock }) {
  const place = usePlot((width) => {
    const longest = runs.reduce<number[]>((most, run) => {
      const at = run.played?.windows.at ?? [];
      return at.length > most.length ? at : most;
    }, []);
    const series: uPlot.Series[] = [{ label: "time", value: (_, value) => (value === null ? "" : clockText(value)) }];
    const data: (number | null)[][] = [longest];
    for (const [number, run] of runs.entries()) {
      if (!run.played) continue;
      for (const line of chart.lines) {
        const column = line.of(run.played.windows);
        if (column.every((value) => value === null)) continue;
        const value = chart.logarithmic ? column.map((one) => (one === null || one <= 0 ? null : one)) : column;
        const name = runs.length > 1 ? `${SERIES[number]?.toUpperCase()} ${line.name ?? ""}` : (line.name ?? chart.title);
        series.push({
          label: name, stroke: seriesColour(number), width: 1.5, ...(line.dash ? { dash: line.dash } : {}),
          points: { show: false }, value: (_, shown) => (shown === null ? "-" : chart.format(shown)),
        });
        data.push(value);
      }
    }
    const options: uPlot.Options = {
      width, height: 170, series, axes: axes(chart.format), plugins: [cursor(clock)],
      scales: {
        x: { time: false },
        y: chart.logarithmic ? { distr: 3 } : { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] },
      },
      cursor: { sync: { key: "time" }, points: { size: 5 } },
      legend: { live: true },
    };
    return { options, data: data as uPlot.AlignedData };
  }, clock, [chart, ...runs]);
  return (
    <figure>
      <figcaption>{chart.title}</figcaption>
      <div ref={place} />
    </figure>
  );
}

/** The bytes of each level, stacked. */
function LevelsView({ run, name, clock }: { run: Run; name: string; clock: Clock }) {
  const place = usePlot((width) => {
    const windows = run.played?.windows;
    if (!windows) return null;
    const depth = Math.max(...windows.levels.map((levels) => levels.length), 0);
    // The deepest level is at the bottom of the stack, so the sums begin with it.
    const sums: number[][] = [];
    for (let level = depth - 1; level >= 0; level -= 1) {
      const below = sums.at(-1);
      sums.push(windows.levels.map((levels, at) => (levels[level] ?? 0) + (below?.[at] ?? 0)));
    }
    const series: uPlot.Series[] = [{ label: "time", value: (_, value) => (value === null ? "" : clockText(value)) }];
    const data: number[][] = [windows.at];
    for (let level = 0; level < depth; level += 1) {
      const own = (at: number | null) => (at === null ? 0 : (windows.levels[at]?.[level] ?? 0));
      series.push({
        label: `level ${level}`, stroke: colour("table"), width: 1, points: { show: false },
        fill: colour(`level-${Math.min(level, 6)}`), value: (_, __, ___, at) => bytes(own(at)),
      });
      data.push(sums[depth - 1 - level] ?? []);
    }
    const options: uPlot.Options = {
      width, height: 170, series, axes: axes(bytes), plugins: [cursor(clock)],
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.05] } },
      cursor: { sync: { key: "time" }, points: { show: false } },
    };
    return { options, data: data as uPlot.AlignedData };
  }, clock, [run]);
  return (
    <figure>
      <figcaption>Bytes by level: {name}</figcaption>
      <div ref={place} />
    </figure>
  );
}
