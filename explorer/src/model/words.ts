// Numbers as people read them, and back.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: number): string {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${short(value)} ${UNITS[unit]}`;
}

function short(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** 12,345 as 12.3 k. */
export function count(value: number): string {
  for (const [size, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (value >= size) return `${short(value / size)} ${name}`;
  }
  return short(value);
}

export function seconds(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return "-";
  if (value === 0) return "0 s";
  if (value < 1e-3) return `${short(value * 1e6)} µs`;
  if (value < 1) return `${short(value * 1e3)} ms`;
  if (value < 120) return `${short(value)} s`;
  if (value < 7200) return `${short(value / 60)} min`;
  return `${short(value / 3600)} h`;
}

/** A time of the clock: 1:02:03. */
export function clock(value: number): string {
  const whole = Math.floor(value);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number: number) => String(number).padStart(2, "0");
  return `${hours}:${two(minutes)}:${two(rest)}`;
}

export function factor(value: number | null): string {
  return value === null ? "-" : `${short(value)}x`;
}

export function plain(value: number | null): string {
  if (value === null) return "-";
  return value !== 0 && Math.abs(value) < 0.01 ? value.toExponential(1) : short(value);
}

const SIZES: Record<string, number> = {
  "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, B: 1,
  KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4,
};

/** Reads 100M, 1e9, 64MiB or 20MB/s; undefined if it is none of them. */
export function quantity(text: string): number | undefined {
  const match = /^\s*([0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?)\s*([A-Za-z]*)(?:\/s)?\s*$/.exec(text);
  const unit = match ? SIZES[match[2] ?? ""] : undefined;
  return match && unit !== undefined ? Number(match[1]) * unit : undefined;
}

/** Reads 2h, 30min, 90s or a number of seconds. */
export function duration(text: string): number | undefined {
  const match = /^\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h|d)?\s*$/.exec(text);
  const units: Record<string, number> = { s: 1, min: 60, m: 60, h: 3600, d: 86_400 };
  return match ? Number(match[1]) * (units[match[2] ?? "s"] ?? 1) : undefined;
}
