import { useEffect, useState } from "preact/hooks";
import { ask } from "../engine/client";
import type { LevelLookups } from "../engine/requests";
import type { Clock } from "../state/clock";
import { useClock } from "../state/hooks";
import type { Run } from "../state/run";
import { plain } from "../model/words";

interface Stop {
  where: string;
  passes: number;
}

/** The runs that a lookup of a key asks, from the newest. */
function stopsOf(run: Run, key: number, rates: number[]): Stop[] {
  const stops: Stop[] = [];
  for (const [level, runs] of (run.player?.levels() ?? []).entries()) {
    for (const [number, tables] of runs) {
      const table = tables.find((one) => one.start <= key && key < one.end);
      if (table) stops.push({ where: `level ${level}, run ${number}, table ${table.id}`, passes: rates[level] ?? 1 });
    }
  }
  return stops;
}

/** Follows a lookup through memtables, filters and blocks. */
export function Lookup({ runs, keyAt, clock, onKey }: {
  runs: Run[]; keyAt: number | null; clock: Clock; onKey(key: number | null): void;
}) {
  return (
    <section class="lookup" aria-labelledby="lookup-title">
      <h2 id="lookup-title">Follow a lookup</h2>
      <p class="muted">
        Choose a key here or click into a tree. A lookup asks the memtables, then each run whose keys include it, from
        the newest: a filter lets a missing key through at the stated rate, and each run that is let through costs a block.
      </p>
      <label>
        Key, as a share of the key space{" "}
        <input type="range" min={0} max={1} step={0.001} value={keyAt ?? 0.5} aria-label="key"
          aria-valuetext={`${((keyAt ?? 0.5) * 100).toFixed(1)} %`}
          onInput={(event) => onKey(Math.min(0.999_999, Number(event.currentTarget.value)))} />
        <output> {((keyAt ?? 0.5) * 100).toFixed(1)} %</output>
      </label>
      {keyAt !== null && (
        <div class="columns">
          {runs.map((run, number) => <Path key={number} run={run} number={number} keyAt={keyAt} clock={clock} />)}
        </div>
      )}
    </section>
  );
}

const STOPS_SHOWN = 12;

function Path({ run, number, keyAt, clock }: { run: Run; number: number; keyAt: number; clock: Clock }) {
  const [costs, setCosts] = useState<LevelLookups | null>(null);
  useClock(clock, 250);
  const { player } = run;
  const version = player?.version ?? -1;
  useEffect(() => {
    if (!player) return;
    const levels = player.levels().map((runs): [number, number] => {
      let size = 0;
      for (const one of runs.values()) for (const table of one) size += table.bytes;
      return [runs.size, size];
    });
    ask<"levels">({ call: "levels", text: run.text, levels }).then(setCosts, () => setCosts(null));
  }, [player, version, run.text]);
  if (!player || !costs) return null;
  const stops = stopsOf(run, keyAt, costs.false_positives);
  const missing = stops.reduce((sum, stop) => sum + stop.passes, 0);
  const before = stops.slice(0, -1).reduce((sum, stop) => sum + stop.passes, 0);
  return (
    <div class={`path series-${number}`}>
      <h3>{run.text}</h3>
      <ol>
        <li>{1 + player.immutable} {player.immutable === 0 ? "memtable" : "memtables"}: no block</li>
        {stops.slice(0, STOPS_SHOWN).map((stop) => (
          <li key={stop.where}>{stop.where}: the filter lets {plain(stop.passes * 100)} % of missing keys through</li>
        ))}
        {stops.length > STOPS_SHOWN && <li>and {stops.length - STOPS_SHOWN} more runs</li>}
      </ol>
      <p>
        A missing key reads {plain(missing)} blocks, a key of the last run {plain(1 + before)}; a scan begins with{" "}
        {stops.length} {stops.length === 1 ? "block" : "blocks"}. On average over all keys of the tree:{" "}
        {plain(costs.missing)} and {plain(costs.found)}.
      </p>
    </div>
  );
}
