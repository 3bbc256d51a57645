import { useEffect, useRef, useState } from "preact/hooks";
import type { Clock } from "../state/clock";
import { useClock } from "../state/hooks";
import type { Run } from "../state/run";
import { bytes, count, seconds } from "../model/words";
import { Jobs } from "./Jobs";
import { TreePicture } from "./tree_picture";

interface Props {
  run: Run;
  number: number;
  clock: Clock;
  /** The key whose lookup is followed. */
  keyAt: number | null;
  onKey(key: number | null): void;
}

/** A tree at the time of the clock. */
export function TreeView({ run, number, clock, keyAt, onKey }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef(new TreePicture());
  const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
  const { player, described } = run;
  useClock(clock);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || !player || !described) return undefined;
    picture.current = new TreePicture();
    const draw = () => {
      const [width, height] = [element.clientWidth, element.clientHeight];
      const scale = window.devicePixelRatio || 1;
      if (element.width !== Math.round(width * scale) || element.height !== Math.round(height * scale)) {
        element.width = Math.round(width * scale);
        element.height = Math.round(height * scale);
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      player.seek(clock.at);
      picture.current.draw(context, [width, height], player, described.capacities, keyAt);
    };
    draw();
    const end = clock.listen(draw);
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      end();
      observer.disconnect();
      dark.removeEventListener("change", draw);
    };
  }, [player, described, clock, keyAt]);

  if (run.error && !run.stale) {
    return (
      <article class={`tree series-${number}`}>
        <h3>{run.text}</h3>
        <p class="error" role="alert">{run.error}</p>
      </article>
    );
  }
  const move = (event: PointerEvent) => {
    const box = picture.current.at(event.offsetX, event.offsetY);
    if (!box) return setTip(null);
    const { table } = box;
    const part = (share: number) => `${(share * 100).toFixed(1)} %`;
    const text = `table ${table.id} of run ${table.run}: ${bytes(table.bytes)}, ${count(table.entries)} entries, ` +
      `keys from ${part(table.start)} to ${part(table.end)}`;
    return setTip({ x: event.offsetX, y: event.offsetY, text });
  };
  return (
    <article class={`tree series-${number}`}>
      <h3>{described?.text ?? run.text}</h3>
      <Status run={run} />
      <div class="canvas">
        <canvas
          ref={canvas}
          role="img"
          aria-label={player ? summary(run) : "the tree is being computed"}
          onPointerMove={move}
          onPointerLeave={() => setTip(null)}
          onClick={(event) => onKey(TreePicture.keyAt(event.offsetX, event.currentTarget.clientWidth))}
        />
        {tip && <div class="tip" style={{ left: `${tip.x + 12}px`, top: `${tip.y + 12}px` }}>{tip.text}</div>}
        {run.stale && <p class="waiting" role="status">simulating …</p>}
      </div>
      <Jobs run={run} />
    </article>
  );
}

/** Returns the tree in words. */
function summary({ player }: Run): string {
  if (!player) return "";
  const levels = player.levels().map((runs, level) => {
    let size = 0;
    for (const run of runs.values()) for (const table of run) size += table.bytes;
    return `level ${level}: ${runs.size} runs, ${bytes(size)}`;
  });
  return `Tree. ${levels.join("; ") || "no tables"}. ${player.running.size} jobs are running.`;
}

/** What writers may do. */
function Status({ run }: { run: Run }) {
  const { player, played } = run;
  if (!player || !played) return <p class="status">&nbsp;</p>;
  const window = played.windows;
  const found = window.at.findIndex((end) => end > player.at);
  const rate = window.rate[found < 0 ? window.rate.length - 1 : found] ?? 0;
  if (played.results.stuck && player.at >= played.seconds) return <p class="status stop">The simulation ends here: {played.results.stuck}.</p>;
  if (player.at > player.trace.known) return <p class="status stop">The trace ends here: it is full.</p>;
  if (player.block) {
    const since = seconds(player.at - player.block.since);
    return <p class="status stop">Writers are stopped: {player.block.cause}, {player.block.measured}, for {since}.</p>;
  }
  if (player.admission.how === "delay") {
    return <p class="status delay">Writers are delayed: {player.admission.cause}, {player.admission.measured} of {player.admission.limit}.</p>;
  }
  return <p class="status">Writers proceed at {count(rate)}/s.</p>;
}
