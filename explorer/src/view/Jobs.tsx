import { progress, type Job, type Step } from "../model/trace";
import { bytes, clock } from "../model/words";
import type { Run } from "../state/run";

const LOG_LINES = 60;

/** The running jobs, and the log of those before. */
export function Jobs({ run }: { run: Run }) {
  const { player } = run;
  if (!player) return null;
  const running = [...player.running].sort((one, other) => one.began - other.began);
  const steps: [number, Step][] = [];
  for (let number = player.next - 1; number >= 0 && steps.length < LOG_LINES; number -= 1) {
    const step = player.trace.steps[number];
    if (step?.text !== undefined) steps.push([number, step]);
  }
  return (
    <>
      <ul class="jobs" aria-label="running jobs">
        {running.map((job) => <Running key={`${job.kind}${job.number}`} job={job} at={player.at} />)}
        {running.length === 0 && <li class="muted">No job is running.</li>}
      </ul>
      <details>
        <summary>Log</summary>
        <ol class="log" tabIndex={0} aria-label="log">
          {steps.map(([number, step]) => (
            <li key={number}>
              <time>{clock(step.at)}</time> {step.job ? direction(step.job) : ""}{step.text}
            </li>
          ))}
          {steps.length === 0 && <li class="muted">Nothing yet.</li>}
        </ol>
      </details>
    </>
  );
}

function direction(job: Job): string {
  return job.kind === "merge" ? `level ${job.from} → ${job.into}, ${bytes(job.read)}: ` : "";
}

function Running({ job, at }: { job: Job; at: number }) {
  const { done, share } = progress(job, at);
  const what = job.kind === "flush" ? `flush, ${bytes(job.written)}` : `level ${job.from} → ${job.into}, ${bytes(job.read)}`;
  return (
    <li>
      <progress max={1} value={done} aria-label={what} class={share > 0 ? "" : "paused"} />
      <span>
        <b>{what}</b>{share > 0 ? "" : " (paused)"}: {job.reason ?? "a new run of level 0"}
      </span>
    </li>
  );
}
