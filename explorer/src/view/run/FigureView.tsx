import uPlot from "uplot";
import { useMemo } from "preact/hooks";
import { count, plain } from "../../model/words";
import { columnsOf, csvOf, type Curve, type Figure } from "../../run/run";
import { Clock } from "../../state/clock";
import { usePlot } from "../plot";
import { colour } from "../series";

const HEIGHT = 300;
const STRIP = 14;
const ROWS_MAX = 500;

/** Colours of curves; those of the other run begin again. */
const COLOURS = ["series-a", "series-b", "series-c", "series-d", "key", "muted"];

/** Nothing plays here. */
const STILL = new Clock();

/** A value as people read it. */
function shown(value: number | null): string {
  return value !== null && value >= 10_000 ? count(value) : plain(value);
}

/** A figure of a run, with that of the other one. */
export function FigureView({ figure, other }: { figure: Figure; other: Figure | undefined }) {
  const aligned = useMemo(() => {
    // Names of positions are matched, since runs may have different ones.
    const names = [...figure.x_names, ...(other?.x_names ?? []).filter((name) => !figure.x_names.includes(name))];
    const moved = (curve: Curve): Curve => ({
      ...curve, name: `2: ${curve.name}`, is_dashed: true,
      points: curve.points.map(([x, y]) => [names.length > 0 ? names.indexOf(other?.x_names[x] ?? "") : x, y]),
    });
    const curves = [...figure.curves, ...(other?.curves ?? []).map(moved)];
    return { figure: { ...figure, x_names: names }, columns: columnsOf(curves) };
  }, [figure, other]);
  const { columns } = aligned;
  const own = figure.curves.length;
  const named = aligned.figure.x_names;
  // A long label does not fit beside the axis.
  const isLong = figure.y_label.length > 44;
  const x = (value: number) => (named.length > 0 ? (named[value] ?? "") : plain(value));
  const place = usePlot((width) => {
    const data = [columns.x, ...columns.curves.map((curve) => curve.values.map((value) => (figure.is_y_logarithmic && (value ?? 0) <= 0 ? null : value)))];
    const isFew = columns.x.length <= 40;
    const series: uPlot.Series[] = columns.curves.map((curve, number) => ({
      label: curve.name, stroke: () => colour(COLOURS[(number < own ? number : number - own) % COLOURS.length] ?? "text"), width: figure.has_lines ? 1.5 : 0,
      ...(curve.is_dashed ? { dash: [5, 4] } : {}), spanGaps: true, points: { show: isFew, size: figure.has_lines ? 5 : 8, width: 1.5 },
      value: (_, value) => shown(value),
    }));
    const both = { stroke: () => colour("muted"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const ranges = figure.curves.flatMap((curve) => curve.ranges);
    const highest = Math.max(0, ...ranges.map(([, high]) => high));
    const lowest = Math.min(...ranges.map(([low]) => low).filter((low) => low > 0));
    const options: uPlot.Options = {
      width, height: HEIGHT + figure.strips.length * STRIP,
      series: [{ label: figure.x_label, value: (_, value) => (value === null ? "" : x(value)) }, ...series],
      axes: [
        { ...both, label: figure.x_label, labelSize: 20, size: 30 + figure.strips.length * STRIP, gap: 5 + figure.strips.length * STRIP, ...(named.length > 0 ? { splits: () => named.map((_, at) => at) } : {}), values: (_, values) => values.map((value) => (value === null ? "" : x(value))) },
        { ...both, ...(isLong ? {} : { label: figure.y_label, labelSize: 18 }), size: 62, values: (_, values) => values.map((value) => (value === null ? "" : shown(value))) },
      ],
      scales: {
        x: { time: false, ...(figure.is_x_logarithmic ? { distr: 3 } : named.length > 0 ? { range: () => [-0.5, named.length - 0.5] } : {}) },
        y: figure.is_y_logarithmic ? { distr: 3, range: (_, least, most) => uPlot.rangeLog(Math.min(least, lowest), Math.max(most, highest), 10, false) } : { range: (_, __, most) => [0, Math.max(most, highest) * 1.05 || 1] },
      },
      plugins: [marks(figure)],
      cursor: { points: { size: 6 } },
    };
    return { options, data: data as uPlot.AlignedData };
  }, STILL, [aligned], undefined, () => HEIGHT + figure.strips.length * STRIP);
  const save = (text: string, type: string, end: string) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = `${figure.name}.${end}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return (
    <figure class="run">
      <figcaption>{figure.title}</figcaption>
      {isLong && <p class="about muted">{figure.y_label}</p>}
      <div ref={place} />
      <div class="buttons">
        <button type="button" onClick={() => save(csvOf(aligned.figure, columns), "text/csv", "csv")} aria-label={`${figure.title} as CSV`}>CSV</button>
        {figure.svg && <button type="button" onClick={() => save(figure.svg, "image/svg+xml", "svg")} aria-label={`${figure.title} of this run as SVG`}>SVG</button>}
      </div>
      <details>
        <summary>Table</summary>
        <div class="scroll rows" tabIndex={0} role="group" aria-label={`${figure.title}, table`}>
          <table>
            <thead><tr><th scope="col">{figure.x_label}</th>{columns.curves.map((curve, number) => <th key={number} scope="col">{curve.name}</th>)}</tr></thead>
            <tbody>
              {columns.x.slice(0, ROWS_MAX).map((position, row) => (
                <tr key={position}><th scope="row">{x(position)}</th>{columns.curves.map((curve, number) => <td key={number}>{shown(curve.values[row] ?? null)}</td>)}</tr>
              ))}
            </tbody>
          </table>
          {columns.x.length > ROWS_MAX && <p class="muted">The first {ROWS_MAX} of {columns.x.length} rows; the CSV has all.</p>}
        </div>
      </details>
    </figure>
  );
}

/** Draws bands behind the curves, ranges of points, and the rows below the axis. */
function marks(figure: Figure): uPlot.Plugin {
  return {
    hooks: {
      drawClear: (plot) => {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.fillStyle = colour("stop");
        ctx.globalAlpha = 0.12;
        for (const [from, to] of figure.bands) {
          const left = Math.max(bbox.left, plot.valToPos(from, "x", true));
          const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, "x", true));
          if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
        }
        ctx.restore();
      },
      draw: (plot) => {
        const { ctx, bbox } = plot;
        const scale = window.devicePixelRatio || 1;
        ctx.save();
        for (const [number, curve] of figure.curves.entries()) {
          ctx.strokeStyle = colour(COLOURS[number % COLOURS.length] ?? "text");
          for (const [place, [low, high]] of curve.ranges.entries()) {
            const x = plot.valToPos(curve.points[place]?.[0] ?? 0, "x", true);
            ctx.beginPath();
            ctx.moveTo(x, plot.valToPos(low, "y", true));
            ctx.lineTo(x, plot.valToPos(high, "y", true));
            ctx.stroke();
          }
        }
        ctx.font = `${10 * scale}px system-ui`;
        ctx.textAlign = "right";
        ctx.textBaseline = "middle";
        for (const [row, strip] of figure.strips.entries()) {
          const y = bbox.top + bbox.height + (4 + row * STRIP) * scale;
          ctx.globalAlpha = 1;
          ctx.fillStyle = colour("muted");
          ctx.fillText(strip.name, bbox.left - 4 * scale, y + (STRIP / 2 - 1) * scale, bbox.left - 6 * scale);
          ctx.fillStyle = colour("series-a");
          for (const [from, to, strength] of strip.spans) {
            const left = Math.max(bbox.left, plot.valToPos(from, "x", true));
            const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, "x", true));
            ctx.globalAlpha = 0.15 + 0.85 * strength;
            if (right > left) ctx.fillRect(left, y, Math.max(scale, right - left), (STRIP - 3) * scale);
          }
        }
        ctx.restore();
      },
    },
  };
}
