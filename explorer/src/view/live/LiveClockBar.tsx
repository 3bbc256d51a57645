import type { LiveStore } from "../../live/store";
import type { LiveTree } from "../../live/tree";
import { useClock } from "../../state/hooks";
import type { Clock } from "../../state/clock";

const SPEEDS = [1, 10, 60, 300];

interface Props {
  clock: Clock;
  store: LiveStore;
  tree: LiveTree;
  isLive: boolean;
  /** True while the picture shows the newest sample. */
  follows: boolean;
  onFollow(follows: boolean): void;
}

/** Returns a time of day. */
export function timeOfDay(date: Date): string {
  return date.toLocaleTimeString("en-GB");
}

/** Follow, play, step and scrub. */
export function LiveClockBar({ clock, store, tree, isLive, follows, onFollow }: Props) {
  useClock(clock, 60);
  const shown = timeOfDay(store.wall(clock.at));
  const leave = () => onFollow(false);
  const step = (forward: boolean) => {
    leave();
    clock.pause();
    const time = forward ? tree.nextEvent() : tree.lastEvent();
    if (time !== undefined) clock.seek(time);
  };
  return (
    <div class="clock" role="group" aria-label="clock">
      {isLive && <button type="button" aria-pressed={follows} class={follows ? "play" : ""} onClick={() => { clock.pause(); onFollow(!follows); }}>Live</button>}
      <button type="button" class={isLive ? "" : "play"} onClick={() => { leave(); if (clock.playing) clock.pause(); else clock.play(); }}>
        {clock.playing ? "Pause" : "Play"}
      </button>
      <button type="button" onClick={() => step(false)} aria-label="Step back to the previous event" title="previous event">◂</button>
      <button type="button" onClick={() => step(true)} aria-label="Step to the next event" title="next event">▸</button>
      <input
        type="range" min={store.begin} max={Math.max(clock.end, store.begin + 1)} step="any" value={clock.at}
        aria-label="time" aria-valuetext={shown}
        onInput={(event) => { leave(); clock.pause(); clock.seek(Number(event.currentTarget.value)); }}
      />
      <output>{shown}</output>
      <label>
        Speed{" "}
        <select value={clock.speed} onChange={(event) => clock.setSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((speed) => <option key={speed} value={speed}>{speed}x</option>)}
        </select>
      </label>
    </div>
  );
}
