// Draws a tree: memtables, then a band for each level, with a lane for each run and a box for each table at the
// place of its keys.
import type { Player } from "../model/player";
import { progress, type Job, type Table } from "../model/trace";
import { bytes } from "../model/words";
import { colour } from "./series";

const GUTTER = 92;
const MEMORY = 46;
const GAP = 10;
const LANE_MAX = 18;
const LANE_MIN = 1.5;
const LABEL = 30;

export interface Palette {
  text: string;
  muted: string;
  line: string;
  band: string;
  table: string;
  input: string;
  paused: string;
  output: string;
  memory: string;
  stop: string;
  key: string;
}

export function palette(): Palette {
  return {
    text: colour("text"),
    muted: colour("muted"),
    line: colour("line"),
    band: colour("band"),
    table: colour("table"),
    input: colour("input"),
    paused: colour("paused"),
    output: colour("output"),
    memory: colour("memory"),
    stop: colour("stop"),
    key: colour("key"),
  };
}

/** A run in the picture. */
interface Lane {
  y: number;
  height: number;
  run: Table[];
}

/** The least width of a table. */
const TABLE_MIN = 0.75;

/** Cells for each pixel. A table that is smaller than a cell is drawn once for all in the cell. */
const CELLS = 2;

/** Tables of one colour, of which only those are drawn that can be seen. */
class Boxes {
  readonly path = new Path2D();
  #drawn: Uint8Array;

  constructor(width: number) {
    this.#drawn = new Uint8Array(Math.ceil(Math.max(0, width) * CELLS) + 2);
  }

  /** Begins another lane. */
  clear(): void {
    this.#drawn.fill(0);
  }

  add(x: number, y: number, width: number, height: number): void {
    if (width <= TABLE_MIN) {
      const cell = Math.max(0, Math.floor((x - GUTTER) * CELLS));
      if (this.#drawn[cell]) return;
      this.#drawn[cell] = 1;
    }
    this.path.rect(x, y, width, height);
  }
}

interface Band {
  level: number;
  y: number;
  height: number;
  lane: number;
}

/** Draws trees; keeps what depends on the tables alone. */
export class TreePicture {
  #lanes: Lane[] = [];
  #width = 0;
  #version = -1;
  #levels: Map<number, Table[]>[] = [];
  #bytes: number[] = [];

