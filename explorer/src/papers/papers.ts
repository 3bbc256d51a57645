// The figures and claims of the papers, as crates/terrane-papers/src/report/data.rs writes them.
import type { Figure } from "../run/run";

export interface Claim {
  /** The place in the paper, and the items of the checklist. */
  source: string;
  says: string;
  mode: string | null;
  stated: string | null;
  rule: string;
  measured: string;
  verdict: string;
  notes: string[];
  /** The places of its figures in the list of figures. */
  figures: number[];
}

export interface PaperFigure {
  number: string;
  figure: Omit<Figure, "kind">;
  sources: [string, string][];
}

export interface Paper {
  name: string;
  paper: string;
  about: string;
  setting: [string, string][];
  figures: PaperFigure[];
  claims: Claim[];
}

/** What is shown; empty texts are all. */
export interface Filter {
  paper: string;
  figure: string;
  verdict: string;
}

export interface Shown {
  paper: Paper;
  figures: { figure: PaperFigure; claims: Claim[] }[];
  /** Claims without a figure. */
  others: Claim[];
}

/** Returns what a filter leaves. A claim on several figures is beside the first that is shown. */
export function shownOf(all: Paper[], filter: Filter): Shown[] {
  const isWanted = (claim: Claim) => filter.verdict === "" || claim.verdict === filter.verdict;
  return all.filter((paper) => filter.paper === "" || paper.name === filter.paper).map((paper) => {
    const left = new Set(paper.claims.filter(isWanted));
    const figures = paper.figures.flatMap((figure, place) => {
      if (filter.figure !== "" && figure.number !== filter.figure) return [];
      const claims = [...left].filter((claim) => claim.figures.includes(place));
      for (const claim of claims) left.delete(claim);
      return claims.length > 0 || filter.verdict === "" ? [{ figure, claims }] : [];
    });
    const others = filter.figure === "" ? [...left].filter((claim) => claim.figures.length === 0) : [];
    return { paper, figures, others };
  }).filter(({ figures, others }) => figures.length + others.length > 0);
}

/** Returns the command that measures a figure again. */
export function commandOf(paper: Paper, figure?: PaperFigure): string {
  const part = figure && /^[0-9]/.test(figure.number) ? ` --figure ${figure.number}` : "";
  return `cargo run --release -p terrane-papers -- run ${paper.name}${part}`;
}
