/// <reference types="vite/client" />

declare module "virtual:explorer-module" {
  /** The WebAssembly module, compressed with gzip, in base64. */
  const module: string;
  export default module;
}

declare module "virtual:papers-data" {
  /** data/papers.json, compressed with gzip, in base64. */
  const papers: string;
  export default papers;
}
