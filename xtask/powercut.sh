#!/usr/bin/env bash
# Cuts the power of a file system while databases on it are written to, and checks the databases.
#
# An XFS with reflinks, itself in a file, holds the image of the file system under test. The image
# is mounted while a process writes to databases on it. "Pulling the plug" is a reflink copy of the
# image: an atomic copy of what the kernel has written to the device. The copy is mounted, which
# replays the journal of the file system, and another process opens the databases under another boot
# id and compares them with the guarantees to the writer (crates/terrane-tests/tests/powercut).
# Sometimes the power of the copy is cut as well, while its databases recover.
#
# Limits: these file systems make the name of a new file durable with its contents, so a missing sync
# of a directory is not noticed; and every write that the kernel has issued counts as done, so a device
# that loses its cache is not modelled. The crash suite on MemoryStorage covers both.
set -euo pipefail

usage() {
    cat <<'END'
usage: xtask/powercut.sh [--minutes N] [--dir DIR] [--seed S] [MODE...]

  --minutes N  minutes for all modes together (default 6)
  --dir DIR    where the images go, at most 2 GiB (default: a temporary directory)
  --seed S     the seed of the writer (default: the time)
  MODE         ext4-writeback (noauto_da_alloc,data=writeback), ext4, or xfs (default: all)

Needs Linux, root, loop devices, mkfs.xfs and mkfs.ext4.
END
}

fail() {
    echo "powercut: $*" >&2
    exit 1
}

minutes=6 dir='' seed=$(date +%s) modes=()
while [ $# -gt 0 ]; do
    case $1 in
    --minutes | --dir | --seed) [ $# -ge 2 ] || { usage; exit 2; } ;;&
    --minutes) minutes=$2; shift 2 ;;
    --dir) dir=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    ext4-writeback | ext4 | xfs) modes+=("$1"); shift ;;
    *) usage; exit 2 ;;
    esac
done
[ ${#modes[@]} -gt 0 ] || modes=(ext4-writeback ext4 xfs)

[ "$(id -u)" = 0 ] || fail "mounting needs root"
for tool in mkfs.xfs mkfs.ext4 losetup mount unshare cargo; do
    command -v "$tool" >/dev/null || fail "$tool is missing (Debian: apt install xfsprogs e2fsprogs util-linux)"
done
losetup --find >/dev/null || fail "there is no free loop device"

repository=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${dir:-${TMPDIR:-/tmp}}/terrane-powercut.XXXXXX")
host=$work/host disk=$work/disk cut=$work/cut again=$work/again
writer='' checker=''

stop() {
    # The test harness runs the writer in its own process, so one signal ends both.
    if [ -n "$1" ]; then kill -9 "$1" 2>/dev/null || true; wait "$1" 2>/dev/null || true; fi
}

unmount() {
    # A process that was just killed may hold the mount for a moment.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        mountpoint -q "$1" || return 0
        umount "$1" 2>/dev/null && return 0
        sleep 0.2
    done
    umount --lazy "$1"
}

cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    stop "$writer"
    stop "$checker"
    for mount in "$again" "$cut" "$disk" "$host"; do unmount "$mount" || true; done
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
mkdir "$host" "$disk" "$cut" "$again"

echo "==> build"
program=$(cd "$repository" && "${CARGO:-cargo}" test --profile soak --package terrane-tests --test powercut --no-run \
    --message-format=json | grep -o '"executable":"[^"]*/powercut-[^"]*"' | cut -d'"' -f4)
[ -x "$program" ] || fail "cargo reports no executable"

mount_options() {
    case $1 in
    ext4-writeback) echo loop,noauto_da_alloc,data=writeback ;;
    ext4) echo loop ;;
    xfs) echo loop,nouuid ;;
    esac
}

# Runs the checker under another boot id, and adds its counts to the file "counts".
check() { # ROOT BEFORE AFTER OUTPUT
    env TERRANE_POWERCUT_ROOT="$1" TERRANE_POWERCUT_RECORDS="$2" TERRANE_POWERCUT_RECORDS_AFTER="$3" \
        RUST_BACKTRACE=0 unshare --mount sh -c '
            cat /proc/sys/kernel/random/uuid >"$1" &&
            mount --bind "$1" /proc/sys/kernel/random/boot_id &&
            exec "$2" --exact check_after_a_cut --nocapture --test-threads=1
        ' sh "$work/boot_id" "$program" >"$4" 2>&1
}

