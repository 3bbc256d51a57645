// Pictures to begin with.
export const EXAMPLES: { title: string; hash: string }[] = [
  { title: "Leveling against tiering", hash: "#design=leveling&design=tiering" },
  {
    title: "A rate that tiering does not sustain",
    hash: `#${new URLSearchParams({ design: "tiering T=10; stop=14; delay=12", arrival: "constant(40000)", time: "2h" })}`,
  },
  {
    title: "Fair against greedy merges in bursts",
    hash: `#${new URLSearchParams([
      ["design", "tiering T=3; scheduler=fair; limit=global(2x)"],
      ["design", "tiering T=3; scheduler=greedy; limit=global(2x)"],
      ["arrival", "burst(4000,1200s,22000,300s)"],
    ])}`,
  },
  {
    title: "Deletes that must persist within an hour",
    hash: `#${new URLSearchParams([
      ["design", "lethe"], ["design", "leveling"], ["delete", "10"], ["update", "60"], ["insert", "30"],
      ["arrival", "constant(4000)"], ["time", "4h"],
    ])}`,
  },
  { title: "Values that expire", hash: `#${new URLSearchParams({ design: "tiering T=4", insert: "100", update: "0", ttl: "30min", start: "empty", arrival: "constant(5000)" })}` },
];
