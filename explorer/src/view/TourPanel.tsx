import { useState } from "preact/hooks";
import { TOURS, nearest, type Question, type Tour } from "../model/tours";
import type { Run } from "../state/run";

/** Where somebody is in a tour. */
export interface Place {
  tour: Tour;
  step: number;
}

/** Reads a place such as leveling.2 from an address; null if there is none. */
export function placeOf(text: string | undefined): Place | null {
  const [name, number] = (text ?? "").split(".");
  const tour = TOURS.find((one) => one.name === name);
  const step = Number(number ?? 1) - 1;
  return tour && tour.steps[step] ? { tour, step } : null;
}

export function placeText({ tour, step }: Place): string {
  return `${tour.name}.${step + 1}`;
}

/** A step of a tour, with its question. */
export function TourPanel({ place, runs, answered, onAnswer, onGo, onLeave }: {
  place: Place; runs: Run[]; answered: boolean; onAnswer(): void; onGo(place: Place): void; onLeave(): void;
}) {
  const { tour, step } = place;
  const current = tour.steps[step];
  if (!current) return null;
  const results = runs.flatMap((run) => (run.played && !run.stale ? [run.played.results] : []));
  const isReady = results.length === runs.length && runs.length > 0;
  const go = (by: number) => onGo({ tour, step: step + by });
  return (
    <section class="tour" aria-labelledby="tour-title" aria-live="polite">
      <h2 id="tour-title">{tour.title} <span class="muted">{step + 1} of {tour.steps.length}</span></h2>
      <p>{current.text}</p>
      {current.ask && <Ask key={placeText(place)} question={current.ask} answered={answered}
        value={isReady ? current.ask.of(results) : null} onAnswer={onAnswer} />}
      {current.says && isReady && (!current.ask || answered) && <p class="says">{current.says(results)}</p>}
      <div class="buttons">
        <button type="button" disabled={step === 0} onClick={() => go(-1)}>Back</button>
        <button type="button" disabled={step + 1 === tour.steps.length} onClick={() => go(1)}>Next</button>
        <button type="button" class="quiet" onClick={onLeave}>Leave the tour</button>
      </div>
    </section>
  );
}

/** A question whose answer is hidden until one has guessed. */
function Ask({ question, answered, value, onAnswer }: {
  question: Question; answered: boolean; value: number | null; onAnswer(): void;
}) {
  const [guess, setGuess] = useState<number | null>(null);
  const right = value === null ? -1 : nearest(question, value);
  const verdict = guess === null ? "" : guess === right ? "Right." : `It is nearest to ${question.unit(question.choices[right] ?? 0)}.`;
  return (
    <fieldset class="question">
      <legend>Predict before you look: {question.text}</legend>
      {question.choices.map((choice, number) => (
        <label key={choice}>
          <input type="radio" name="guess" checked={guess === number} disabled={answered}
            onChange={() => setGuess(number)} /> {question.unit(choice)}
        </label>
      ))}
      {!answered && <button type="button" disabled={guess === null || value === null} onClick={onAnswer}>Show</button>}
      {answered && <p role="status">{verdict}</p>}
    </fieldset>
  );
}

/** The list of all tours. */
export function TourList({ onStart }: { onStart(place: Place): void }) {
  return (
    <details class="tours">
      <summary>Guided tours</summary>
      <ul>
        {TOURS.map((tour) => (
          <li key={tour.name}><button type="button" class="quiet" onClick={() => onStart({ tour, step: 0 })}>{tour.title}</button></li>
        ))}
      </ul>
    </details>
  );
}