failed() { # OUTPUT IMAGE
    cat "$1"
    if [ "$saved" = 0 ]; then
        saved=1
        kept=$(mktemp -d "${TMPDIR:-/tmp}/terrane-powercut-failure.XXXXXX")
        cp --sparse=always "$2" "$kept/image"
        cp -r "$work/before" "$work/after" "$kept"
        echo "powercut: the image and the records of this cut are in $kept"
    fi
    failures=$((failures + 1))
}

random() { # BELOW
    echo $(((RANDOM << 15 | RANDOM) % $1))
}

# Opens the databases on a copy, and cuts the power again during their recovery.
cut_again() { # OPTIONS
    check "$cut" "$work/before" "$work/after" "$work/output" &
    checker=$!
    sleep "0.$(printf '%03d' "$(random 120)")"
    cp --reflink=always "$host/cut.img" "$host/again.img"
    wait "$checker" || failed "$work/output" "$host/cut.img"
    checker=''
    mount -o "$1" "$host/again.img" "$again"
    check "$again" "$work/before" "$work/after" "$work/output" || failed "$work/output" "$host/again.img"
    grep -h -o 'counts: .*' "$work/output" >>"$work/counts" || true
    unmount "$again"
    rm "$host/again.img"
    cuts_in_recovery=$((cuts_in_recovery + 1))
}

cut_once() { # OPTIONS
    sleep "0.$(printf '%03d' "$(random 400)")"
    # The record of a database that was removed meanwhile may be missing in either copy.
    rm -rf "$work/before" "$work/after"
    cp -r "$work/records" "$work/before" 2>/dev/null || true
    cp --reflink=always "$host/disk.img" "$host/cut.img"
    cp -r "$work/records" "$work/after" 2>/dev/null || true
    kill -0 "$writer" 2>/dev/null || { cat "$work/writer"; fail "the writer ended by itself"; }
    mount -o "$1" "$host/cut.img" "$cut"
    if [ "$(random 4)" = 0 ]; then
        cut_again "$1"
    else
        check "$cut" "$work/before" "$work/after" "$work/output" || failed "$work/output" "$host/cut.img"
        grep -h -o 'counts: .*' "$work/output" >>"$work/counts" || true
    fi
    unmount "$cut"
    rm "$host/cut.img"
    cuts=$((cuts + 1))
}

run_mode() { # MODE SECONDS
    local mode=$1 options end
    options=$(mount_options "$mode")
    rm -rf "$work/records" "$work/counts"
    mkdir "$work/records"
    : >"$work/counts"
    truncate -s 500M "$host/disk.img"
    case $mode in
    xfs) mkfs.xfs -q -f "$host/disk.img" ;;
    *) mkfs.ext4 -q -F "$host/disk.img" ;;
    esac
    mount -o "$options" "$host/disk.img" "$disk"
    env TERRANE_POWERCUT_ROOT="$disk" TERRANE_POWERCUT_RECORDS="$work/records" TERRANE_SEED="$seed" \
        "$program" --exact write_until_killed --nocapture --test-threads=1 >"$work/writer" 2>&1 &
    writer=$!
    cuts=0 cuts_in_recovery=0 failures=0 saved=0
    SECONDS=0 end=$2
    while [ "$SECONDS" -lt "$end" ]; do cut_once "$options"; done
    stop "$writer"
    writer=''
    unmount "$disk"
    rm "$host/disk.img"
    awk -v mode="$mode" -v cuts="$cuts" -v again="$cuts_in_recovery" -v failures="$failures" \
        -v seconds="$SECONDS" '
        { for (i = 2; i <= NF; i++) { split($i, pair, "="); sum[pair[1]] += pair[2] } }
        END {
            printf "%-15s %6d %12d %9d %10d %12d %16d %13d %9d\n", mode, cuts + again, again,
                (cuts + again) * 60 / seconds, sum["databases"], sum["checkpoints"],
                sum["promised_writes"], sum["found_writes"], failures
        }' "$work/counts" | tee -a "$work/table"
    all_failures=$((all_failures + failures))
}

truncate -s 1900M "$work/host.img"
mkfs.xfs -q -m reflink=1 "$work/host.img"
mount -o loop "$work/host.img" "$host"
all_failures=0
echo "==> power cuts for $minutes minutes, seed $seed, at $(git -C "$repository" rev-parse --short HEAD)"
header=$(printf '%-15s %6s %12s %9s %10s %12s %16s %13s %9s' mode cuts 'in recovery' 'a minute' \
    databases checkpoints 'promised writes' 'found writes' failures)
echo "$header"
for mode in "${modes[@]}"; do run_mode "$mode" $((minutes * 60 / ${#modes[@]})); done
[ "$all_failures" = 0 ] || fail "$all_failures checks failed"
