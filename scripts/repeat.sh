#!/usr/bin/env bash
# Runs all tests again and again, to find those that pass only most of the time.
#
#   scripts/repeat.sh [RUNS [AT_ONCE]]    default: 20 1
#
# The runs take turns: as they are, pinned to one core, beside a busy loop. They need root, for the tests of full disks.
# Of several at once each has its own network, processes and temporary files, as on a machine of its own, and all share the cores. Run
# `make test` first: it sets up the clients. Each run writes target/repeat/RUN.log. It ends with a table.
# Exit codes: 0 all runs passed, 1 some failed, 2 wrong usage or the tests do not compile.
set -euo pipefail

# What runs in the background ignores an interrupt: a busy loop and lanes. unshare ignores TERM, too.
trap 'kill -KILL $(jobs -p) 2>/dev/null || true' EXIT

cd "$(dirname "$0")/.."
runs=${1:-20}
at_once=${2:-1}
case $runs:$at_once in
*[!0-9:]* | *:0)
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
export CI=true
[ -d .cache/peers ] && export PATH="$PWD/.cache/peers:$PATH" BAREBOAT_PEERS="$PWD/.cache/peers"
suites=(--test e2e --test hostile --test postgres --test shelf --test mariadb --test etcd)
logs=$PWD/target/repeat
rm -rf "$logs"
mkdir -p "$logs" target/tmp
moods=(quiet pinned busy)

{ cargo build --workspace --all-targets && cargo build --workspace "${suites[@]}" --test outages; } || exit 2

# every_suite PREFIX...: runs every suite once, as make test does, each command with the prefix.
every_suite() {
    local result=0
    "$@" cargo test --workspace --no-fail-fast || result=1
    "$@" cargo test --workspace "${suites[@]}" --no-fail-fast || result=1
    "$@" cargo test --workspace --test outages --no-fail-fast -- --test-threads $(($(nproc) + 1)) || result=1
    return $result
}

# once RUN MOOD LANE: runs every suite in a mood, and writes a row of the table.
once() {
    local run=$1 mood=$2 log="$logs/$1.log" began=$SECONDS outcome=passed names
    local prefix=(env) loop=
    case $mood in
    pinned) prefix=(taskset -c $(($3 % $(nproc)))) ;;
    busy)
        (while :; do :; done) &
        loop=$!
        ;;
    esac
    every_suite "${prefix[@]}" >"$log" 2>&1 || outcome=FAILED
    [ -z "$loop" ] || kill "$loop"
    names=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u | tr '\n' ' ')
    printf '%-4s %-7s %-7s %5s s  %s\n' "$run" "$mood" "$outcome" $((SECONDS - began)) "$names" | tee -a "$logs/table"
}

# lane NUMBER: runs every AT_ONCE-th run, one after the other.
lane() {
    local run
    for run in $(seq "$1" "$at_once" "$runs"); do
        once "$run" "${moods[$(((run - 1) % 3))]}" "$1"
    done
}

# apart NUMBER: a lane with its own network, processes and temporary files.
apart() {
    local place="$logs/lane-$1"
    mkdir -p "$place/tmp" "$place/target"
    chmod 1777 "$place/tmp"
    export -f every_suite once lane
    export runs at_once logs
    exec unshare --mount --net --pid --fork --mount-proc --kill-child bash -euo pipefail -c "
        ip link set lo up
        # MariaDB derives its identity from the first address of the network, and tests add and remove devices.
        ip link add machine0 type veth peer name machine1
        mount --bind '$place/target' target/tmp
        mount --bind '$place/tmp' /tmp
        export CARGO_NET_OFFLINE=true
        $(declare -p suites moods)
        lane $1"
}

: >"$logs/table"
if [ "$at_once" -le 1 ]; then
    lane 1
else
    for number in $(seq "$at_once"); do
        apart "$number" &
    done
    wait
fi

passed=$(awk '$3 == "passed"' "$logs/table" | wc -l)
printf '\nrun  mood    outcome    time  tests that failed\n'
sort -n "$logs/table"
echo "repeat: $passed of $runs runs passed"
[ "$passed" = "$runs" ]
