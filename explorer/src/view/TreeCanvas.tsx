import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Player } from "../model/player";
import type { Table } from "../model/trace";
import { bytes } from "../model/words";
import type { Clock } from "../state/clock";
import { TreePicture } from "./tree_picture";

interface Props {
  player: Player | undefined;
  /** The bytes that each level may have; absent until they are known. */
  capacities: (number | null)[] | undefined;
  clock: Clock;
  /** The key that is followed. */
  keyAt: number | null;
  onKey?(key: number | null): void;
  /** What the picture shows, in words. */
  label: string;
  /** What a table is, in words. */
  about(table: Table): string;
  children?: ComponentChildren;
}

/** The picture of a tree at the time of the clock. */
export function TreeCanvas({ player, capacities, clock, keyAt, onKey, label, about, children }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef(new TreePicture());
  const limits = useRef(capacities);
  limits.current = capacities;
  const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
  // Where the pointer rests, and the version of the tree that its tip describes.
  const pointer = useRef<{ x: number; y: number; version: number } | null>(null);
  const isKnown = capacities !== undefined;

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || !player || !isKnown) return undefined;
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
      picture.current.draw(context, [width, height], player, limits.current ?? [], keyAt);
      // Tables come and go under a pointer that rests.
      if (pointer.current && pointer.current.version !== player.version) show(pointer.current.x, pointer.current.y);
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
  }, [player, isKnown, clock, keyAt]);

  const show = (x: number, y: number) => {
    pointer.current = { x, y, version: player?.version ?? 0 };
    const table = picture.current.at(x, y);
    setTip(table ? { x, y, text: about(table) } : null);
  };
  const leave = () => {
    pointer.current = null;
    setTip(null);
  };
  return (
    <div class="canvas">
      <canvas
        ref={canvas}
        role="img"
        aria-label={label}
        onPointerMove={(event) => show(event.offsetX, event.offsetY)}
        onPointerLeave={leave}
        onClick={(event) => onKey?.(TreePicture.keyAt(event.offsetX, event.currentTarget.clientWidth))}
      />
      {tip && <div class="tip" style={{ left: `${tip.x + 12}px`, top: `${tip.y + 12}px` }}>{tip.text}</div>}
      {children}
    </div>
  );
}

const words = new WeakMap<Player, { version: number; levels: string }>();

/** Returns the tree in words. */
export function summary(player: Player): string {
  const known = words.get(player);
  if (known?.version === player.version) return `${known.levels} ${player.running.size} jobs are running.`;
  const levels = player.levels().map((runs, level) => {
    let size = 0;
    for (const run of runs.values()) for (const table of run) size += table.bytes;
    return `level ${level}: ${runs.size} runs, ${bytes(size)}`;
  });
  const text = `Tree. ${levels.join("; ") || "no tables"}.`;
  words.set(player, { version: player.version, levels: text });
  return `${text} ${player.running.size} jobs are running.`;
}
