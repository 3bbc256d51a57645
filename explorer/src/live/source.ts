// Where lines come from: a command that follows a database, or the file of a recording.
import { lineOf } from "./messages";
import { LiveStore } from "./store";

/** What a live page knows of the command that serves it. */
export interface Hello {
  allows_changes: boolean;
  version: string;
}

export interface Stream {
  /** Ends the connection. */
  end(): void;
}

interface Listener {
  hello(hello: Hello): void;
  /** A new store, which forgets the one before. */
  reset(store: LiveStore): void;
  /** The store has changed. */
  changed(): void;
  failed(text: string): void;
}

function addAll(store: LiveStore, texts: string[]): void {
  for (const text of texts) {
    if (text.trim() === "") continue;
    try {
      const line = lineOf(text);
      if (line) store.add(line);
    } catch {
      store.unread += 1;
    }
  }
}

/** Follows the command that has served this page. A hidden page does not, since a browser allows few streams. */
export function follow(token: string, listener: Listener): Stream {
  let events: EventSource | null = null;
  let store = new LiveStore();
  let isFirst = true;
  // The last event that this page has received.
  let last = "";
  const begin = () => {
    if (events || document.hidden) return;
    const from = last === "" ? "" : `&from=${encodeURIComponent(last)}`;
    events = new EventSource(`live/stream?token=${encodeURIComponent(token)}${from}`);
    events.addEventListener("hello", (event) => listener.hello(JSON.parse((event as MessageEvent<string>).data) as Hello));
    events.addEventListener("reset", () => {
      store = new LiveStore();
      isFirst = true;
    });
    events.onmessage = (event: MessageEvent<string>) => {
      addAll(store, event.data.split("\n"));
      last = event.lastEventId;
      if (isFirst) listener.reset(store);
      isFirst = false;
      listener.changed();
    };
    events.onerror = () => {
      const isOver = events?.readyState === EventSource.CLOSED;
      listener.failed(isOver ? "The command has refused the token of this address." : "The command that served this page does not answer.");
    };
    events.onopen = () => listener.failed("");
  };
  const end = () => {
    events?.close();
    events = null;
  };
  const shown = () => (document.hidden ? end() : begin());
  document.addEventListener("visibilitychange", shown);
  begin();
  return {
    end: () => {
      document.removeEventListener("visibilitychange", shown);
      end();
    },
  };
}

/** Reads a recording. Throws a sentence if the file is none. */
export async function recordingOf(file: File): Promise<LiveStore> {
  const text = await file.text();
  const store = new LiveStore(true);
  addAll(store, text.split("\n"));
  if (store.samples.length === 0) throw new Error(`${file.name} is no recording of 'terrane top --record': it has no sample`);
  return store;
}

/** Sends a change of design, or the question what it would cost. Rejects with a sentence. */
export async function sendChange(path: "forecast" | "design", token: string, keyspace: string, design: string): Promise<unknown> {
  const answer = await fetch(`live/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-terrane-token": token },
    body: JSON.stringify({ keyspace, design }),
  });
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text) as unknown;
  let message = text.trim();
  try {
    message = (JSON.parse(text) as { error?: string }).error ?? message;
  } catch {
    // The text itself says why.
  }
  throw new Error(message);
}
