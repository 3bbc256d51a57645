// Answers requests beside the page, which stays responsive.
import { Module } from "./module";

const module = Module.load();

async function answer(request: unknown): Promise<unknown> {
  try {
    return JSON.parse((await module).answer(JSON.stringify(request)));
  } catch (error) {
    return { error: `This browser cannot compute: ${String(error)}` };
  }
}

self.onmessage = async (event: MessageEvent<{ id: number; request: unknown }>) => {
  const { id, request } = event.data;
  self.postMessage({ id, answer: await answer(request) });
};