  #refresh(player: Player): void {
    if (this.#version === player.version) return;
    this.#version = player.version;
    this.#levels = player.levels();
    this.#bytes = this.#levels.map((runs) => {
      let sum = 0;
      for (const run of runs.values()) for (const table of run) sum += table.bytes;
      return sum;
    });
  }

  draw(
    context: CanvasRenderingContext2D,
    [width, height]: [number, number],
    player: Player,
    capacities: (number | null)[],
    key: number | null,
  ): void {
    this.#refresh(player);
    const colours = palette();
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.#memory(context, width, player, colours);
    let deepest = this.#levels.length - 1;
    for (const job of player.running) deepest = Math.max(deepest, job.into);
    const bands = this.#bands(height, deepest + 1);
    const jobs = new Map<number, Job>();
    for (const job of player.running) for (const input of job.inputs) jobs.set(input, job);
    this.#lanes = [];
    this.#width = width;
    for (const band of bands) this.#level(context, width, band, capacities, jobs, player, colours);
    for (const job of player.running) this.#output(context, width, bands, job, player, colours);
    if (key !== null) {
      context.fillStyle = colours.key;
      context.fillRect(GUTTER + key * (width - GUTTER - 1), MEMORY - 6, 1.5, height - MEMORY + 6);
    }
  }

  #memory(context: CanvasRenderingContext2D, width: number, player: Player, colours: Palette): void {
    context.fillStyle = colours.text;
    context.fillText("memory", 0, 15);
    const box = Math.min(84, (width - GUTTER) / 6);
    const flush = [...player.running].find((job) => job.kind === "flush");
    const done = flush ? progress(flush, player.at).done : 0;
    let x = GUTTER;
    const draw = (filled: number, label: string) => {
      context.fillStyle = colours.band;
      context.fillRect(x, 4, box, 22);
      context.fillStyle = colours.memory;
      context.fillRect(x, 4, box * Math.max(0, Math.min(1, filled)), 22);
      context.strokeStyle = colours.line;
      context.strokeRect(x + 0.5, 4.5, box - 1, 21);
      context.fillStyle = colours.muted;
      context.fillText(label, x, 35);
      x += box + 6;
    };
    const isBlocked = player.block !== null;
    draw(isBlocked ? 1 : player.activeShare(), isBlocked ? "full" : "active");
    for (let number = 0; number < player.immutable && x + box < width; number += 1) {
      const isOldest = number === player.immutable - 1;
      draw(isOldest && flush ? 1 - done : 1, isOldest && flush ? "flushing" : "waiting");
    }
  }

  /** Places the levels. One that is still empty may get the output of a job. */
  #bands(height: number, levels: number): Band[] {
    const lanes = Array.from({ length: levels }, (_, level) => Math.max(1, this.#levels[level]?.size ?? 0));
    const all = lanes.reduce((sum, count) => sum + count, 0);
    const room = height - MEMORY - levels * GAP;
    let lane = Math.min(LANE_MAX, room / Math.max(1, all));
    // Bands are at least as high as their labels.
    const needed = (size: number) => lanes.reduce((sum, count) => sum + Math.max(LABEL, count * size), 0);
    while (lane > LANE_MIN && needed(lane) > room) lane -= 0.5;
    const bands: Band[] = [];
    let y = MEMORY;
    for (const [level, count] of lanes.entries()) {
      const size = Math.max(LABEL, count * Math.max(lane, LANE_MIN));
      bands.push({ level, y, height: size, lane: Math.max(lane, LANE_MIN) });
      y += size + GAP;
    }
    return bands;
  }

  #level(
    context: CanvasRenderingContext2D, width: number, band: Band, capacities: (number | null)[],
    jobs: Map<number, Job>, player: Player, colours: Palette,
  ): void {
    const runs = this.#levels[band.level] ?? new Map<number, Table[]>();
    const size = this.#bytes[band.level] ?? 0;
    context.fillStyle = colours.text;
    context.fillText(`level ${band.level}`, 0, band.y + 8);
    context.fillStyle = colours.muted;
    const plural = runs.size === 1 ? "run" : "runs";
    context.fillText(runs.size === 0 ? "empty" : bytes(size), 0, band.y + 22);
    if (band.height > 42 && runs.size > 1) context.fillText(`${runs.size} ${plural}`, 0, band.y + 36);
    const capacity = capacities[band.level];
    if (capacity) {
      const full = Math.min(1, size / capacity);
      context.fillStyle = colours.band;
      context.fillRect(GUTTER - 10, band.y, 4, band.height);
      context.fillStyle = size > capacity ? colours.stop : colours.table;
      context.fillRect(GUTTER - 10, band.y + band.height * (1 - full), 4, band.height * full);
    }
    context.fillStyle = colours.band;
    context.fillRect(GUTTER, band.y, width - GUTTER, band.height);
    const scale = width - GUTTER;
    const [still, taken, paused] = [new Boxes(scale), new Boxes(scale), new Boxes(scale)];
    // Few runs fill the band.
    const lane = Math.max(band.lane, Math.min(LABEL, band.height / Math.max(1, runs.size)));
    const high = Math.max(1, lane - 1);
    let y = band.y;
    for (const run of runs.values()) {
      const gap = run.length > 1 ? 1 : 0;
      for (const table of run) {
        const wide = Math.max(TABLE_MIN, (table.end - table.start) * scale - gap);
        const job = jobs.get(table.id);
        const boxes = !job ? still : progress(job, player.at).share > 0 ? taken : paused;
        boxes.add(GUTTER + table.start * scale, y, wide, high);
      }
      this.#lanes.push({ y, height: high, run });
      for (const boxes of [still, taken, paused]) boxes.clear();
      y += lane;
    }
    for (const [boxes, fill] of [[still, colours.table], [taken, colours.input], [paused, colours.paused]] as const) {
      context.fillStyle = fill;
      context.fill(boxes.path);
    }
  }

  /** Draws how much of the output of a job is written, below its target level. */
  #output(
    context: CanvasRenderingContext2D, width: number, bands: Band[], job: Job, player: Player,
    colours: Palette,
  ): void {
    const last = bands.at(-1);
    const band = bands[job.into];
    const y = band ? band.y + band.height + 2 : last ? last.y + last.height + 2 : MEMORY;
    let [start, end] = job.kind === "flush" ? [0, 1] : [1, 0];
    for (const input of job.inputs) {
      const table = player.tables.get(input);
      if (!table) continue;
      start = Math.min(start, table.start);
      end = Math.max(end, table.end);
    }
    if (end <= start) return;
    const { done, share } = progress(job, player.at);
    const scale = width - GUTTER;
    context.fillStyle = colours.band;
    context.fillRect(GUTTER + start * scale, y, (end - start) * scale, 5);
    context.fillStyle = share > 0 ? colours.output : colours.paused;
    context.fillRect(GUTTER + start * scale, y, (end - start) * scale * done, 5);
  }

  /** Returns the table at a place. */
  at(x: number, y: number): Table | undefined {
    const lane = this.#lanes.find((one) => y >= one.y && y <= one.y + one.height);
    const scale = this.#width - GUTTER;
    const [from, to] = [(x - TABLE_MIN - GUTTER) / scale, (x - GUTTER) / scale];
    return lane?.run.find((table) => table.start <= to && (table.end >= to || table.start >= from));
  }

  /** Returns the key at a place, as a share of the key space; null outside of it. */
  static keyAt(x: number, width: number): number | null {
    const key = (x - GUTTER) / (width - GUTTER);
    return key >= 0 && key <= 1 ? key : null;
  }
}
