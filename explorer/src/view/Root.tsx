import { useEffect, useState } from "preact/hooks";
import type { LiveStore } from "../live/store";
import { App } from "./App";
import { LiveView } from "./live/LiveView";
import { ownRun } from "../run/run";
import { OpenRecording } from "./live/OpenRecording";
import { PapersView } from "./papers/PapersView";
import { RunView } from "./run/RunView";

const hasRun = document.getElementById("terrane-run") !== null;

/** What the address asks for. */
type Place = { view: "explorer" } | { view: "run" } | { view: "papers" } | { view: "recording" } | { view: "live"; token: string };

function placeOf(hash: string): Place {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  if (parameters.has("live")) return { view: "live", token: parameters.get("token") ?? "" };
  if (parameters.has("papers")) return { view: "papers" };
  if (parameters.has("recording")) return { view: "recording" };
  // A page with a run shows it first.
  return { view: hasRun && (hash === "" || hash === "#") ? "run" : "explorer" };
}

/** The run inside this page. */
function OwnRun() {
  const [run] = useState(() => {
    try {
      return ownRun() ?? "The run inside this page is empty.";
    } catch (error) {
      return (error as Error).message;
    }
  });
  useEffect(() => {
    if (typeof run !== "string") document.title = `Terrane: ${run.title}`;
  }, [run]);
  return typeof run === "string" ? <main><p class="error" role="alert">{run}</p></main> : <RunView run={run} />;
}

/** The explorer, a live database, or a recording of one. */
export function Root() {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  const [recording, setRecording] = useState<LiveStore | null>(null);
  useEffect(() => {
    const changed = () => setPlace(placeOf(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  const open = (store: LiveStore) => {
    setRecording(store);
    location.hash = "#recording";
  };
  if (place.view === "live") return <LiveView key={place.token} token={place.token} />;
  if (place.view === "papers") return <PapersView />;
  if (place.view === "run") return <OwnRun />;
  if (place.view === "explorer") return <App onRecording={open} />;
  if (recording) return <LiveView key="recording" recording={recording} onRecording={open} />;
  return (
    <>
      <header>
        <h1>Recording</h1>
        <p class="muted">A page that was loaded anew has forgotten its recording.</p>
        <nav aria-label="pages"><a href="#">Design explorer</a></nav>
      </header>
      <main><OpenRecording onOpen={open} /></main>
    </>
  );
}
