import type { Table } from "../model/trace";
import type { Clock } from "../state/clock";
import { useClock } from "../state/hooks";
import type { Run } from "../state/run";
import { bytes, count, seconds } from "../model/words";
import { Jobs } from "./Jobs";
import { TreeCanvas, summary } from "./TreeCanvas";

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
  const { player, described } = run;
  useClock(clock);

  if (run.error && !run.stale) {
    return (
      <article class={`tree series-${number}`}>
        <h3>{run.text}</h3>
        <p class="error" role="alert">{run.error}</p>
      </article>
    );
  }
  return (
    <article class={`tree series-${number}`}>
      <h3>{described?.text ?? run.text}</h3>
      <Status run={run} />
      <TreeCanvas player={player} capacities={described?.capacities} clock={clock} keyAt={keyAt} onKey={onKey} about={about}
        label={player ? summary(player) : "the tree is being computed"}>
        {run.stale && <p class="waiting" role="status">simulating …</p>}
      </TreeCanvas>
      <Jobs run={run} />
    </article>
  );
}

/** A table in words. */
function about(table: Table): string {
  const part = (share: number) => `${(share * 100).toFixed(1)} %`;
  return `table ${table.id} of run ${table.run}: ${bytes(table.bytes)}, ${count(table.entries)} entries, ` +
    `keys from ${part(table.start)} to ${part(table.end)}`;
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
