import type { LiveStore } from "../../live/store";
import type { LiveTree } from "../../live/tree";
import { whatIf } from "../../live/what_if";

/** Leads to the simulator, which goes on from the tree and the workload of now. */
export function WhatIf({ store, tree }: { store: LiveStore; tree: LiveTree }) {
  const question = whatIf(store, tree);
  return (
    <section aria-labelledby="what-if-title">
      <h2 id="what-if-title">What if</h2>
      {question ? (
        <p><a href={question.hash}>Simulate the next hour under this design and another one</a>. {question.assumes}</p>
      ) : <p class="muted">There are no tables yet, so there is nothing to continue.</p>}
    </section>
  );
}
