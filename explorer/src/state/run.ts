// A design with its simulation.
import { ask } from "../engine/client";
import type { DescribedDesign, Played } from "../engine/requests";
import { Player } from "../model/player";
import { traceOf } from "../model/trace";
import { requestOf, type Setup } from "./setup";

export interface Run {
  /** The text of the design as the user typed it. */
  text: string;
  described?: DescribedDesign;
  played?: Played;
  player?: Player;
  /** Why there is no simulation. */
  error?: string;
  /** True while this is the run of an earlier setup, or none. */
  stale: boolean;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Simulates one design. Never throws. */
export async function runOf(setup: Setup, text: string): Promise<Run> {
  try {
    const described = await ask<"design">({ call: "design", text });
    const played = await ask<"simulate">(requestOf(setup, text));
    return { text, described, played, player: new Player(traceOf(played)), stale: false };
  } catch (error) {
    return { text, error: message(error), stale: false };
  }
}
