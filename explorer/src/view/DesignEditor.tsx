import { useEffect, useState } from "preact/hooks";
import { ask } from "../engine/client";
import type { Catalogue, DescribedDesign } from "../engine/requests";
import { SERIES } from "./series";

/** Settings that are typed, with their labels. */
const TYPED: [string, string][] = [
  ["T", "Size ratio T"],
  ["L0", "Runs of level 0"],
  ["buffer", "Memtable"],
  ["table", "Table"],
  ["block", "Block"],
  ["filter", "Filter bits"],
  ["delay", "Delay at runs"],
  ["stop", "Stop at runs"],
  ["buffers", "Stop at memtables"],
];

/** What a setting is if the text does not name it. */
const ABSENT: Record<string, string> = {
  flush: "new", growth: "fixed", intake: "all", violation: "stop", limit: "level0", stall: "runs",
  values: "inline", scheduler: "fair",
};

interface Props {
  text: string;
  number: number;
  catalogue: Catalogue;
  removable: boolean;
  onChange(text: string): void;
  onRemove(): void;
}

/** A design as text and as menus, which always say the same. */
export function DesignEditor({ text, number, catalogue, removable, onChange, onRemove }: Props) {
  const [draft, setDraft] = useState(text);
  const [described, setDescribed] = useState<DescribedDesign | null>(null);
  const [error, setError] = useState("");
  const id = `design-${number}`;
  useEffect(() => {
    setDraft(text);
    let current = true;
    ask<"design">({ call: "design", text }).then(
      (answer) => { if (current) { setDescribed(answer); setError(""); } },
      (reason: Error) => { if (current) setError(reason.message); },
    );
    return () => { current = false; };
  }, [text]);

  const commit = () => {
    if (draft.trim() === text) return setError("");
    ask<"design">({ call: "design", text: draft }).then(
      () => { setError(""); onChange(draft.trim()); },
      (reason: Error) => setError(reason.message),
    );
  };
  const change = (key: string, value: string) => {
    ask<"change">({ call: "change", text, key, value }).then(
      (answer) => { setError(""); onChange(answer.text); },
      (reason: Error) => setError(`${key}=${value}: ${reason.message}`),
    );
  };
  const named = catalogue.designs.find((design) => design.name === text.trim());
  return (
    <fieldset class={`design series-${SERIES[number]}`}>
      <legend><span class={`swatch series-${SERIES[number]}`} />Design {SERIES[number]?.toUpperCase()}</legend>
      <label for={`${id}-named`}>Named design</label>
      <select id={`${id}-named`} value={named?.name ?? ""} onChange={(event) => event.currentTarget.value && onChange(event.currentTarget.value)}>
        <option value="">(own)</option>
        {catalogue.designs.map((design) => <option key={design.name} value={design.name}>{design.name}</option>)}
      </select>
      <label for={`${id}-text`}>Text</label>
      <textarea
        id={`${id}-text`} rows={2} value={draft} spellcheck={false} aria-invalid={error !== ""}
        aria-describedby={error ? `${id}-error` : undefined}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onBlur={commit}
        onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); commit(); } }}
      />
      {error && <p id={`${id}-error`} class="error" role="alert">{error}</p>}
      {named && <p class="about">{named.about} <span class="muted">{named.source}{named.beyond && `; not included: ${named.beyond}`}</span></p>}
      {described && <Menus id={id} described={described} catalogue={catalogue} change={change} />}
      {removable && <button type="button" class="quiet" onClick={onRemove}>Remove design {SERIES[number]?.toUpperCase()}</button>}
    </fieldset>
  );
}

function Menus({ id, described, catalogue, change }: {
  id: string; described: DescribedDesign; catalogue: Catalogue; change(key: string, value: string): void;
}) {
  const settings = new Map(described.settings);
  const valueOf = (key: string) => (key === "name" ? described.eagerness : (settings.get(key) ?? ABSENT[key] ?? ""));
  const menu = ({ key, values }: { key: string; values: string[] }) => {
    const value = valueOf(key);
    // A hybrid's value is printed with its runs, which the menu sets.
    const found = key === "name" ? values.find((one) => one.split(" ")[0] === value.split(/[ (]/)[0]) : values.find((one) => one === value);
    return (
      <div key={key}>
        <label for={`${id}-${key}`}>{key === "name" ? "eagerness" : key}</label>
        <select id={`${id}-${key}`} value={found ?? value} onChange={(event) => change(key, event.currentTarget.value)}>
          {!found && <option value={value}>{value || "(default)"}</option>}
          {values.map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
      </div>
    );
  };
  const [first, rest] = [catalogue.choices.slice(0, 4), catalogue.choices.slice(4)];
  return (
    <>
      <div class="menus">{first.map(menu)}</div>
      <details>
        <summary>More settings</summary>
        <div class="menus">
          {TYPED.map(([key, label]) => (
            <Typed key={key} id={`${id}-${key}`} label={label} value={settings.get(key) ?? ""} change={(value) => change(key, value)} />
          ))}
          {rest.map(menu)}
        </div>
      </details>
    </>
  );
}

function Typed({ id, label, value, change }: { id: string; label: string; value: string; change(value: string): void }) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  const commit = () => { if (draft.trim() !== value && draft.trim() !== "") change(draft.trim()); };
  return (
    <div>
      <label for={id}>{label}</label>
      <input id={id} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} onBlur={commit}
        onKeyDown={(event) => { if (event.key === "Enter") commit(); }} />
    </div>
  );
}
