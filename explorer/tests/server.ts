// A database that is served, with its live picture.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The command; a build of the workspace unless TERRANE names another one. */
export const TERRANE = process.env.TERRANE ?? fileURLToPath(new URL("../../target/debug/terrane", import.meta.url));

export class Served {
  readonly dir = mkdtempSync(join(tmpdir(), "terrane-live-"));
  /** The address of the picture. */
  picture = "";
  #child: ChildProcess | undefined;
  #socket: Socket | undefined;
  #port = 0;
  #answers = 0;

  /** Starts the server. Tables of 64 KiB, so that little data gives a tree. */
  async start(...more: string[]): Promise<void> {
    const design = "tiering T=4; buffer=64KiB; table=64KiB; block=1KiB";
    const child = spawn(TERRANE, ["serve", join(this.dir, "db"), "--listen", "127.0.0.1:0", "--design", design, "--web", ...more]);
    this.#child = child;
    let text = "";
    child.stderr.resume();
    await new Promise<void>((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code) => reject(new Error(`the server has ended: ${code} ${text}`)));
      child.stdout.on("data", (part: Buffer) => {
        text += part.toString();
        if (/^picture .*\n/m.test(text)) resolve();
      });
    });
    this.picture = /^picture +(\S+)/m.exec(text)?.[1] ?? "";
    this.#port = Number(/listening +127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
  }

  /** Sets keys, and waits for all answers. */
  async write(from: number, to: number, prefix = "user:"): Promise<void> {
    this.#socket ??= createConnection(this.#port, "127.0.0.1");
    const socket = this.#socket;
    const value = "x".repeat(100);
    const wanted = this.#answers + to - from;
    const done = new Promise<void>((resolve) => {
      const read = (part: Buffer) => {
        for (const byte of part) if (byte === 0x2b) this.#answers += 1;
        if (this.#answers < wanted) return;
        socket.off("data", read);
        resolve();
      };
      socket.on("data", read);
    });
    let text = "";
    // In an order that leaves every memtable with keys of the whole range.
    for (let number = from; number < to; number += 1) text += `SET ${prefix}${String((number * 7919) % 100_000).padStart(6, "0")} ${value}\r\n`;
    socket.write(text);
    await done;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Ends the server, as Ctrl-C does. */
  async stop(): Promise<void> {
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#answers = 0;
    const child = this.#child;
    if (!child || child.exitCode !== null) return;
    child.removeAllListeners("exit");
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGINT");
    await ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
