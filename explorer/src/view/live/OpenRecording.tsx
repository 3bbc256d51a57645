import { useState } from "preact/hooks";
import { recordingOf } from "../../live/source";
import type { LiveStore } from "../../live/store";

/** Opens a file of `terrane top --record`. */
export function OpenRecording({ onOpen }: { onOpen(store: LiveStore): void }) {
  const [error, setError] = useState("");
  const read = (file: File | undefined) => {
    if (!file) return;
    recordingOf(file).then((store) => { setError(""); onOpen(store); }, (reason: Error) => setError(reason.message));
  };
  return (
    <div class="recording">
      <label>
        Open a recording of <code>terrane top --record</code>{" "}
        <input type="file" accept=".jsonl,.json,.txt" onClick={(event) => { event.currentTarget.value = ""; }} onChange={(event) => read(event.currentTarget.files?.[0])} />
      </label>
      {error && <p class="error" role="alert">{error}</p>}
    </div>
  );
}
