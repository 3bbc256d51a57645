// Asks workers. Short questions do not wait for simulations.
import EngineWorker from "./worker?worker&inline";
import type { Answers, Request } from "./requests";

type Waiting = { resolve(value: unknown): void; reject(error: Error): void };
type Reply = { id: number; answer: { ok?: unknown; error?: string } };

class Connection {
  alive = true;
  #worker = new EngineWorker();
  #waiting = new Map<number, Waiting>();
  #next = 1;

  constructor() {
    this.#worker.onmessage = (event: MessageEvent<Reply>) => {
      const { id, answer } = event.data;
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (answer.error !== undefined) waiting?.reject(new Error(answer.error));
      else waiting?.resolve(answer.ok);
    };
    const failed = (text: string) => {
      for (const waiting of this.#waiting.values()) waiting.reject(new Error(text));
      this.#waiting.clear();
    };
    this.#worker.onerror = (event) => failed(event.message || "the worker failed");
    this.#worker.onmessageerror = () => failed("the answer cannot be read");
  }

  /** Ends the worker; what waits for it is rejected. */
  end(): void {
    this.alive = false;
    this.#worker.terminate();
    for (const waiting of this.#waiting.values()) waiting.reject(new Error("superseded"));
    this.#waiting.clear();
  }

  get load(): number {
    return this.#waiting.size;
  }

  ask(request: unknown): Promise<unknown> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, request });
    });
  }
}

const cores = Math.max(1, Math.min(4, (navigator.hardwareConcurrency || 2) - 1));
let short: Connection | undefined;
let points: Connection | undefined;
let long: Connection[] = [];

/** Ends all simulations that are running, whose results nobody wants any more. */
export function endSimulations(): void {
  for (const connection of long) if (connection.load > 0) connection.end();
  long = long.filter((connection) => connection.alive);
}

function connectionFor(call: string): Connection {
  if (call === "points") return (points ??= new Connection());
  if (call !== "simulate") return (short ??= new Connection());
  const idle = long.find((connection) => connection.load === 0);
  if (idle) return idle;
  if (long.length < cores) {
    const connection = new Connection();
    long.push(connection);
    return connection;
  }
  return long.reduce((least, one) => (one.load < least.load ? one : least));
}

/** Asks a question. Rejects with a sentence that a user can read. */
export function ask<C extends Request["call"]>(
  request: Extract<Request, { call: C }>,
): Promise<Answers[C]> {
  return connectionFor(request.call).ask(request) as Promise<Answers[C]>;
}
