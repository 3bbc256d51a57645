/// <reference types="vite/client" />

declare module "virtual:explorer-module" {
  /** The WebAssembly module, compressed with gzip, in base64. */
  const module: string;
  export default module;
}
