import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "../engine/client";
import type { Catalogue, Point } from "../engine/requests";
import { front } from "../model/pareto";
import { count, plain, quantity } from "../model/words";
import { DESIGNS_MAX, valueOf, type Setup } from "../state/setup";
import { colour, seriesColour, shortName } from "./series";

const COSTS = {
  missing: "blocks that a lookup of a missing key reads",
  found: "blocks that a lookup of an existing key reads",
  runs: "runs that a scan reads",
  space: "space amplification, at most",
} as const;
type Cost = keyof typeof COSTS;

const [LEFT, RIGHT, TOP, BOTTOM] = [56, 16, 10, 34];

interface Shown {
  point: Point;
  x: number;
  y: number;
}

/** Thousands of designs as points: what writes cost against what reads or space cost. */
export function Space({ setup, catalogue, onAdd }: { setup: Setup; catalogue: Catalogue; onAdd(text: string): void }) {
  const [cost, setCost] = useState<Cost>("missing");
  const [points, setPoints] = useState<Point[]>([]);
  const [error, setError] = useState("");
  const [chosen, setChosen] = useState<Point | null>(null);
  const records = quantity(valueOf(setup, "records")) ?? 1e7;
  const recordBytes = quantity(valueOf(setup, "record-size")) ?? 1024;
  useEffect(() => {
    let current = true;
    const marked = [...setup.designs, ...catalogue.designs.map((design) => design.name)];
    ask<"points">({ call: "points", records, record_bytes: recordBytes, buffer: "64MiB", marked }).then(
      (answer) => { if (current) { setPoints(answer); setChosen(null); setError(""); } },
      (reason: Error) => { if (current) setError(reason.message); },
    );
    return () => { current = false; };
  }, [records, recordBytes, setup.designs.join("\n")]);
  const best = useMemo(() => front(points.map((point) => ({ x: point.write, y: point[cost] }))), [points, cost]);
  return (
    <section aria-labelledby="space-title">
      <h2 id="space-title">The design space</h2>
      <p class="muted">
        {count(points.length)} designs for {count(records)} records by the formulas of docs/cost.md: layouts, size ratios,
        filters and memtables, with the named designs. Lower and further left is cheaper; the line is the Pareto front.
      </p>
      <label>
        Against the bytes written for each byte of the user:{" "}
        <select value={cost} onChange={(event) => setCost(event.currentTarget.value as Cost)}>
          {Object.entries(COSTS).map(([key, name]) => <option key={key} value={key}>{name}</option>)}
        </select>
      </label>
      {error && <p class="error" role="alert">{error}</p>}
      <Scatter points={points} best={best} cost={cost} designs={setup.designs} chosen={chosen} onChoose={setChosen} />
      {chosen && (
        <p class="chosen">
          <code>{chosen.name ?? chosen.text}</code>: {plain(chosen.write)} bytes written, {plain(chosen.missing)} and{" "}
          {plain(chosen.found)} blocks for missing and existing keys, {plain(chosen.runs)} runs, space {plain(chosen.space)}x.{" "}
          <button type="button" disabled={setup.designs.length >= DESIGNS_MAX} onClick={() => onAdd(chosen.name ?? chosen.text)}>
            Compare it
          </button>
        </p>
      )}
      <details>
        <summary>Pareto front</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label="Pareto front">
          <table>
            <thead><tr><th scope="col">design</th><th scope="col">bytes written</th><th scope="col">{COSTS[cost]}</th><th scope="col">compare</th></tr></thead>
            <tbody>
              {best.map((number) => {
                const point = points[number];
                return point && (
                  <tr key={number}><th scope="row"><code>{point.name ?? point.text}</code></th><td>{plain(point.write)}</td><td>{plain(point[cost])}</td>
                    <td><button type="button" disabled={setup.designs.length >= DESIGNS_MAX} aria-label={`Compare ${point.name ?? point.text}`}
                      onClick={() => onAdd(point.name ?? point.text)}>Compare</button></td></tr>
                );
              })}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

function Scatter({ points, best, cost, designs, chosen, onChoose }: {
  points: Point[]; best: number[]; cost: Cost; designs: string[]; chosen: Point | null; onChoose(point: Point): void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = useRef<Shown[]>([]);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || points.length === 0) return undefined;
    const draw = () => {
      const [width, height] = [element.clientWidth, element.clientHeight];
      const scale = window.devicePixelRatio || 1;
      element.width = Math.round(width * scale);
      element.height = Math.round(height * scale);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      shown.current = drawPoints(context, [width, height], points, best, cost, designs, chosen);
    };
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => { observer.disconnect(); dark.removeEventListener("change", draw); };
  }, [points, best, cost, designs.join("\n"), chosen]);
  const choose = (event: MouseEvent) => {
    const distance = (one: Shown) => (one.x - event.offsetX) ** 2 + (one.y - event.offsetY) ** 2;
    const near = shown.current.filter((one) => distance(one) < 144);
    // A named design is preferred to what lies on it.
    near.sort((a, b) => Number(b.point.name !== null) - Number(a.point.name !== null) || distance(a) - distance(b));
    if (near[0]) onChoose(near[0].point);
  };
  return (
    <canvas ref={canvas} class="scatter" role="img" onClick={choose}
      aria-label={`${points.length} designs; the table below lists the ${best.length} of the Pareto front`} />
  );
}

