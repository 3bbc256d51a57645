// One request has the same answer, byte for byte, in the browser as in the tests of crates/terrane-explorer.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, test } from "@playwright/test";
import { PAGE } from "./support";

const data = (name: string) =>
  readFileSync(new URL(`../../crates/terrane-explorer/testdata/${name}`, import.meta.url), "utf8").trim().split("\n");

/** The module of the committed page. */
function moduleOfPage(): string {
  const page = readFileSync(new URL("../../crates/terrane-cli/page/explorer.html", import.meta.url), "utf8");
  const found = page.match(/H4sI[A-Za-z0-9+/=]{10000,}/)?.[0];
  if (!found) throw new Error("the page has no module");
  return gunzipSync(Buffer.from(found, "base64")).toString("base64");
}

test("answers in the browser are the answers of the command", async ({ page }) => {
  test.setTimeout(300_000);
  const [requests, expected] = [data("requests.jsonl"), data("answers.txt")];
  expect(requests.length).toBe(expected.length);
  await page.goto(PAGE);
  const hashes = await page.evaluate(async ({ module, requests }) => {
    const bytes = Uint8Array.from(atob(module), (character) => character.charCodeAt(0));
    const { instance } = await WebAssembly.instantiate(bytes);
    const exports = instance.exports as unknown as {
      memory: WebAssembly.Memory; reserve(length: number): number; answer(): number; address(): number;
    };
    const hashes: string[] = [];
    for (const request of requests) {
      const text = new TextEncoder().encode(request);
      const at = exports.reserve(text.length);
      new Uint8Array(exports.memory.buffer, at, text.length).set(text);
      const length = exports.answer();
      const answer = new Uint8Array(exports.memory.buffer, exports.address(), length).slice();
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", answer));
      hashes.push([...hash].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
    }
    return hashes;
  }, { module: moduleOfPage(), requests });
  const differing = hashes.flatMap((hash, number) => (hash === expected[number] ? [] : [number]));
  expect(differing).toEqual([]);
});
