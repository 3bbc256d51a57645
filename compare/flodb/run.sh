#!/usr/bin/env bash
# Alternates between the published FloDB program and this engine: see README.md.
#
#   compare/flodb/run.sh SOURCE [BUILD]
#
# SOURCE is a checkout of LPD-EPFL/flodb, which is not modified; BUILD is the directory in which copies
# are built (default: a temporary directory, kept for the next run). ROUNDS (3), MILLIS (3000), INITIAL
# (500000) and THREADS ("1 2") set the scale. Writes RESULTS.md into the directory of this script.
set -euo pipefail

source=${1:?where is the checkout of LPD-EPFL/flodb?}
build=${2:-${TMPDIR:-/tmp}/terrane-flodb-build}
rounds=${ROUNDS:-3} millis=${MILLIS:-3000} initial=${INITIAL:-500000} threads_list=${THREADS:-1 2}
here=$(cd "$(dirname "$0")" && pwd)

# The flags of the paper's runs; 32 MiB of table slots and 96 MiB of skip-list.
flags=(CXX=g++ SET_CPU=0 FREQ_GHZ=2 ASCY_MEMTABLE=3 N_DRAINING_THREADS=1 COLLECT_STATS=1 MHT=1
  MSL=96 INIT=random)

build_one() { # folder, flags
  local folder=$build/$1
  shift
  [ -x "$folder/db_test" ] && return
  rm -rf "$folder"
  mkdir -p "$folder"
  cp -r "$source/." "$folder"
  make -C "$folder" clean >/dev/null 2>&1 || true
  make -C "$folder" -j2 db_test "${flags[@]}" "$@" >"$folder/build.log" 2>&1 ||
    { tail "$folder/build.log" >&2; exit 1; }
}
build_one memory DUMMY_PERSIST=1
build_one memory-scans DUMMY_PERSIST=1 SCANS=1
build_one disk
build_one disk-scans SCANS=1

executable=$(cd "$here/../.." && cargo bench -p terrane --bench flodb_workload --no-run 2>&1 |
  sed -n 's/.*Executable.*(\(.*\))$/\1/p')
executable=$(cd "$here/../.." && realpath "$executable")

data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
samples=$data/samples

# Runs a command and records its peak memory.
watch() {
  local key value rest
  "$@" >"$data/output" 2>&1 &
  while kill -0 $! 2>/dev/null; do
    while read -r key value rest; do
      if [ "$key" = VmHWM: ]; then echo "$value" >"$data/memory"; fi
    done 2>/dev/null <"/proc/$!/status" || true
    sleep 0.1
  done
  # The program leaves its main thread at the end, so its exit status is meaningless; check its output.
  wait $! || true
}

# Records row, column, millions of operations per second, CPU microseconds per operation, and memory in
# KiB, loading included. The operations of loading are counted too.
note() { # row, column, command...
  local row=$1 column=$2 output cpu mops
  shift 2
  TIMEFORMAT='%U %S'
  cpu=$({ time watch "$@" 2>/dev/null; } 2>&1)
  output=$(cat "$data/output")
  mops=$(sed -n 's/^#Mops \(.*\)$/\1/p; s/^\([0-9.]*\)$/\1/p' <<<"$output" | tail -1)
  [ -n "$mops" ] || { echo "$column, $row: $output" >&2; exit 1; }
  # A power of two is loaded.
  awk -v row="$row" -v column="$column" -v mops="$mops" -v cpu="$cpu" -v millis="$millis" \
    -v initial="$initial" -v memory="$(cat "$data/memory")" 'BEGIN {
      split(cpu, part, " "); loaded = 1; while (loaded < initial) loaded *= 2
      operations = mops * millis / 1000 + loaded / 1e6
      cpu = (part[1] + part[2]) / operations
      printf "%s\t%s\t%s\t%.3f\t%d\n", row, column, mops, cpu, memory / 1024
    }' >>"$samples"
}

