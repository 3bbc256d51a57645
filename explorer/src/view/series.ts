// The colours and names of the designs that are compared.

export const SERIES = ["a", "b", "c", "d"] as const;

/** Returns the colour of a custom property of the page. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function seriesColour(number: number): string {
  return colour(`series-${SERIES[number] ?? "a"}`);
}

/** Returns a text of at most this many characters. */
function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Returns a short name of a design: its first part. */
export function shortName(text: string, most = 26): string {
  const first = text.split(";")[0]?.trim() ?? text;
  return cut(first, most) + (text.includes(";") ? " …" : "");
}

/** Returns short names that differ: the first part of each design, with the settings that not all have. */
export function shortNames(texts: string[], most = 40): string[] {
  const parts = texts.map((text) => text.split(";").map((part) => part.trim()).filter((part) => part !== ""));
  const names = parts.map(([first = "", ...settings]) => {
    const own = settings.filter((setting) => !parts.every((other) => other.includes(setting)));
    return cut([first, ...(texts.length > 1 ? own : [])].join("; "), most);
  });
  const isUnique = (name: string) => names.filter((other) => other === name).length === 1;
  return names.map((name, number) => (isUnique(name) ? name : `${(SERIES[number] ?? "").toUpperCase()}: ${name}`));
}
