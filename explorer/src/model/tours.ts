// Guided tours. Each step has its own picture; a question hides the numbers until it is answered, and what is right
// comes from the simulation, so that a tour never says what the page does not show.
import type { Results } from "../engine/requests";
import { factor, plain, seconds } from "./words";

/** A question about the results of a step. */
export interface Question {
  text: string;
  /** The answers to choose from, as numbers. */
  choices: number[];
  /** How a number is written. */
  unit(value: number): string;
  /** The right number. */
  of(results: Results[]): number;
}

export interface TourStep {
  text: string;
  /** The picture, as an address; a step without one keeps the picture before it. */
  hash?: string;
  ask?: Question;
  /** What the simulation says, once it is there and a question is answered. */
  says?(results: Results[]): string;
}

export interface Tour {
  name: string;
  title: string;
  steps: TourStep[];
}

function picture(designs: string[], values: Record<string, string> = {}): string {
  const parameters = new URLSearchParams(designs.map((design) => ["design", design]));
  for (const [key, text] of Object.entries(values)) parameters.set(key, text);
  return `#${parameters.toString()}`;
}

const ratio = (one: number, other: number) => Math.max(one, other) / Math.max(Math.min(one, other), 1e-9);
const written = (results: Results[], number: number) => results[number]?.write_amplification ?? 0;
const times = (value: number) => factor(value);

/** A rate that all of these designs sustain. */
const STEADY = { arrival: "constant(4000)" };

