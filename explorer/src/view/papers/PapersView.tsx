import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { commandOf, shownOf, type Claim, type Filter, type Paper, type PaperFigure } from "../../papers/papers";
import { papers } from "../../papers/stored";
import { FigureView } from "../run/FigureView";

const VERDICTS = ["reproduced", "same direction", "contradicted", "not comparable", "by design", "not measured"];

function filterOf(hash: string): Filter {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  return { paper: parameters.get("paper") ?? "", figure: parameters.get("figure") ?? "", verdict: parameters.get("verdict") ?? "" };
}

function hashOf(filter: Filter): string {
  const given = Object.entries(filter).filter(([, value]) => value !== "");
  return `#papers${given.map(([key, value]) => `&${key}=${encodeURIComponent(value)}`).join("")}`;
}

/** Every figure of the five papers with the paper's points and ours, and every claim with its verdict. */
export function PapersView() {
  const [all, setAll] = useState<Paper[] | null>(null);
  const [error, setError] = useState("");
  const [filter, setFilter] = useState(() => filterOf(location.hash));
  useEffect(() => {
    papers().then(setAll, (reason: Error) => setError(reason.message));
    document.title = "Terrane: the papers, measured";
    const changed = () => setFilter(filterOf(location.hash));
    window.addEventListener("hashchange", changed);
    return () => {
      window.removeEventListener("hashchange", changed);
      document.title = "Terrane: design explorer";
    };
  }, []);
  const change = (part: Partial<Filter>) => {
    // Another paper has other figures.
    const next = { ...filter, ...(part.paper !== undefined ? { figure: "" } : {}), ...part };
    setFilter(next);
    history.replaceState(null, "", hashOf(next));
  };
  const shown = useMemo(() => (all ? shownOf(all, filter) : []), [all, filter]);
  const numbers = all?.find((paper) => paper.name === filter.paper)?.figures.map((figure) => figure.number) ?? [];
  const claims = shown.flatMap(({ figures, others }) => [...figures.flatMap((one) => one.claims), ...others]);
  return (
    <>
      <header>
        <h1>The papers, measured</h1>
        <p class="muted">The figures of five papers with their published points and those of Terrane, and each claim with the rule that judged it.</p>
        <nav aria-label="pages"><a href="#explore">Design explorer</a></nav>
      </header>
      <main class="papers">
        {error && <p class="error" role="alert">The results cannot be read: {error}</p>}
        <form class="filters" aria-label="filters" onSubmit={(event) => event.preventDefault()}>
          <label>Paper{" "}
            <select value={filter.paper} onChange={(event) => change({ paper: event.currentTarget.value })}>
              <option value="">all</option>
              {all?.map((paper) => <option key={paper.name} value={paper.name}>{paper.name}</option>)}
            </select>
          </label>
          <label>Figure{" "}
            <select value={filter.figure} disabled={numbers.length === 0} onChange={(event) => change({ figure: event.currentTarget.value })}>
              <option value="">all</option>
              {numbers.map((number) => <option key={number} value={number}>{number}</option>)}
            </select>
          </label>
          <label>Verdict{" "}
            <select value={filter.verdict} onChange={(event) => change({ verdict: event.currentTarget.value })}>
              <option value="">all</option>
              {VERDICTS.map((verdict) => <option key={verdict} value={verdict}>{verdict}</option>)}
            </select>
          </label>
        </form>
        <p role="status">{all ? `${claims.length} claims: ${VERDICTS.map((verdict) => [claims.filter((claim) => claim.verdict === verdict).length, verdict] as const).filter(([count]) => count > 0).map(([count, verdict]) => `${count} ${verdict}`).join(", ")}.` : "Loading …"}</p>
        {shown.map(({ paper, figures, others }) => (
          <section key={paper.name} aria-labelledby={`paper-${paper.name}`}>
            <h2 id={`paper-${paper.name}`}>{paper.paper}</h2>
            <details>
              <summary>{paper.about}</summary>
              <table class="setting"><tbody>{paper.setting.map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td>{value}</td></tr>)}</tbody></table>
            </details>
            {figures.map(({ figure, claims: about }) => <FigureSection key={figure.number} paper={paper} figure={figure} claims={about} />)}
            {others.length > 0 && <h3>Claims without a figure</h3>}
            {others.length > 0 && <p class="muted">Measured again by <code>{commandOf(paper)}</code></p>}
            {others.map((claim, place) => <ClaimView key={place} claim={claim} />)}
          </section>
        ))}
      </main>
    </>
  );
}

function FigureSection({ paper, figure, claims }: { paper: Paper; figure: PaperFigure; claims: Claim[] }) {
  const place = useRef<HTMLElement>(null);
  const [isSeen, setSeen] = useState(false);
  // Sixty charts at once would take seconds.
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) setSeen(true);
    }, { rootMargin: "600px" });
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  const whole = useMemo(() => ({ kind: "figure" as const, ...figure.figure }), [figure]);
  return (
    <article ref={place} class="paper-figure" aria-label={figure.figure.title}>
      <div>
        {isSeen ? <FigureView figure={whole} other={undefined} /> : <div class="room" />}
        {figure.sources.map(([name, source]) => <p key={name} class="about muted">{name}: {source}</p>)}
        <p class="about muted">Measured again by <code>{commandOf(paper, figure)}</code></p>
      </div>
      <div>
        {claims.length === 0 && <p class="muted">No claim is on this figure alone.</p>}
        {claims.map((claim, number) => <ClaimView key={number} claim={claim} />)}
      </div>
    </article>
  );
}

function ClaimView({ claim }: { claim: Claim }) {
  return (
    <div class="claim">
      <p><span class={`verdict ${claim.verdict.replaceAll(" ", "-")}`}>{claim.verdict}</span> {claim.says} <span class="muted">{claim.source}{claim.mode ? ` · ${claim.mode}` : ""}</span></p>
      <table>
        <tbody>
          {claim.stated && <tr><th scope="row">paper</th><td>{claim.stated}</td></tr>}
          <tr><th scope="row">here</th><td>{claim.measured || "-"}</td></tr>
          <tr><th scope="row">rule</th><td>{claim.rule}</td></tr>
        </tbody>
      </table>
      {claim.notes.length > 0 && <ul class="about">{claim.notes.map((note) => <li key={note}>{note}</li>)}</ul>}
    </div>
  );
}
