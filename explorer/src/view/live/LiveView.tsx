import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { shownKey } from "../../live/keys";
import { follow, type Hello } from "../../live/source";
import { LiveStore } from "../../live/store";
import type { KeyedTable, LiveTree } from "../../live/tree";
import { bytes, count } from "../../model/words";
import type { Table } from "../../model/trace";
import { Clock } from "../../state/clock";
import { useClock } from "../../state/hooks";
import { TreeCanvas, summary } from "../TreeCanvas";
import { ChangeDesign } from "./ChangeDesign";
import { EventLog } from "./EventLog";
import { Health, JobList, Memory, Operations } from "./Facts";
import { LiveCharts } from "./LiveCharts";
import { LiveClockBar } from "./LiveClockBar";
import { OpenRecording } from "./OpenRecording";
import { WhatIf } from "./WhatIf";

/** How long a database may be silent, in seconds. It may also be silent for three intervals. */
const SILENCE_MIN = 10;

/** Returns for how many seconds a live database has sent nothing, although it should; 0 if that is short. */
function useSilence(store: LiveStore, isLive: boolean): number {
  const [silence, setSilence] = useState(0);
  const heard = useRef({ lines: 0, at: performance.now() });
  useEffect(() => {
    if (!isLive) return undefined;
    const check = setInterval(() => {
      const now = performance.now();
      // A hidden page is not connected.
      if (store.lines !== heard.current.lines || document.hidden) heard.current = { lines: store.lines, at: now };
      const seconds = (now - heard.current.at) / 1000;
      const most = Math.max(SILENCE_MIN, (3 * (store.last?.interval_micros ?? 0)) / 1e6);
      setSilence(seconds > most && store.lost === "" && store.samples.length > 0 ? Math.floor(seconds) : 0);
    }, 1000);
    return () => clearInterval(check);
  }, [store, isLive]);
  return silence;
}

interface Props {
  /** The secret of the command that serves the page. */
  token?: string;
  recording?: LiveStore;
  onRecording?(store: LiveStore): void;
}

