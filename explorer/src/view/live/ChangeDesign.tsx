import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../../engine/client";
import type { Catalogue } from "../../engine/requests";
import { sendChange } from "../../live/source";
import { bytes, count, plain } from "../../model/words";
import { DesignEditor } from "../DesignEditor";

interface Amplification {
  runs: number;
  blocks_per_missing_key: number;
  space: number;
}

interface Forecast {
  design_before: string;
  design: string;
  jobs: number;
  tables_rewritten: number;
  tables_moved: number;
  bytes_rewritten: number;
  peak_extra_bytes: number;
  before: Amplification;
  after: Amplification;
  is_complete: boolean;
}

interface Props {
  keyspace: string;
  present: string;
  token: string;
  allowsChanges: boolean;
}

/** Forecasts a change of design, and makes it if the command allows that. */
export function ChangeDesign({ keyspace, present, token, allowsChanges }: Props) {
  const [catalogue, setCatalogue] = useState<Catalogue | null>(null);
  const [text, setText] = useState(present);
  const [forecast, setForecast] = useState<Forecast | null>(null);
  const [message, setMessage] = useState("");
  const [error, setError] = useState("");
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    if (isOpen && !catalogue) ask<"catalogue">({ call: "catalogue" }).then(setCatalogue, (reason: Error) => setError(reason.message));
  }, [isOpen]);
  const asked = useRef({ number: 0, at: -Infinity });
  const send = (path: "forecast" | "design", design: string) => {
    setError("");
    setMessage("");
    const number = ++asked.current.number;
    asked.current.at = path === "forecast" ? performance.now() : -Infinity;
    const isNewest = () => asked.current.number === number;
    sendChange(path, token, keyspace, design).then(
      (reply) => {
        if (!isNewest()) return;
        setForecast(path === "forecast" ? (reply as Forecast) : null);
        if (path === "design") setMessage("The design has changed. The jobs above convert the tree.");
      },
      (reason: Error) => { if (isNewest()) setError(reason.message); },
    );
  };
  // A forecast is of the text that it was asked for. A click that ends the editing of a text comes before the change.
  const change = (changed: string) => {
    setText(changed);
    setForecast(null);
    setMessage("");
    asked.current.number += 1;
    if (performance.now() - asked.current.at < 1000) send("forecast", changed);
  };
  return (
    <section aria-labelledby="change-title">
      <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary><h2 id="change-title">{allowsChanges ? "Change the design" : "Forecast a change of design"}</h2></summary>
        <div class="change">
          {catalogue && <DesignEditor text={text} number={0} catalogue={catalogue} removable={false} onChange={change} onRemove={() => undefined} />}
          <div class="buttons">
            <button type="button" onClick={() => send("forecast", text)}>Forecast</button>
            {allowsChanges && forecast && <button type="button" class="play" onClick={() => send("design", text)}>Change the design of {keyspace}</button>}
          </div>
          {error && <p class="error" role="alert">{error}</p>}
          {message && <p role="status">{message}</p>}
          {forecast && <ForecastText forecast={forecast} />}
          {!allowsChanges && <p class="muted">The command was started without --allow-changes, so the page can only forecast.</p>}
        </div>
      </details>
    </section>
  );
}

function ForecastText({ forecast }: { forecast: Forecast }) {
  const { before, after } = forecast;
  return (
    <div role="status">
      <p>
        {forecast.jobs === 0 ? "The tree already satisfies the design." : `${count(forecast.jobs)} compactions rewrite ${bytes(forecast.bytes_rewritten)} ` +
          `and move ${count(forecast.tables_moved)} tables; at most ${bytes(forecast.peak_extra_bytes)} exist twice meanwhile.`}
        {forecast.is_complete ? "" : " This is a part of the work: the forecast ends after its maximum number of compactions."}
      </p>
      <table>
        <thead><tr><th scope="col">tree</th><th scope="col">before</th><th scope="col">after</th></tr></thead>
        <tbody>
          <tr><th scope="row">sorted runs</th><td>{before.runs}</td><td>{after.runs}</td></tr>
          <tr><th scope="row">blocks for a missing key</th><td>{plain(before.blocks_per_missing_key)}</td><td>{plain(after.blocks_per_missing_key)}</td></tr>
          <tr><th scope="row">obsolete data, at most</th><td>{plain(before.space * 100)} %</td><td>{plain(after.space * 100)} %</td></tr>
        </tbody>
      </table>
    </div>
  );
}
