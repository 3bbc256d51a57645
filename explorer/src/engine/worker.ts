// Answers requests beside the page, which stays responsive.
import { Module } from "./module";

const module = Module.load();

self.onmessage = async (event: MessageEvent<{ id: number; request: unknown }>) => {
  const { id, request } = event.data;
  const answer = (await module).answer(JSON.stringify(request));
  self.postMessage({ id, answer: JSON.parse(answer) });
};
