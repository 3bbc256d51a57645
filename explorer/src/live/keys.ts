// Where keys are in a picture. A key has no natural place: those of an application may share a long prefix, or come in
// clusters. So the picture gives each range of keys a width in proportion to its data.
import type { KeyText } from "./messages";

/** A key as a string with a character for each byte, so that strings compare like keys. */
export type Key = string;

/** Greater than every key. */
export const LAST: Key = "\uffff";

export function keyOf(text: KeyText): Key {
  if (typeof text === "string") {
    let key = "";
    for (const byte of new TextEncoder().encode(text)) key += String.fromCharCode(byte);
    return key;
  }
  return text.hex.replace(/../g, (pair) => String.fromCharCode(parseInt(pair, 16)));
}

/** A key for people: as text if it is printable, otherwise in hexadecimal. */
export function shownKey(text: KeyText): string {
  const isPrintable = typeof text === "string" && !/[\u0000-\u001f\u007f]/.test(text);
  const shown = isPrintable ? `'${text}'` : [...keyOf(text)].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  return shown.length > 40 ? `${shown.slice(0, 39)}…` : shown;
}

interface Span {
  start: Key;
  end: Key;
  bytes: number;
}

/** Numbers for keys, by the bytes that occur in them: the distance of "09" and "10" is that of "10" and "11". */
class Digits {
  #rank = new Map<string, number>();
  #count: number;

  constructor(keys: Key[]) {
    const bytes = new Set<string>();
    // A sample is enough: other bytes lie between those.
    const step = Math.max(1, Math.floor(keys.length / 1000));
    for (let place = 0; place < keys.length; place += step) for (const byte of keys[place] ?? "") bytes.add(byte);
    [...bytes].sort().forEach((byte, rank) => this.#rank.set(byte, rank));
    this.#count = Math.max(2, bytes.size);
  }

  /** Returns a key as a number from 0 to 1, without its first bytes. */
  value(key: Key, skipped: number): number {
    if (key === LAST) return 1;
    let [value, unit] = [0, 1 / this.#count];
    for (let place = skipped; place < key.length && unit > 1e-16; place += 1, unit /= this.#count) {
      value += (this.#rank.get(key[place] ?? "") ?? 0) * unit;
    }
    return value;
  }
}

function commonPrefix(one: Key, other: Key): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

/** Maps keys to places from 0 to 1. */
export class KeyScale {
  #keys: Key[] = [];
  #places: number[] = [];

  /** Makes a scale in which each range of keys is about as wide as its share of the bytes. */
  constructor(spans: Iterable<Span>) {
    const all = [...spans];
    const keys = [...new Set(all.flatMap(({ start, end }) => [start, end]))].sort((one, other) => (one < other ? -1 : 1));
    const at = new Map(keys.map((key, place) => [key, place]));
    const digits = new Digits(keys);
    // The bytes between each bound and the next.
    const weights = new Float64Array(keys.length);
    for (const { start, end, bytes } of all) {
      const [from, to] = [at.get(start) ?? 0, at.get(end) ?? 0];
      const skipped = commonPrefix(start, end);
      const values: number[] = [];
      for (let place = from; place <= to; place += 1) values.push(digits.value(keys[place] ?? "", skipped));
      const whole = (values.at(-1) ?? 0) - (values[0] ?? 0);
      for (let place = from; place < to; place += 1) {
        const share = whole > 0 ? Math.max(0, (values[place - from + 1] ?? 0) - (values[place - from] ?? 0)) / whole : 1 / (to - from);
        weights[place] = (weights[place] ?? 0) + share * Math.max(1, bytes);
      }
    }
    let sum = 0;
    const places = keys.map((_, place) => {
      const here = sum;
      sum += weights[place] ?? 0;
      return here;
    });
    this.#keys = keys;
    this.#places = places.map((place) => (sum > 0 ? place / sum : 0));
  }

  /** Returns the place of a key. One between two known bounds is in their middle. */
  place(key: Key): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] ?? "") < key) low = middle + 1;
      else high = middle;
    }
    if (this.#keys[low] === key) return this.#places[low] ?? 0;
    const before = low > 0 ? (this.#places[low - 1] ?? 0) : 0;
    return (before + (this.#places[low] ?? 1)) / 2;
  }

  /** Returns true if a key is within the bounds. */
  covers(key: Key): boolean {
    const [first, last] = [this.#keys[0], this.#keys.at(-1)];
    return first !== undefined && last !== undefined && first <= key && key <= last;
  }
}
