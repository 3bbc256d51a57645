import { useEffect, useReducer } from "preact/hooks";
import type { Clock } from "./clock";

/** Renders a component again when the clock moves, but at most this often. */
export function useClock(clock: Clock, millis = 100): void {
  const [, again] = useReducer((number: number) => number + 1, 0);
  useEffect(() => {
    let waiting = 0;
    const listener = () => {
      if (waiting) return;
      waiting = window.setTimeout(() => {
        waiting = 0;
        again(undefined as never);
      }, millis);
    };
    const end = clock.listen(listener);
    return () => {
      end();
      window.clearTimeout(waiting);
    };
  }, [clock, millis]);
}
