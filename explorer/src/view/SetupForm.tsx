import { useEffect, useState } from "preact/hooks";
import { DATA, LOAD, MACHINE, OPERATIONS, constantsOf, fault, valueOf, type Field, type Setup } from "../state/setup";

const GROUPS: [string, Field[], boolean][] = [
  ["Data", DATA, true],
  ["Load", LOAD, true],
  ["Operations", OPERATIONS, false],
  ["Machine", MACHINE, false],
];

/** The workload and the machine. */
export function SetupForm({ setup, onChange }: { setup: Setup; onChange(key: string, text: string): void }) {
  return (
    <>
      {GROUPS.map(([title, fields, open]) => (
        <details key={title} open={open} class="group">
          <summary>{title}</summary>
          <div class="menus">
            {fields.map((field) => (
              <FieldInput key={field.key} field={field} value={valueOf(setup, field.key)}
                onChange={(text) => onChange(field.key, text)} />
            ))}
          </div>
          {title === "Machine" && <Constants onChange={onChange} />}
        </details>
      ))}
    </>
  );
}

/** Reads the constants of a machine from a file. */
function Constants({ onChange }: { onChange(key: string, text: string): void }) {
  const [error, setError] = useState("");
  const read = async (file: File | undefined) => {
    if (!file) return;
    try {
      for (const [key, text] of constantsOf(await file.text())) onChange(key, text);
      setError("");
    } catch (reason) {
      setError(`${file.name}: ${reason instanceof Error ? reason.message : String(reason)}`);
    }
  };
  return (
    <>
      <label>
        Constants of <code>terrane simulate calibrate --output FILE</code>
        <input type="file" accept=".toml" onClick={(event) => { event.currentTarget.value = ""; }} onChange={(event) => void read(event.currentTarget.files?.[0])} />
      </label>
      {error && <p class="error" role="alert">{error}</p>}
    </>
  );
}

function FieldInput({ field, value, onChange }: { field: Field; value: string; onChange(text: string): void }) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  const wrong = fault(field, draft);
  const id = `field-${field.key}`;
  const commit = () => { if (!wrong && draft.trim() !== value) onChange(draft.trim()); };
  return (
    <div>
      <label for={id} title={field.hint}>{field.label}</label>
      {field.options ? (
        <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {field.options.map((option) => <option key={option} value={option}>{option}</option>)}
        </select>
      ) : (
        <input id={id} value={draft} title={field.hint} placeholder={field.hint} aria-invalid={wrong !== undefined}
          aria-describedby={wrong ? `${id}-error` : undefined}
          onInput={(event) => setDraft(event.currentTarget.value)} onBlur={commit}
          onKeyDown={(event) => { if (event.key === "Enter") commit(); }} />
      )}
      {wrong && <p id={`${id}-error`} class="error" role="alert">{wrong}</p>}
    </div>
  );
}
