// The colours and names of the designs that are compared.

export const SERIES = ["a", "b", "c", "d"] as const;

/** Returns the colour of a custom property of the page. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function seriesColour(number: number): string {
  return colour(`series-${SERIES[number] ?? "a"}`);
}

/** Returns a short name of a design: its first part. */
export function shortName(text: string, most = 26): string {
  const first = text.split(";")[0]?.trim() ?? text;
  const more = text.includes(";") ? " …" : "";
  const name = first.length > most ? `${first.slice(0, most - 1)}…` : first;
  return name + more;
}
