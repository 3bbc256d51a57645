// The WebAssembly module: one function from a request in JSON to an answer in JSON.
import packed from "virtual:explorer-module";
import { unpacked } from "./packed";

interface Exports {
  memory: WebAssembly.Memory;
  reserve(length: number): number;
  answer(): number;
  address(): number;
}

export class Module {
  #module: WebAssembly.Module;
  #exports: Exports;

  private constructor(module: WebAssembly.Module) {
    this.#module = module;
    this.#exports = new WebAssembly.Instance(module).exports as unknown as Exports;
  }

  static async load(): Promise<Module> {
    return new Module(await WebAssembly.compile(await unpacked(packed).arrayBuffer()));
  }

  /** Returns the answer to a request. A module that fails is replaced, because its memory may be inconsistent. */
  answer(request: string): string {
    try {
      const bytes = new TextEncoder().encode(request);
      const at = this.#exports.reserve(bytes.length) >>> 0;
      new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
      const length = this.#exports.answer();
      const answer = new Uint8Array(this.#exports.memory.buffer, this.#exports.address() >>> 0, length >>> 0);
      return new TextDecoder().decode(answer);
    } catch (error) {
      this.#exports = new WebAssembly.Instance(this.#module).exports as unknown as Exports;
      return JSON.stringify({ error: `The computation failed: ${String(error)}` });
    }
  }
}
