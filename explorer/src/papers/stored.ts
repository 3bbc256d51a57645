// The papers' data inside the page.
import packed from "virtual:papers-data";
import { unpacked } from "../engine/packed";
import type { Paper } from "./papers";

let loaded: Promise<Paper[]> | undefined;

export function papers(): Promise<Paper[]> {
  return (loaded ??= unpacked(packed).json() as Promise<Paper[]>);
}