/** A database as it is now, was in the last hour, or was when it was recorded. */
export function LiveView({ token, recording, onRecording }: Props) {
  const clock = useMemo(() => new Clock(), []);
  const [store, setStore] = useState(() => recording ?? new LiveStore());
  const [hello, setHello] = useState<Hello | null>(null);
  const [failed, setFailed] = useState("");
  const [chosen, setChosen] = useState("");
  const [follows, setFollows] = useState(token !== undefined);
  const [, again] = useReducer((number: number) => number + 1, 0);
  const current = useRef({ store, follows });
  current.current.follows = follows;

  const silence = useSilence(store, token !== undefined);

  const showEnd = (of: LiveStore) => {
    clock.setBounds(of.begin, of.end);
    if (current.current.follows) clock.seek(of.end);
  };
  useEffect(() => {
    clock.setSpeed(token === undefined ? 10 : 1);
    clock.onPick = () => {
      setFollows(false);
      current.current.follows = false;
    };
    if (recording) {
      setStore(recording);
      clock.setBounds(recording.begin, recording.end);
      clock.seek(recording.begin);
      return undefined;
    }
    const stream = follow(token ?? "", {
      hello: setHello,
      reset: (fresh) => {
        // Times are relative to the first line that is known.
        const shift = (current.current.store.origin - fresh.origin) / 1e6;
        if (current.current.store.origin > 0 && !current.current.follows) clock.seek(clock.at + shift);
        current.current.store = fresh;
        setStore(fresh);
      },
      changed: () => {
        showEnd(current.current.store);
        again(undefined as never);
      },
      failed: setFailed,
    });
    return () => stream.end();
  }, [token, recording]);
  useEffect(() => {
    const database = store.connected?.database.split("/").filter((part) => part !== "").at(-1);
    document.title = database ? `Terrane: ${database}` : "Terrane: live";
    return () => { document.title = "Terrane: design explorer"; };
  }, [store.connected]);

  const names = store.last?.trees.map((one) => one.keyspace) ?? [];
  // The tree that was the largest at first, until one is chosen: the picture does not change by itself.
  const first = useRef("");
  if (!names.includes(first.current)) {
    const largest = (most: string, name: string) => (sizeOf(store.trees.get(name)) > sizeOf(store.trees.get(most)) ? name : most);
    first.current = names.reduce(largest, names[0] ?? "");
  }
  const keyspace = names.includes(chosen) ? chosen : first.current;
  const tree = store.trees.get(keyspace);
  const process = store.connected?.process;
  return (
    <>
      <header>
        <h1>{store.connected?.database ?? (token === undefined ? "Recording" : "Live picture")}</h1>
        <p class="muted">
          {process ? `process ${process.pid} (${process.program}), Terrane ${process.version}` : hello ? `Terrane ${hello.version}` : "\u00a0"}
        </p>
        <nav aria-label="pages">
          <a href="#">Design explorer</a>
          {token !== undefined && <a href={`live/recording?token=${encodeURIComponent(token)}`} download="terrane-recording.jsonl">Save the last hour as a recording</a>}
        </nav>
        {onRecording && <OpenRecording onOpen={onRecording} />}
      </header>
      <main>
        {failed && <p class="error" role="alert">{failed}</p>}
        {silence > 0 && !failed && <p class="error" role="alert">The database has not answered for {silence} s. Its process may be stopped, or the machine is overloaded.</p>}
        {store.unread > 0 && <p class="error" role="alert">{store.unread} lines could not be read; the recording may end in the middle of one.</p>}
        {store.samples.length === 0 || !tree ? (
          <p class="muted" role="status">{store.lost || "Waiting for the first sample …"}</p>
        ) : (
          <>
            <LiveClockBar clock={clock} store={store} tree={tree} isLive={token !== undefined} follows={follows} onFollow={(now) => {
              setFollows(now);
              current.current.follows = now;
              if (now) showEnd(store);
            }} />
            <Health store={store} clock={clock} keyspace={keyspace} silence={silence} />
            {names.length > 1 && (
              <label class="keyspace">Keyspace{" "}
                <select value={keyspace} onChange={(event) => setChosen(event.currentTarget.value)}>
                  {names.map((name) => <option key={name} value={name}>{name}</option>)}
                </select>
              </label>
            )}
            <LiveTreeView tree={tree} clock={clock} />
            <JobList store={store} clock={clock} keyspace={keyspace} />
            <div class="facts">
              <Operations store={store} clock={clock} />
              <Memory store={store} clock={clock} />
            </div>
            <LiveCharts store={store} keyspace={keyspace} clock={clock} />
            <EventLog store={store} clock={clock} />
            <WhatIf store={store} tree={tree} />
            {token !== undefined && (
              <ChangeDesign key={keyspace} keyspace={keyspace} present={tree.last?.design ?? ""} token={token} allowsChanges={hello?.allows_changes ?? false} />
            )}
          </>
        )}
      </main>
    </>
  );
}

function sizeOf(tree: LiveTree | undefined): number {
  return tree?.last?.levels.reduce((sum, level) => sum + level.bytes, 0) ?? 0;
}

function LiveTreeView({ tree, clock }: { tree: LiveTree; clock: Clock }) {
  useClock(clock);
  const state = tree.moment;
  return (
    <article class="tree live">
      <h2 class="design">{state?.design ?? tree.keyspace}</h2>
      <TreeCanvas player={tree} capacities={state?.levels.map((level) => level.capacity) ?? []} clock={clock} keyAt={null}
        about={about} label={summary(tree)} />
      <ul class="legend" aria-label="colours">
        <li><span class="swatch table" />table</li>
        <li><span class="swatch input" />input of a running compaction</li>
        <li><span class="swatch paused" />of a paused one</li>
        <li><span class="swatch output" />read part of its input</li>
        <li><span class="swatch stop" />level above its capacity</li>
      </ul>
    </article>
  );
}

/** A table in words. */
function about(table: Table): string {
  const { id, run, first, last } = table as KeyedTable;
  const to = last === null ? "the last" : shownKey(last);
  return `table ${id} of run ${run}: ${bytes(table.bytes)}, ${count(table.entries)} entries, from ${shownKey(first)} to ${to}`;
}
