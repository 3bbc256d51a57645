// What a sample says, at the time of the clock.
import type { Sample } from "../../live/messages";
import type { LiveStore } from "../../live/store";
import { bytes, count, factor, plain, seconds } from "../../model/words";
import { useClock } from "../../state/hooks";
import type { Clock } from "../../state/clock";

interface Props {
  store: LiveStore;
  clock: Clock;
}

function useSample({ store, clock }: Props): Sample | undefined {
  useClock(clock, 200);
  return store.samples[store.sampleAt(clock.at)];
}

/** Whether writers proceed, and why not. */
export function Health({ keyspace, silence, ...props }: Props & { keyspace: string; silence: number }) {
  const sample = useSample(props);
  if (!sample) return null;
  const { store, clock } = props;
  const isNewest = clock.at >= store.end - 2;
  const lines: [string, string][] = [];
  if (store.lost && isNewest) lines.push(["stop", `There are no newer samples: ${store.lost}.`]);
  if (sample.error) lines.push(["stop", `The database has failed: ${sample.error}`]);
  // Those of the shown tree first.
  const stalls = [...sample.stalls].sort((one, other) => Number(other.keyspace === keyspace) - Number(one.keyspace === keyspace));
  for (const stall of stalls) {
    const how = stall.stops ? "stopped" : "delayed";
    lines.push([
      stall.stops ? "stop" : "delay",
      `Writers of ${stall.keyspace} are ${how} for ${seconds(stall.micros / 1e6)} by ${stall.cause}: ${stall.measured} now, ` +
      `delayed at ${stall.delay_at}, stopped at ${stall.stop_at}. Until ${stall.until}.`,
    ]);
  }
  if (sample.health === "read-only") lines.push(["", "The database is open for reading only."]);
  if (lines.length === 0) {
    const lost = sample.stalled_share > 0.001 ? ` Together they lost ${seconds(sample.stalled_share)} a second to stalls in the last interval.` : "";
    lines.push(["", `Writers ${isNewest && silence > 0 ? "proceeded" : "proceed"} at ${count(sample.per_second.writes)}/s.${lost}`]);
  }
  return <div role="status">{lines.map(([kind, text]) => <p key={text} class={`status ${kind}`}>{text}</p>)}</div>;
}

const JOBS_MAX = 8;

/** The longest description of a job; it may have thousands of tables. */
const WHAT_MAX = 90;

/** The running jobs, then the waiting ones. */
export function JobList({ keyspace, ...props }: Props & { keyspace: string }) {
  const sample = useSample(props);
  if (!sample) return null;
  const jobs = [...sample.jobs].sort((one, other) => Number(other.keyspace === keyspace) - Number(one.keyspace === keyspace));
  return (
    <ul class="jobs" aria-label="jobs">
      {jobs.length === 0 && <li class="muted">No job is running or due.</li>}
      {jobs.slice(0, JOBS_MAX).map((job, place) => {
        const done = job.remaining_bytes === null || job.total_bytes === 0 ? undefined : 1 - job.remaining_bytes / job.total_bytes;
        const pace = [
          bytes(job.total_bytes),
          job.bytes_per_second === null ? "" : ` at ${bytes(job.bytes_per_second)}/s`,
          job.seconds_left === null ? "" : `, ${seconds(job.seconds_left)} left`,
        ].join("");
        const name = `${job.state} ${job.job} of ${job.keyspace}`;
        return (
          <li key={`${place}${job.id ?? ""}`}>
            {job.state === "queued" ? <span class="queued">waiting</span>
              : <progress max={1} {...(done === undefined ? {} : { value: done })} aria-label={name} class={job.state === "paused" ? "paused" : ""} />}
            <span title={job.what}><b>{name}: {short(job.what)}</b>, {pace}; {job.job === "flush" ? "because" : "because of"} {job.why}</span>
          </li>
        );
      })}
      {jobs.length > JOBS_MAX && <li class="muted">and {jobs.length - JOBS_MAX} more</li>}
    </ul>
  );
}

/** Shortens a list of tables, but not where they go. */
function short(what: string): string {
  if (what.length <= WHAT_MAX) return what;
  const into = what.lastIndexOf(" into ");
  const end = into > 0 ? what.slice(into) : "";
  return `${what.slice(0, Math.max(20, WHAT_MAX - end.length))}…${end}`;
}

/** Rates and latencies of the interval. */
export function Operations(props: Props) {
  const sample = useSample(props);
  if (!sample) return null;
  const rates = sample.per_second;
  const entries = rates.scan_entries > 0 ? ` of ${count(rates.scan_entries)} entries` : "";
  const time = (micros: number) => seconds(micros / 1e6);
  return (
    <section aria-labelledby="operations-title">
      <h2 id="operations-title">Operations</h2>
      <p>{count(rates.writes)} writes, {count(rates.gets)} gets, {count(rates.scans)} scans{entries} a second</p>
      <div class="scroll">
        <table>
          <thead><tr><th scope="col">latency</th><th scope="col">p50</th><th scope="col">p99</th><th scope="col">p99.9</th><th scope="col">longest</th><th scope="col">measured</th></tr></thead>
          <tbody>
            {sample.latencies.map((one) => (
              <tr key={one.name}>
                <th scope="row">{one.name.replace("_", " ")}</th>
                <td>{time(one.p50_micros)}</td><td>{time(one.p99_micros)}</td><td>{time(one.p999_micros)}</td><td>{time(one.max_micros)}</td><td>{count(one.count)}</td>
              </tr>
            ))}
            {sample.latencies.length === 0 && <tr><td colSpan={6} class="muted">No operation in this interval was measured.</td></tr>}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const HOLDERS: [keyof Sample["memory"], string][] = [
  ["memtables", "memtables"], ["cache", "cache"], ["pinned", "pinned, transactions"], ["open_tables", "open tables"], ["jobs", "jobs"],
];

/** Memory by holder, and what has summed up since the database was opened. */
export function Memory(props: Props) {
  const sample = useSample(props);
  if (!sample) return null;
  const { memory } = sample;
  const used = HOLDERS.reduce((sum, [key]) => sum + memory[key], 0);
  return (
    <section aria-labelledby="memory-title">
      <h2 id="memory-title">Memory and amplification</h2>
      <div class="scroll">
        <table>
          <tbody>
            {HOLDERS.map(([key, name]) => (
              <tr key={key}>
                <th scope="row">{name}</th><td>{bytes(memory[key])}</td>
                <td><meter min={0} max={memory.budget || 1} value={memory[key]} aria-label={`${name}, share of the budget`} /></td>
              </tr>
            ))}
            <tr><th scope="row">used of the budget</th><td>{bytes(used)}</td><td>{bytes(memory.budget)}</td></tr>
            <tr><th scope="row">cache hits now</th><td colSpan={2}>{sample.cache_hits === null ? "-" : `${plain(sample.cache_hits * 100)} %`}</td></tr>
            <tr><th scope="row">write amplification</th><td colSpan={2}>{factor(sample.write_amplification)} since the database was opened</td></tr>
            <tr><th scope="row">open snapshots</th><td colSpan={2}>{count(sample.snapshots)}</td></tr>
          </tbody>
        </table>
      </div>
    </section>
  );
}
