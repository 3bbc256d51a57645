import { useState } from "preact/hooks";
import type { LiveStore } from "../../live/store";
import { useClock } from "../../state/hooks";
import type { Clock } from "../../state/clock";
import { timeOfDay } from "./LiveClockBar";

const LINES_MAX = 200;

/** The events until the time of the clock, the newest first. */
export function EventLog({ store, clock }: { store: LiveStore; clock: Clock }) {
  useClock(clock, 500);
  const [search, setSearch] = useState("");
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const matches = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  const found = store.entries.filter((entry) => entry.at <= clock.at + 1 && (words.length === 0 || matches(`${entry.kind} ${entry.text}`)));
  const shown = found.slice(-LINES_MAX).reverse();
  return (
    <section aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      <label class="search">
        Search events{" "}
        <input type="search" value={search} placeholder="such as: compacted default" onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <p class="muted" role="status">{found.length === shown.length ? `${found.length} events` : `${shown.length} newest of ${found.length} events`}</p>
      <ol class="log" tabIndex={0} aria-label="events">
        {shown.map((entry, place) => <li key={found.length - place}><time>{timeOfDay(store.wall(entry.at))}</time> {entry.text}</li>)}
      </ol>
    </section>
  );
}
