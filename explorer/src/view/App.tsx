import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "../engine/client";
import type { Catalogue } from "../engine/requests";
import { Clock } from "../state/clock";
import { runOf, type Run } from "../state/run";
import { DESIGNS_MAX, fromHash, toHash, type Setup } from "../state/setup";
import { Charts } from "./Charts";
import { ClockBar } from "./ClockBar";
import { DesignEditor } from "./DesignEditor";
import { EXAMPLES } from "./examples";
import { Lookup } from "./Lookup";
import { ResultsTable } from "./Results";
import { SetupForm } from "./SetupForm";
import { Space } from "./Space";
import { TourList, TourPanel, placeOf, placeText, type Place } from "./TourPanel";
import { TreeView } from "./TreeView";

/** What a new comparison begins with. */
const OTHERS = ["tiering", "lazy-leveling", "leveling"];

export function App() {
  const clock = useMemo(() => new Clock(), []);
  const first = useMemo(() => fromHash(location.hash), []);
  const [setup, setSetup] = useState<Setup>(first.setup);
  const [catalogue, setCatalogue] = useState<Catalogue | null>(null);
  const [runs, setRuns] = useState<Run[]>([]);
  const [failed, setFailed] = useState("");
  const [keyAt, setKeyAt] = useState<number | null>(first.view["key"] === undefined ? null : Number(first.view["key"]));
  const [place, setPlace] = useState<Place | null>(() => placeOf(first.view["tour"]));
  const [answered, setAnswered] = useState(false);
  const current = useRef(0);
  const shown = useRef({ setup, keyAt, place });
  shown.current = { setup, keyAt, place };

  useEffect(() => {
    ask<"catalogue">({ call: "catalogue" }).then(setCatalogue, (error: Error) => setFailed(error.message));
    clock.at = Number(first.view["at"] ?? 0) || 0;
    const changed = () => {
      const { setup: other, view } = fromHash(location.hash);
      clock.at = Number(view["at"] ?? 0) || 0;
      setKeyAt(view["key"] === undefined ? null : Number(view["key"]));
      setPlace(placeOf(view["tour"]));
      setSetup(other);
    };
    window.addEventListener("hashchange", changed);
    // The address follows, but not each picture of a clock that plays.
    let waiting = 0;
    const address = () => {
      const view: Record<string, string> = {};
      if (clock.at > 0) view["at"] = String(Math.round(clock.at * 1000) / 1000);
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
      end();
    };
  }, []);

  useEffect(() => {
    const number = ++current.current;
    setRuns((before) => setup.designs.map((text, at) => (before[at]?.text === text ? before[at] : { text })));
    const at = clock.at;
    let end = 0;
    for (const [position, text] of setup.designs.entries()) {
      void runOf(setup, text).then((run) => {
        if (current.current !== number) return;
        setRuns((before) => before.map((one, place) => (place === position ? run : one)));
        end = Math.max(end, run.played?.seconds ?? 0);
        clock.end = end;
        clock.seek(clock.playing ? clock.at : Math.max(at, clock.at));
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
    setAnswered(false);
    shown.current.place = next;
    const hash = next?.tour.steps[next.step]?.hash;
    if (hash === undefined) return clock.seek(clock.at);
    const { setup: other, view } = fromHash(hash);
    clock.pause();
    clock.at = Number(view["at"] ?? 0) || 0;
    setSetup(other);
  };
  const hides = place?.tour.steps[place.step]?.ask !== undefined && !answered;

  const setDesigns = (designs: string[]) => setSetup({ ...setup, designs });
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
      </header>
      <div class="page">
        <details class="setup" open={window.matchMedia("(min-width: 861px)").matches}>
        <summary>Setup</summary>
        <form onSubmit={(event) => event.preventDefault()} aria-label="setup">
          {catalogue && setup.designs.map((text, number) => (
            <DesignEditor key={number} text={text} number={number} catalogue={catalogue}
              removable={setup.designs.length > 1}
              onChange={(changed) => setDesigns(setup.designs.map((one, at) => (at === number ? changed : one)))}
              onRemove={() => setDesigns(setup.designs.filter((_, at) => at !== number))} />
          ))}
          {setup.designs.length < DESIGNS_MAX && (
            <button type="button" onClick={() => setDesigns([...setup.designs, OTHERS.find((other) => !setup.designs.includes(other)) ?? "leveling"])}>
              Compare with another design
            </button>
          )}
          <SetupForm setup={setup} onChange={setSetup} />
        </form>
        </details>
        <main>
          {place && (
            <TourPanel place={place} runs={runs} answered={answered} onAnswer={() => setAnswered(true)} onGo={go}
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
              onAdd={(text) => setup.designs.length < DESIGNS_MAX && setDesigns([...setup.designs, text])} />
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

