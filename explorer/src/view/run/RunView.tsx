import { useState } from "preact/hooks";
import { figuresOf, runOfFile, type Block, type RunPage } from "../../run/run";
import { FigureView } from "./FigureView";

/** A run of `bench`, `simulate` or `stability`, alone or with another one. */
export function RunView({ run }: { run: RunPage }) {
  const [other, setOther] = useState<{ name: string; run: RunPage } | null>(null);
  const [error, setError] = useState("");
  const read = (file: File | undefined) => {
    if (!file) return;
    runOfFile(file).then((found) => { setError(""); setOther({ name: file.name, run: found }); }, (reason: Error) => setError(reason.message));
  };
  const settingOf = (of: RunPage, name: string) => of.setting.find(([known]) => known === name)?.[1] ?? "";
  const names = [...new Set([...run.setting, ...(other?.run.setting ?? [])].map(([name]) => name))];
  return (
    <>
      <header>
        <h1>{run.title}</h1>
        <nav aria-label="pages"><a href="#explore">Design explorer</a></nav>
        <div class="recording">
          <label>Compare with another report <input type="file" accept=".html" onClick={(event) => { event.currentTarget.value = ""; }} onChange={(event) => read(event.currentTarget.files?.[0])} /></label>
          {other && <button type="button" class="quiet" onClick={() => setOther(null)}>Remove {other.name}</button>}
          {error && <p class="error" role="alert">{error}</p>}
        </div>
      </header>
      <main>
        <div class="scroll">
          <table class="setting">
            {other && <thead><tr><td /><th scope="col">this run</th><th scope="col">2: {other.run.title}</th></tr></thead>}
            <tbody>
              {names.map((name) => (
                <tr key={name}><th scope="row">{name}</th><td>{settingOf(run, name)}</td>{other && <td>{settingOf(other.run, name)}</td>}</tr>
              ))}
            </tbody>
          </table>
        </div>
        {run.blocks.map((block, place) => <BlockView key={place} block={block} other={other?.run} />)}
      </main>
    </>
  );
}

function BlockView({ block, other }: { block: Block; other: RunPage | undefined }) {
  switch (block.kind) {
    case "heading":
      return <h2>{block.text}</h2>;
    case "text":
      return <p class={block.mark ? `mark ${block.mark}` : ""}>{block.text}</p>;
    case "list":
      return block.items.length > 0 ? <ul>{block.items.map((item, place) => <li key={place}>{item}</li>)}</ul> : null;
    case "table":
      return (
        <div class="scroll" tabIndex={0} role="group" aria-label="table">
          <table>
            <thead><tr>{block.columns.map((column) => <th key={column} scope="col">{column}</th>)}</tr></thead>
            <tbody>
              {block.rows.map((row, place) => (
                <tr key={place}>{row.map((cell, column) => (column === 0 ? <th key={column} scope="row">{cell}</th> : <td key={column}>{cell}</td>))}</tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "figure":
      return <FigureView figure={block} other={other && figuresOf(other).find((one) => one.title === block.title && one.y_label === block.y_label)} />;
  }
}