row() { # place, threads, updates, scans
  local place=$1 threads=$2 updates=$3 scans=$4 folder=$1 wait=0 what
  [ "$scans" = 1 ] && folder=$place-scans
  [ "$place" = disk ] && wait=5
  what=$([ "$scans" = 1 ] && echo "$updates % updates, scans" || echo "$updates % updates")
  what="$place, $what, $threads threads"
  note "$what" "0 FloDB" env TEST_TMPDIR="$data" "$build/$folder/db_test" \
    -n"$threads" -i"$initial" -u"$updates" -d"$millis" -w"$wait"
  rm -rf "$data/db_test"
  local ours="leveling; buffer=128MiB" memtables=("flodb" "btree") memtable
  [ "$place" = memory ] && memtables=("flodb(flush=discard)" "flodb(membuffer=0%,flush=discard)")
  for memtable in "${memtables[@]}"; do
    for durability in none process; do
      note "$what" "$memtable, $durability" "$executable" "$ours; memtable=$memtable" \
        "$durability" "$threads" "$initial" "$updates" "$scans" "$millis" "$data/terrane"
    done
  done
}

for _ in $(seq "$rounds"); do
  for place in memory disk; do
    for threads in $threads_list; do
      row $place "$threads" 100 0
      row $place "$threads" 50 0
      row $place "$threads" 95 1
    done
  done
done

{
  echo "# FloDB's program and this engine"
  echo
  echo "Written by \`compare/flodb/run.sh\` at commit $(git -C "$here" rev-parse --short HEAD), on" \
    "$(nproc) processors, with ROUNDS=$rounds MILLIS=$millis"
  echo "INITIAL=$initial THREADS=\"$threads_list\". Ratios are taken within a round; medians. The first ratio is" \
    "of operations per"
  echo "second, the second of CPU time per operation: above 1, ours is faster or takes less. MiB is peak memory."
  echo "[README.md](README.md) explains the rows."
  echo
  echo "| | FloDB, Mops/s | its MiB | ours | log | operations a second | processor time | our MiB |"
  echo "|---|---:|---:|---|---|---:|---:|---:|"
  awk -F'\t' '
    function median(list, part, count, i, j, swap) {
      count = split(list, part, " ")
      for (i = 1; i <= count; i++) for (j = i + 1; j <= count; j++)
        if (part[j] + 0 < part[i] + 0) { swap = part[i]; part[i] = part[j]; part[j] = swap }
      return part[int((count + 1) / 2)]
    }
    $2 == "0 FloDB" {
      mops = $3; cpu = $4; published[$1] = published[$1] " " $3; theirs[$1] = theirs[$1] " " $5
      if (!($1 in seen)) { seen[$1] = 1; rows[++count] = $1 }
      next
    }
    {
      key = $1 "\t" $2
      if (!(key in rates)) { order[$1] = order[$1] "\t" $2 }
      rates[key] = rates[key] " " $3 / mops; costs[key] = costs[key] " " cpu / $4
      memory[key] = memory[key] " " $5
    }
    END {
      for (i = 1; i <= count; i++) {
        n = split(substr(order[rows[i]], 2), columns, "\t")
        for (j = 1; j <= n; j++) {
          split(columns[j], word, /, /); key = rows[i] "\t" columns[j]
          memtable = columns[j]; sub(/, [a-z]*$/, "", memtable)
          log_is = columns[j] ~ /none$/ ? "off" : "on"
          printf "| %s | %.2f | %d | `%s` | %s | %.2f× | %.2f× | %d |\n", \
            j == 1 ? rows[i] : "", median(published[rows[i]]), median(theirs[rows[i]]), memtable, \
            log_is, median(rates[key]), median(costs[key]), median(memory[key])
        }
      }
    }' "$samples"
} >"$here/RESULTS.md"
cat "$here/RESULTS.md"
