#!/usr/bin/env bash
# Runs all tests again and again, to find those that pass only most of the time.
#
#   scripts/repeat.sh [RUNS]              default: 20
#
# The runs take turns: as they are, pinned to one core, beside a busy loop on every core. Run `make test` first: it builds the
# programs and sets up the clients. Each run writes target/repeat/RUN.log. It ends with a table.
# Exit codes: 0 all runs passed, 1 some failed, 2 wrong usage.
set -euo pipefail

cd "$(dirname "$0")/.."
runs=${1:-20}
case $runs in
'' | *[!0-9]*)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
export CI=true
[ -d .cache/peers ] && export PATH="$PWD/.cache/peers:$PATH" BAREBOAT_PEERS="$PWD/.cache/peers"
suites=(--test e2e --test hostile --test postgres --test shelf --test mariadb --test etcd)
logs=target/repeat
mkdir -p "$logs"
moods=(quiet pinned busy)
failed=0
table=()
loops=()

rest() {
    [ ${#loops[@]} = 0 ] || kill "${loops[@]}" 2>/dev/null || true
    loops=()
}
trap rest EXIT

# once PREFIX...: runs every suite once, as make test does, each command with the prefix.
once() {
    local result=0
    "$@" cargo test --workspace --no-fail-fast || result=1
    "$@" cargo test --workspace "${suites[@]}" --no-fail-fast || result=1
    "$@" cargo test --workspace --test outages --no-fail-fast -- --test-threads $(($(nproc) + 1)) || result=1
    return $result
}

for run in $(seq "$runs"); do
    mood=${moods[$(((run - 1) % 3))]}
    log=$logs/$run.log
    began=$SECONDS
    prefix=(env)
    case $mood in
    pinned) prefix=(taskset -c 0) ;;
    busy)
        for _ in $(seq "$(nproc)"); do
            (while :; do :; done) &
            loops+=($!)
        done
        ;;
    esac
    outcome=passed
    once "${prefix[@]}" >"$log" 2>&1 || outcome=FAILED
    rest
    [ $outcome = passed ] || failed=$((failed + 1))
    names=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u | tr '\n' ' ')
    table+=("$(printf '%-4s %-7s %-7s %5s s  %s' "$run" "$mood" "$outcome" $((SECONDS - began)) "$names")")
    echo "${table[-1]}"
done

printf '\nrun  mood    outcome    time  tests that failed\n'
printf '%s\n' "${table[@]}"
echo "repeat: $((runs - failed)) of $runs runs passed"
[ "$failed" = 0 ]
