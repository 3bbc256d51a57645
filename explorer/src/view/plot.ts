// What all charts over time have in common.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Clock } from "../state/clock";
import { clock as clockText } from "../model/words";
import { colour } from "./series";

/** Draws the time of the clock, and sets it to a time that is clicked. */
export function cursor(clock: Clock): uPlot.Plugin {
  return {
    hooks: {
      init: (plot) => plot.over.addEventListener("click", () => {
        const { left } = plot.cursor;
        if (left !== undefined && left >= 0) clock.pick(plot.posToVal(left, "x"));
      }),
      draw: (plot) => {
        const x = plot.valToPos(clock.at, "x", true);
        plot.ctx.save();
        plot.ctx.strokeStyle = colour("text");
        plot.ctx.globalAlpha = 0.5;
        plot.ctx.beginPath();
        plot.ctx.moveTo(x, plot.bbox.top);
        plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
        plot.ctx.stroke();
        plot.ctx.restore();
      },
    },
  };
}

/** The height of a chart. */
export const HEIGHT = 170;

/** Distances of the labels of the clock, in seconds. */
const STEPS = [1, 5, 10, 30, 60, 300, 600, 1200, 1800, 3600, 7200, 14_400, 43_200, 86_400, 864_000];

export function axes(format: (value: number) => string, time: (value: number) => string = clockText): uPlot.Axis[] {
  const both = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return [
    { ...both, values: (_, values) => values.map(time), incrs: STEPS, space: 70, size: 26 },
    { ...both, values: (_, values) => values.map((value) => (value === null ? "" : format(value))), size: 66 },
  ];
}

/** Draws a chart, again when the dependencies or the colours change. */
export function usePlot(
  make: (width: number) => { options: uPlot.Options; data: uPlot.AlignedData } | null,
  clock: Clock,
  dependencies: unknown[],
  /** Returns data that has changed since the last call; null if none has. */
  fresh: () => uPlot.AlignedData | null = () => null,
  height: () => number = () => HEIGHT,
) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    let plot: uPlot | undefined;
    const build = () => {
      plot?.destroy();
      const made = make(element.clientWidth);
      plot = made ? new uPlot(made.options, made.data, element) : undefined;
    };
    build();
    let last = 0;
    const end = clock.listen(() => {
      const data = fresh();
      if (data) return plot?.setData(data);
      // The line of the clock needs no more than ten pictures a second.
      const now = performance.now();
      if (now - last < 100 && clock.playing) return;
      last = now;
      plot?.redraw(false, false);
    });
    const observer = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: height() }));
    observer.observe(element);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", build);
    return () => {
      end();
      observer.disconnect();
      dark.removeEventListener("change", build);
      plot?.destroy();
    };
  }, dependencies);
  return place;
}