function drawPoints(
  context: CanvasRenderingContext2D, [width, height]: [number, number], points: Point[], best: number[],
  cost: Cost, designs: string[], chosen: Point | null,
): Shown[] {
  const values = points.map((point) => Math.max(point[cost], 1e-4));
  const [lowX, highX] = range(points.map((point) => point.write));
  const [lowY, highY] = range(values);
  const log = (value: number, low: number, high: number) => Math.log(value / low) / Math.log(high / low);
  const toX = (value: number) => LEFT + log(value, lowX, highX) * (width - LEFT - RIGHT);
  const toY = (value: number) => height - BOTTOM - log(value, lowY, highY) * (height - TOP - BOTTOM);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  grid(context, [width, height], [lowX, highX], [lowY, highY], toX, toY);
  const all = points.map((point, number): Shown => ({ point, x: toX(point.write), y: toY(values[number] ?? 1) }));
  context.fillStyle = colour("point");
  for (const { point, x, y } of all) if (point.name === null) context.fillRect(x - 1.25, y - 1.25, 2.5, 2.5);
  context.strokeStyle = colour("output");
  context.lineWidth = 1.5;
  context.beginPath();
  for (const number of best) {
    const one = all[number];
    if (one) context.lineTo(one.x, one.y);
  }
  context.stroke();
  const labels: { x: number; y: number }[] = [];
  // The compared designs come first, so that their labels have room.
  const named = all.filter(({ point }) => point.name !== null);
  named.sort((a, b) => Number(designs.includes(b.point.name ?? "")) - Number(designs.includes(a.point.name ?? "")));
  for (const { point, x, y } of named) {
    const at = designs.indexOf(point.name ?? "");
    context.fillStyle = at >= 0 ? seriesColour(at) : colour("named");
    context.beginPath();
    context.arc(x, y, at >= 0 ? 6 : 3, 0, 7);
    context.fill();
    if (labels.some((label) => Math.abs(label.x - x) < 90 && Math.abs(label.y - y) < 12)) continue;
    labels.push({ x, y });
    context.fillStyle = colour("text");
    context.fillText(shortName(point.name ?? "", 22), x + 8, y + 3);
  }
  const ring = all.find(({ point }) => point === chosen);
  if (ring) {
    context.strokeStyle = colour("text");
    context.beginPath();
    context.arc(ring.x, ring.y, 9, 0, 7);
    context.stroke();
  }
  return all;
}

function range(values: number[]): [number, number] {
  const positive = values.filter((value) => value > 0);
  const low = positive.reduce((least, value) => Math.min(least, value), Infinity);
  const high = positive.reduce((most, value) => Math.max(most, value), 0);
  return [low * 0.9, Math.max(high * 1.1, low * 1.5)];
}

function grid(
  context: CanvasRenderingContext2D, [width, height]: [number, number], [lowX, highX]: [number, number],
  [lowY, highY]: [number, number], toX: (value: number) => number, toY: (value: number) => number,
): void {
  const steps = [1, 2, 5].flatMap((digit) => [-4, -3, -2, -1, 0, 1, 2, 3].map((power) => digit * 10 ** power));
  context.lineWidth = 1;
  context.strokeStyle = colour("line");
  context.fillStyle = colour("muted");
  context.textAlign = "center";
  for (const step of steps.filter((value) => value >= lowX && value <= highX)) {
    context.beginPath();
    context.moveTo(toX(step), TOP);
    context.lineTo(toX(step), height - BOTTOM);
    context.stroke();
    context.fillText(plain(step), toX(step), height - BOTTOM + 14);
  }
  context.fillText("bytes written for each byte of the user", (width + LEFT) / 2, height - 4);
  context.textAlign = "right";
  for (const step of steps.filter((value) => value >= lowY && value <= highY)) {
    context.beginPath();
    context.moveTo(LEFT, toY(step));
    context.lineTo(width - RIGHT, toY(step));
    context.stroke();
    context.fillText(plain(step), LEFT - 6, toY(step) + 4);
  }
  context.textAlign = "left";
}
