// What a comparison says, in at most three lines.
import type { Results, Windows } from "../engine/requests";
import { count, factor, seconds } from "./words";

export interface Compared {
  name: string;
  results: Results;
}

interface Measure {
  says(best: string, ratio: string, other: string): string;
  of(results: Results): number | null;
  /** True if more is better. */
  more?: boolean;
}

const MEASURES: Measure[] = [
  { of: (r) => r.rate, more: true, says: (best, ratio, other) => `${best} takes ${ratio} the writes of ${other}` },
  { of: (r) => r.write_amplification, says: (best, ratio, other) => `${other} writes ${ratio} the bytes of ${best} for each byte of the user` },
  { of: (r) => r.missing, says: (best, ratio, other) => `a lookup of a missing key reads ${ratio} the blocks in ${other} as in ${best}` },
  { of: (r) => r.runs, says: (best, ratio, other) => `a scan reads ${ratio} the runs in ${other} as in ${best}` },
  { of: (r) => r.most_runs, says: (best, ratio, other) => `at worst, a scan reads ${ratio} the runs in ${other} as in ${best}` },
  { of: (r) => r.space_amplification, says: (best, ratio, other) => `${other} takes ${ratio} the space of ${best}` },
];

/** Ratios below this are no difference. */
const LEAST = 1.1;

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Returns the stops of writers in a sentence; undefined if there were none. */
function stops(all: Compared[]): string | undefined {
  const stopped = all.filter(({ results }) => results.stalled_seconds > 0 && results.offered !== null);
  const worst = stopped.sort((a, b) => b.results.stalled_seconds - a.results.stalled_seconds)[0];
  if (!worst) return undefined;
  const { name, results } = worst;
  const cause = results.stalled_by ? ` by ${results.stalled_by[0]}` : "";
  return `${name} stops writers for ${seconds(results.stalled_seconds)}${cause}; the slowest write takes ${seconds(results.longest)}`;
}

/** A run is not steady if a figure exceeds its maximum of the first three quarters by this factor in the last one. */
const GROWTH = 1.25;

/** Returns the maxima of the first three quarters and of the last one; undefined if there are too few windows. */
function maxima(values: number[]): [number, number] | undefined {
  const from = Math.floor((values.length * 3) / 4);
  return values.length < 16 ? undefined : [Math.max(...values.slice(0, from)), Math.max(...values.slice(from))];
}

/** Says why a run would end differently if it were longer; undefined if it is steady. */
export function unsteady({ space_amplification, queued }: Windows, { rate }: Results): string | undefined {
  const waiting = maxima(queued);
  if (waiting && waiting[1] > waiting[0] * GROWTH && waiting[1] > rate) {
    return `not steady: up to ${count(waiting[1])} writes wait in the last quarter, and ${count(waiting[0])} before. Fewer are served than arrive.`;
  }
  const space = maxima(space_amplification);
  if (space && space[1] > space[0] * GROWTH && space[1] > 2) {
    return `not steady: the space amplification reaches ${factor(space[1])} in the last quarter, and ${factor(space[0])} before. Merges that are put off may stop writers later.`;
  }
  return undefined;
}

/** Compares designs, the largest difference first. */
export function verdict(all: Compared[]): string[] {
  if (all.length < 2) return [];
  const lines = MEASURES.flatMap((measure) => {
    const known = all.flatMap(({ name, results }) => {
      const value = measure.of(results);
      return value !== null && value > 0 ? [{ name, value }] : [];
    });
    if (known.length < 2) return [];
    known.sort((a, b) => (measure.more ? b.value - a.value : a.value - b.value));
    const [best, worst] = [known[0], known.at(-1)];
    if (!best || !worst) return [];
    const ratio = Math.max(best.value, worst.value) / Math.min(best.value, worst.value);
    return ratio < LEAST ? [] : [{ ratio, text: measure.says(best.name, factor(ratio), worst.name) }];
  });
  lines.sort((a, b) => b.ratio - a.ratio);
  const stopped = stops(all);
  const texts = [...(stopped ? [stopped] : []), ...lines.map((line) => line.text)];
  if (texts.length === 0) return ["The designs differ by less than a tenth."];
  return texts.slice(0, 3).map(sentence);
}