export const TOURS: Tour[] = [
  {
    name: "leveling",
    title: "Why leveling writes T times",
    steps: [
      {
        text: "A leveled tree keeps one sorted run in each level, and each level may be T times as large as the one above. Play: when a level is full, its data is merged into the next one, and the tables there that overlap are written again.",
        hash: picture(["leveling T=10"], STEADY),
      },
      {
        text: "How many bytes does this tree write for each byte of the user?",
        ask: { text: "Bytes written for each byte", choices: [2, 8, 20, 60], unit: times, of: (r) => written(r, 0) },
        says: (r) => `It writes ${times(written(r, 0))}: on its way down, an entry is merged into each level, and each time some T tables are rewritten with it.`,
      },
      {
        text: "With T=4 a level is rewritten less often, but there are more levels.",
        hash: picture(["leveling T=10", "leveling T=4"], STEADY),
        says: (r) => `T=4 writes ${times(written(r, 1))} where T=10 writes ${times(written(r, 0))}; lookups of missing keys read ${plain(r[1]?.missing ?? 0)} and ${plain(r[0]?.missing ?? 0)} blocks.`,
      },
    ],
  },
  {
    name: "tiering",
    title: "What tiering saves, and what it costs",
    steps: [
      {
        text: "Tiering gathers T runs in a level before it merges them into one run of the next level. Nothing in the target is rewritten.",
        hash: picture(["tiering T=10", "leveling T=10"], STEADY),
        ask: { text: "How many times the bytes of tiering does leveling write?", choices: [1.5, 3, 7, 20], unit: times, of: (r) => ratio(written(r, 0), written(r, 1)) },
        says: (r) => `${times(ratio(written(r, 0), written(r, 1)))}: each entry is written once in each level.`,
      },
      {
        text: "The price is paid by reads: a scan asks every run, and a lookup the filter of every run.",
        says: (r) => `Tiering has ${plain(r[0]?.runs ?? 0)} runs on average and leveling ${plain(r[1]?.runs ?? 0)}; a missing key costs ${plain(r[0]?.missing ?? 0)} and ${plain(r[1]?.missing ?? 0)} blocks, and the data takes ${times(r[0]?.space_amplification ?? 0)} and ${times(r[1]?.space_amplification ?? 0)} of its size.`,
      },
    ],
  },
  {
    name: "lazy",
    title: "The last level decides",
    steps: [
      {
        text: "Nine tenths of a tree with T=10 are in its last level. Lazy leveling tiers all levels but this one (Dostoevsky, SIGMOD 2018).",
        hash: picture(["lazy-leveling T=6", "tiering T=6", "leveling T=6"], STEADY),
        ask: { text: "Which share of leveling's bytes does lazy leveling write?", choices: [0.1, 0.4, 0.7, 0.95], unit: (v) => `${Math.round(v * 100)} %`, of: (r) => written(r, 0) / Math.max(written(r, 2), 1e-9) },
        says: (r) => `${Math.round((100 * written(r, 0)) / Math.max(written(r, 2), 1e-9))} %. Its space, ${times(r[0]?.space_amplification ?? 0)}, is near leveling's ${times(r[2]?.space_amplification ?? 0)}, and tiering's is ${times(r[1]?.space_amplification ?? 0)}.`,
      },
    ],
  },
  {
    name: "filters",
    title: "Where filters help, and where bits belong",
    steps: [
      {
        text: "A filter tells a lookup that a run has no such key. Without filters, a missing key costs a block in every run that covers it.",
        hash: picture(["tiering T=4; filter=0", "tiering T=4; filter=5", "tiering T=4; filter=10"], STEADY),
        ask: { text: "Blocks for a missing key without filters", choices: [1, 3, 7, 20], unit: plain, of: (r) => r[0]?.missing ?? 0 },
        says: (r) => `${plain(r[0]?.missing ?? 0)} without, ${plain(r[1]?.missing ?? 0)} with five bits for each key, ${plain(r[2]?.missing ?? 0)} with ten. Click into a tree and follow the lookup below.`,
      },
      {
        text: "Monkey (SIGMOD 2017) gives small levels more bits than large ones: there they cost little memory.",
        hash: picture(["leveling T=10; filter=5", "leveling T=10; filter=monkey(5)"], STEADY),
        says: (r) => `With the same memory, a missing key reads ${plain(r[0]?.missing ?? 0)} blocks with equal bits and ${plain(r[1]?.missing ?? 0)} with Monkey's.`,
      },
    ],
  },
  {
    name: "granularity",
    title: "A level at once, or a table at a time",
    steps: [
      {
        text: "The left tree merges whole levels, the right one a table at a time. Play both, and watch the green bars below the target levels.",
        hash: picture(["leveling; granularity=level", "leveling; granularity=file"], STEADY),
        ask: { text: "Which share of all merges does the left tree need?", choices: [0.05, 0.3, 0.7, 1.5], unit: (v) => `${Math.round(v * 100)} %`, of: (r) => (r[0]?.merges ?? 0) / Math.max(r[1]?.merges ?? 1, 1) },
        says: (r) => `${r[0]?.merges ?? 0} merges against ${r[1]?.merges ?? 0}. Merges of whole levels are few and large; those of tables are many and small, and spread the work over time.`,
      },
      {
        text: "A level that gives up single tables stays full, so each of them meets more tables below it. A level that moves as a whole is empty afterwards; but while its merge runs, the levels above wait.",
        says: (r) => `Whole levels write ${times(written(r, 0))} and tables ${times(written(r, 1))}, with at most ${r[0]?.most_runs ?? 0} and ${r[1]?.most_runs ?? 0} runs. Raise the arrival to constant(8000): then more runs wait where whole levels move.`,
      },
    ],
  },
  {
    name: "movement",
    title: "Which table moves next",
    steps: [
      {
        text: "If a level gives up one table, which one? The one with the least overlap below it costs least now; taking turns spreads the merges over all keys.",
        hash: picture(["leveling; movement=least-overlap", "leveling; movement=round-robin", "leveling; movement=oldest"], STEADY),
        ask: { text: "How much more does the costliest rule write than the cheapest?", choices: [1.02, 1.3, 2, 4], unit: times, of: (r) => ratio(Math.max(...r.map((_, n) => written(r, n))), Math.min(...r.map((_, n) => written(r, n)))) },
        says: (r) => `least-overlap ${times(written(r, 0))}, round-robin ${times(written(r, 1))}, oldest ${times(written(r, 2))} (compaction paper, §5).`,
      },
    ],
  },
  {
    name: "skew",
    title: "When some keys are written again and again",
    steps: [
      {
        text: "With Zipf's distribution, most writes of a memtable hit few keys, and merges drop their old versions early.",
        hash: picture(["leveling"], { ...STEADY, keys: "zipf(0.99)" }),
        ask: { text: "Bytes written for each byte of the user", choices: [3, 13, 20, 40], unit: times, of: (r) => written(r, 0) },
        says: (r) => `${times(written(r, 0))}. Set keys to uniform in the setup to see the difference, or to zipf(1.2) for more skew.`,
      },
    ],
  },
  {
    name: "deletes",
    title: "Deletes that must be gone within an hour",
    steps: [
      {
        text: "A delete writes a tombstone; the data is gone when the tombstone has met it in a merge at the bottom. Nothing says when that is. Lethe (SIGMOD 2020) gives each level a share of a deadline.",
        hash: picture(["lethe", "leveling"], { arrival: "constant(4000)", delete: "10", insert: "30", update: "60", time: "4h" }),
        ask: { text: "Which share of leveling's space does Lethe take?", choices: [0.3, 0.6, 0.9, 1.2], unit: (v) => `${Math.round(v * 100)} %`, of: (r) => (r[0]?.space_amplification ?? 0) / Math.max(r[1]?.space_amplification ?? 1, 1e-9) },
        says: (r) => `${Math.round((100 * (r[0]?.space_amplification ?? 0)) / Math.max(r[1]?.space_amplification ?? 1, 1e-9))} %, with ${times(written(r, 0))} bytes written against ${times(written(r, 1))}. The log names tombstone-ttl as the reason where a deadline moved a table.`,
      },
    ],
  },
  {
    name: "ttl",
    title: "Values that expire",
    steps: [
      {
        text: "All values of this log expire after half an hour. A table whose last value has expired is dropped unread.",
        hash: picture(["tiering T=4", "leveling"], { insert: "100", update: "0", ttl: "30min", start: "empty", arrival: "constant(5000)" }),
        ask: { text: "How much more does leveling write?", choices: [1, 2, 5, 15], unit: times, of: (r) => ratio(written(r, 0), written(r, 1)) },
        says: (r) => `${times(ratio(written(r, 0), written(r, 1)))}. Tiering dropped ${r[0]?.drops ?? 0} tables, each a whole run, and leveling ${r[1]?.drops ?? 0} small ones; what leveling merges again and again, tiering leaves to expire.`,
      },
    ],
  },
  {
    name: "schedulers",
    title: "Fair against greedy merges",
    steps: [
      {
        text: "Two merges share the bandwidth. The fair scheduler gives each the same; greedy finishes the smallest first (stability paper, §5.1.4). Play near 1:20 and compare the jobs: brown inputs belong to a merge that waits.",
        hash: picture(["tiering T=3; scheduler=fair; limit=global(2x); stop=30", "tiering T=3; scheduler=greedy; limit=global(2x); stop=30", "tiering T=3; scheduler=single; limit=global(2x); stop=30"], { arrival: "burst(4000,1200s,22000,300s)", at: "4800" }),
        says: (r) => `At most ${r[0]?.most_runs ?? 0} runs with fair, ${r[1]?.most_runs ?? 0} with greedy and ${r[2]?.most_runs ?? 0} with one merge at a time; writers stopped for ${seconds(r[0]?.stalled_seconds ?? 0)}, ${seconds(r[1]?.stalled_seconds ?? 0)} and ${seconds(r[2]?.stalled_seconds ?? 0)}.`,
      },
    ],
  },
  {
    name: "two-phases",
    title: "A test that looks sustainable and is not",
    steps: [
      {
        text: "One client writes as fast as it may. The tree stops it again and again, but the mean rate is high. This is how most benchmarks measure.",
        hash: picture(["tiering T=10"]),
        says: (r) => `${plain((r[0]?.rate ?? 0) / 1000)} thousand writes a second, and the client was stopped for ${seconds(r[0]?.stalled_seconds ?? 0)} of two hours.`,
      },
      {
        text: "Now users arrive at 95 % of that rate, whether or not the tree can take them. What waits is a queue.",
        hash: picture(["tiering T=10"], { arrival: "constant(34700)" }),
        ask: { text: "The latency that 1 % of the writes exceed", choices: [0.01, 1, 60, 600], unit: (v) => seconds(v), of: (r) => r[0]?.p99 ?? 0 },
        says: (r) => `${seconds(r[0]?.p99 ?? 0)}. ${(r[0]?.stalled_seconds ?? 0) > 0
          ? `Writers were stopped by ${r[0]?.stalled_by?.[0] ?? "the limit"} for ${seconds(r[0]?.stalled_seconds ?? 0)}: the first rate was not sustainable (stability paper, §3). While the largest merge runs, level 0 fills. Click into the chart of stopped writers to see it, and lower the arrival in the setup until nobody waits.`
          : "Now nobody waits. See in the chart of space amplification whether the tree is settled: a paused merge may only have been put off."}`,
      },
      {
        text: "Why? A merge of level 2 into level 3 has half of the bandwidth for a quarter of an hour; meanwhile level 0 fills to its limit. A client that waits does not show that, because it writes the more between such merges. Now 25,000 arrive a second.",
        hash: picture(["tiering T=10"], { arrival: "constant(25000)" }),
        says: (r) => `Writers were ${r[0]?.stalls ? `stopped for ${seconds(r[0].stalled_seconds)}` : "never stopped"}: a rate that lasts leaves room for the largest merge. Try lazy-leveling, or the scheduler greedy, and look at what each costs in space.`,
      },
    ],
  },
  {
    name: "values",
    title: "Large values apart from their keys",
    steps: [
      {
        text: "If values go to files of their own, merges move keys and pointers only (WiscKey, FAST 2016). Records of 16 KiB:",
        hash: picture(["leveling; values=separate(1KiB)", "leveling"], { "record-size": "16KiB", records: "1M", arrival: "constant(250)" }),
        ask: { text: "How many times the bytes do inline values write?", choices: [1.5, 4, 10, 40], unit: times, of: (r) => ratio(written(r, 0), written(r, 1)) },
        says: (r) => `${times(ratio(written(r, 0), written(r, 1)))}: ${times(written(r, 1))} against ${times(written(r, 0))}. The price: garbage in value files, and a second read for a lookup.`,
      },
    ],
  },
];

/** Returns the number of the choice that is nearest, by ratio. */
export function nearest(question: Question, value: number): number {
  const distance = (choice: number) => Math.abs(Math.log(Math.max(choice, 1e-9) / Math.max(value, 1e-9)));
  let best = 0;
  for (const [number, choice] of question.choices.entries()) {
    if (distance(choice) < distance(question.choices[best] ?? 0)) best = number;
  }
  return best;
}
