// A measured or simulated run, as crates/terrane-lab/src/report/run_page.rs writes it into a page.

export interface Curve {
  name: string;
  is_dashed: boolean;
  points: [number, number][];
  /** The least and the greatest value of each point; empty if there is one value. */
  ranges: [number, number][];
}

export interface Figure {
  kind: "figure";
  name: string;
  title: string;
  x_label: string;
  y_label: string;
  /** Names of the positions 0, 1, ...; empty if the axis has numbers. */
  x_names: string[];
  is_x_logarithmic: boolean;
  is_y_logarithmic: boolean;
  /** False if the order of the positions means nothing. */
  has_lines: boolean;
  curves: Curve[];
  bands: [number, number][];
  strips: { name: string; spans: [number, number, number, string][] }[];
  svg: string;
}

export type Block =
  | { kind: "heading"; text: string }
  | { kind: "text"; text: string; mark: "yes" | "no" | "unknown" | null }
  | { kind: "list"; items: string[] }
  | { kind: "table"; columns: string[]; rows: string[][] }
  | Figure;

export interface RunPage {
  schema: number;
  title: string;
  setting: [string, string][];
  blocks: Block[];
}

const ID = "terrane-run";

function runOf(text: string): RunPage {
  const run = JSON.parse(text) as Partial<RunPage>;
  if (run.schema !== 1 || typeof run.title !== "string" || !Array.isArray(run.blocks) || !Array.isArray(run.setting)) {
    throw new Error("it is of another version of Terrane");
  }
  return run as RunPage;
}

/** Returns the run inside this page; undefined if there is none. Throws a sentence if it cannot be read. */
export function ownRun(): RunPage | undefined {
  const text = document.getElementById(ID)?.textContent;
  if (!text) return undefined;
  try {
    return runOf(text);
  } catch (error) {
    throw new Error(`The run inside this page cannot be read: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

/** Reads the run inside another page. Throws a sentence if there is none. */
export async function runOfFile(file: File): Promise<RunPage> {
  const page = new DOMParser().parseFromString(await file.text(), "text/html");
  const text = page.getElementById(ID)?.textContent;
  if (!text) throw new Error(`${file.name} is no report.html of 'bench', 'simulate' or 'stability' with --out`);
  try {
    return runOf(text);
  } catch (error) {
    throw new Error(`${file.name} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function figuresOf(run: RunPage): Figure[] {
  return run.blocks.filter((block) => block.kind === "figure");
}

/** A figure as columns: the positions, and for each curve its values there, null where it has none. */
export interface Columns {
  x: number[];
  curves: { name: string; is_dashed: boolean; values: (number | null)[] }[];
}

/** Puts curves of several figures on one axis. */
export function columnsOf(curves: Curve[]): Columns {
  const x = [...new Set(curves.flatMap((curve) => curve.points.map(([at]) => at)))].sort((one, other) => one - other);
  const at = new Map(x.map((position, place) => [position, place]));
  return {
    x,
    curves: curves.map((curve) => {
      const values: (number | null)[] = x.map(() => null);
      for (const [position, value] of curve.points) values[at.get(position) ?? 0] = value;
      return { name: curve.name, is_dashed: curve.is_dashed, values };
    }),
  };
}

function quoted(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns a figure as CSV: a line for each position. */
export function csvOf(figure: Figure, columns: Columns): string {
  const name = (position: number) => figure.x_names[position] ?? String(position);
  const head = [figure.x_label, ...columns.curves.map((curve) => curve.name)].map(quoted).join(",");
  const rows = columns.x.map((position, place) => [quoted(name(position)), ...columns.curves.map((curve) => curve.values[place] ?? "")].join(","));
  return `${[head, ...rows].join("\n")}\n`;
}
