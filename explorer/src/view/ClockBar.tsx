import type { Clock } from "../state/clock";
import { useClock } from "../state/hooks";
import type { Run } from "../state/run";
import { clock as clockText } from "../model/words";

const SPEEDS = [1, 10, 60, 300, 1200, 3600];

/** Play, pause, step and scrub. */
export function ClockBar({ clock, runs }: { clock: Clock; runs: Run[] }) {
  useClock(clock, 60);
  const players = runs.map((run) => run.player).filter((player) => player !== undefined);
  const step = (forward: boolean) => {
    clock.pause();
    const times = players
      .map((player) => (forward ? player.nextEvent() : player.lastEvent()))
      .filter((time) => time !== undefined);
    if (times.length > 0) clock.seek(forward ? Math.min(...times) : Math.max(...times));
  };
  return (
    <div class="clock" role="group" aria-label="clock">
      <button type="button" onClick={() => (clock.playing ? clock.pause() : clock.play())} class="play">
        {clock.playing ? "Pause" : "Play"}
      </button>
      <button type="button" onClick={() => step(false)} aria-label="Step back to the previous job" title="previous job">◂</button>
      <button type="button" onClick={() => step(true)} aria-label="Step to the next job" title="next job">▸</button>
      <input
        type="range" min={0} max={clock.end || 1} step="any" value={clock.at}
        aria-label="time" aria-valuetext={clockText(clock.at)}
        onInput={(event) => { clock.pause(); clock.seek(Number(event.currentTarget.value)); }}
      />
      <output>{clockText(clock.at)}<span class="muted"> / {clockText(clock.end)}</span></output>
      <label>
        Speed{" "}
        <select value={clock.speed} onChange={(event) => clock.setSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((speed) => <option key={speed} value={speed}>{speed}x</option>)}
        </select>
      </label>
    </div>
  );
}
