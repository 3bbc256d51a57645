import { useEffect, useState } from "preact/hooks";
import { DATA, LOAD, MACHINE, OPERATIONS, fault, valueOf, type Field, type Setup } from "../state/setup";

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
        </details>
      ))}
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
