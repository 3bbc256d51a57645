import type { Results } from "../engine/requests";
import type { Run } from "../state/run";
import { unsteady, verdict } from "../model/verdict";
import { bytes, count, factor, plain, seconds } from "../model/words";
import { SERIES, shortNames } from "./series";

const ROWS: { name: string; of(results: Results): string }[] = [
  { name: "writes a second", of: (r) => `${count(r.rate)}/s` },
  { name: "waiting at the end", of: (r) => (r.offered === null ? "-" : count(r.queued)) },
  { name: "latency: half, 99 %", of: (r) => `${seconds(r.p50)}, ${seconds(r.p99)}` },
  { name: "latency: 99.9 %, longest", of: (r) => `${seconds(r.p999)}, ${seconds(r.longest)}` },
  { name: "writers stopped", of: (r) => (r.stalls === 0 ? "never" : `${seconds(r.stalled_seconds)} in ${count(r.stalls)} stops`) },
  { name: "mostly by", of: (r) => r.stalled_by?.[0] ?? "-" },
  { name: "write amplification", of: (r) => factor(r.write_amplification) },
  { name: "space amplification", of: (r) => factor(r.space_amplification) },
  { name: "blocks of a lookup: existing, missing", of: (r) => `${plain(r.found)}, ${plain(r.missing)}` },
  { name: "runs: mean, most", of: (r) => `${plain(r.runs)}, ${r.most_runs}` },
  { name: "flushes, merges, moves", of: (r) => `${count(r.flushes)}, ${count(r.merges)}, ${count(r.moves)}` },
  { name: "size at the end", of: (r) => bytes(r.bytes) },
];

/** The results of all designs, and what they say. */
export function ResultsTable({ runs }: { runs: Run[] }) {
  const done = runs.flatMap((run) => (run.played ? [{ run, results: run.played.results }] : []));
  if (done.length === 0) return null;
  const names = shortNames(runs.map((run) => run.text));
  const compared = runs.flatMap((run, number) => (run.played ? [{ name: names[number] ?? run.text, results: run.played.results }] : []));
  return (
    <section aria-labelledby="results-title">
      <h2 id="results-title">Results</h2>
      {verdict(compared).length > 0 && (
        <ul class="verdict">{verdict(compared).map((line) => <li key={line}>{line}</li>)}</ul>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label="table of results">
        <table>
          <thead>
            <tr>
              <th scope="col">whole run</th>
              {runs.map((_, number) => (
                <th scope="col" key={number}>
                  <span class={`swatch series-${SERIES[number]}`} />{names[number]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ROWS.map((row) => (
              <tr key={row.name}>
                <th scope="row">{row.name}</th>
                {runs.map((run, number) => <td key={number}>{run.played ? row.of(run.played.results) : "-"}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {runs.map((run, number) => {
        const why = run.played && unsteady(run.played.windows, run.played.results);
        return why && <p key={number} class="status delay">{names[number]} is {why}</p>;
      })}
      {done.map(({ run, results }) => results.stuck && <p key={run.text} class="error">{run.text}: {results.stuck}</p>)}
    </section>
  );
}
