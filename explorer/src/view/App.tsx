import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, endSimulations } from "../engine/client";
import type { Catalogue } from "../engine/requests";
import type { LiveStore } from "../live/store";
import { Clock } from "../state/clock";
import { runOf, type Run } from "../state/run";
import { DESIGNS_MAX, fromHash, toHash, withValue, type Setup } from "../state/setup";
import { Charts } from "./Charts";
import { ClockBar } from "./ClockBar";
import { DesignEditor } from "./DesignEditor";
import { EXAMPLES } from "./examples";
import { OpenRecording } from "./live/OpenRecording";
import { Lookup } from "./Lookup";
import { ResultsTable } from "./Results";
import { SetupForm } from "./SetupForm";
import { Space } from "./Space";
import { TourList, TourPanel, placeOf, placeText, type Place } from "./TourPanel";
import { TreeView } from "./TreeView";

/** What a new comparison begins with. */
const OTHERS = ["tiering", "lazy-leveling", "leveling"];

/** Reads the key of an address; null if there is none. */
function keyOf(text: string | undefined): number | null {
  const key = Number(text ?? NaN);
  return Number.isFinite(key) ? Math.min(0.999_999, Math.max(0, key)) : null;
}

export function App({ onRecording }: { onRecording(store: LiveStore): void }) {
  const clock = useMemo(() => new Clock(), []);
  const first = useMemo(() => fromHash(location.hash), []);
  const [setup, setSetup] = useState<Setup>(first.setup);
  const [catalogue, setCatalogue] = useState<Catalogue | null>(null);
  const [runs, setRuns] = useState<Run[]>([]);
  const [failed, setFailed] = useState("");
  const [keyAt, setKeyAt] = useState<number | null>(() => keyOf(first.view["key"]));
  const [place, setPlace] = useState<Place | null>(() => placeOf(first.view["tour"]));
  /** The step whose question is answered. */
  const [answeredAt, setAnsweredAt] = useState("");
  const current = useRef(0);
  const shown = useRef({ setup, keyAt, place });
  shown.current = { setup, keyAt, place };

  useEffect(() => {
    ask<"catalogue">({ call: "catalogue" }).then(setCatalogue, (error: Error) => setFailed(error.message));
    clock.seek(Number(first.view["at"] ?? 0) || 0);
    const changed = () => {
      const { setup: other, view } = fromHash(location.hash);
      clock.pause();
      clock.seek(Number(view["at"] ?? 0) || 0);
      setKeyAt(keyOf(view["key"]));
      setPlace(placeOf(view["tour"]));
      setSetup(other);
    };
    window.addEventListener("hashchange", changed);
    // The address follows, but not each picture of a clock that plays.
    let waiting = 0;
    const address = () => {
      const view: Record<string, string> = {};
      // The times of events have six decimals; rounded up, so that an event at this time has happened.
      if (clock.at > 0) view["at"] = String(Math.ceil(clock.at * 1e6) / 1e6);
      if (shown.current.keyAt !== null) view["key"] = String(shown.current.keyAt);
      if (shown.current.place) view["tour"] = placeText(shown.current.place);
      const hash = toHash(shown.current.setup, view);
      if (hash !== location.hash) history.replaceState(null, "", hash);
    };
    const end = clock.listen(() => {
      window.clearTimeout(waiting);
      if (!clock.playing) waiting = window.setTimeout(address, 300);
    });
    return () => {
      window.removeEventListener("hashchange", changed);
      window.clearTimeout(waiting);
      end();
    };
  }, []);

  useEffect(() => {
    const number = ++current.current;
    endSimulations();
    setRuns((before) => setup.designs.map((text, at) => {
      const old = before[at];
      return old?.text === text ? { ...old, stale: true } : { text, stale: true };
    }));
    let end = 0;
    for (const [position, text] of setup.designs.entries()) {
      void runOf(setup, text).then((run) => {
        if (current.current !== number) return;
        setRuns((before) => before.map((one, place) => (place === position ? run : one)));
        end = Math.max(end, run.played?.seconds ?? 0);
        clock.setEnd(end);
      });
    }
  }, [setup]);

  const choose = (key: number | null) => {
    setKeyAt(key);
    shown.current.keyAt = key;
    clock.seek(clock.at);
  };
  const go = (next: Place | null) => {
    setPlace(next);
    setAnsweredAt("");
    shown.current.place = next;
    const hash = next?.tour.steps[next.step]?.hash;
    if (hash === undefined) return clock.seek(clock.at);
    const { setup: other, view } = fromHash(hash);
    clock.pause();
    clock.seek(Number(view["at"] ?? 0) || 0);
    setSetup(other);
  };
  const answered = place !== null && answeredAt === placeText(place);
  const hides = place?.tour.steps[place.step]?.ask !== undefined && !answered;

  // A change may come after others: what was seen when it began is found again.
  const changeDesign = (number: number, before: string, after: string | null) => {
    setSetup((now) => {
      const at = now.designs[number] === before ? number : now.designs.indexOf(before);
      if (at < 0) return now;
      return { ...now, designs: now.designs.flatMap((one, place) => (place !== at ? [one] : after === null ? [] : [after])) };
    });
  };
  const addDesign = (text: string) => {
    setSetup((now) => (now.designs.length < DESIGNS_MAX ? { ...now, designs: [...now.designs, text] } : now));
  };
  if (failed) return <main><p class="error" role="alert">The page cannot compute: {failed}</p></main>;
  return (
    <>
      <header>
        <h1>Design explorer</h1>
        <p class="muted">
          An LSM tree in virtual time: the policy of Terrane decides, as it does in the engine; a simulator plays the rest.
        </p>
        <nav aria-label="examples">
          {EXAMPLES.map((example) => <a key={example.title} href={example.hash}>{example.title}</a>)}
        </nav>
        <TourList onStart={go} />
        <p><a href="#papers">The papers' figures and claims, measured</a></p>
        <OpenRecording onOpen={onRecording} />
      </header>
      <div class="page">
        <details class="setup" open={window.matchMedia("(min-width: 861px)").matches}>
        <summary>Setup</summary>
        <form onSubmit={(event) => event.preventDefault()} aria-label="setup">
          {/* Above what changes its height: a button that moves under the pointer misses its click. */}
          {setup.designs.length < DESIGNS_MAX && (
            <button type="button" onClick={() => addDesign(OTHERS.find((other) => !setup.designs.includes(other)) ?? "leveling")}>
              Compare with another design
            </button>
          )}
          {catalogue && setup.designs.map((text, number) => (
            <DesignEditor key={number} text={text} number={number} catalogue={catalogue}
              removable={setup.designs.length > 1}
              onChange={(changed) => changeDesign(number, text, changed)}
              onRemove={() => changeDesign(number, text, null)} />
          ))}
          <SetupForm setup={setup} onChange={(key, text) => setSetup((now) => withValue(now, key, text))} />
        </form>
        </details>
        <main class={runs.some((run) => run.stale) ? "stale" : ""}>
          {place && (
            <TourPanel place={place} runs={runs} answered={answered} onAnswer={() => setAnsweredAt(placeText(place))} onGo={go}
              onLeave={() => go(null)} />
          )}
          <ClockBar clock={clock} runs={runs} />
          <div class={`columns trees-${runs.length}`}>
            {runs.map((run, number) => (
              <TreeView key={number} run={run} number={number} clock={clock} keyAt={keyAt} onKey={choose} />
            ))}
          </div>
          <Colours />
          {hides ? <p class="muted">Results and charts are hidden until you have answered.</p> : (
            <>
              <ResultsTable runs={runs} />
              <Charts runs={runs} clock={clock} />
              <Lookup runs={runs} keyAt={keyAt} clock={clock} onKey={choose} />
            </>
          )}
          {catalogue && !place && (
            <Space setup={setup} catalogue={catalogue}
              onAdd={addDesign} />
          )}
        </main>
      </div>
    </>
  );
}

/** What the colours of a tree mean. */
function Colours() {
  return (
    <ul class="legend" aria-label="colours">
      <li><span class="swatch table" />table</li>
      <li><span class="swatch input" />input of a running merge</li>
      <li><span class="swatch paused" />of a paused merge</li>
      <li><span class="swatch output" />written output</li>
      <li><span class="swatch stop" />level above its capacity</li>
    </ul>
  );
}

