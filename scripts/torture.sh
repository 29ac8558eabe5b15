#!/usr/bin/env bash
# Tests crashes, power cuts, failing and full disks, and several servers on one database under faults, for the given time
# each, and runs the checks of docs/storage-checks.md with their full counts.
#
#   scripts/torture.sh [ENGINE] [SECONDS [SEED]]
#
# ENGINE is sqlite, postgres, mariadb, etcd, model (the checker and the model of appends), servers (checks that need no
# database), or all (the default). By default 60 seconds of each kind, and a seed from the clock.
#
# BAREBOAT_PREVIOUS names the program of the release before this one, for the rolling update; by default
# scripts/previous.sh builds it.
# The same seed gives the same faults, but not the same scheduling. With root, file systems are mounted and packets lost as well.
# Exit codes: 0 nothing was lost, 1 a check failed; then the seed is printed again. 2 wrong arguments.
set -euo pipefail

cd "$(dirname "$0")/.."
engine=all
case ${1:-} in
sqlite | postgres | mariadb | etcd | model | servers | all)
    engine=$1
    shift
    ;;
*[!0-9]*)
    sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
export TORTURE_SECONDS=${1:-60} TORTURE_SEED=${2:-$(date +%s)}
export CI=true # a missing C compiler or database is a failure here
[ -d .cache/peers ] && export PATH="$PWD/.cache/peers:$PATH" BAREBOAT_PEERS="$PWD/.cache/peers"

logs=target/torture
mkdir -p "$logs"
failed=()

# check NAME TEST [FILTER...]: runs one test program with its full counts, one test at a time.
check() {
    local name=$1 program=$2
    shift 2
    printf '\n== %s (%s s)\n' "$name" "$SECONDS"
    if ! cargo test --workspace --test "$program" -- "$@" --nocapture --test-threads 1 2>&1 | tee "$logs/$name.log"; then
        failed+=("$name")
    fi
}

wants() { [ "$engine" = all ] || [ "$engine" = "$1" ]; }

echo "torture: $engine, $TORTURE_SECONDS s of each kind, seed $TORTURE_SEED"
if wants model; then
    check model model
    check checker seeded
fi
if wants servers; then check servers it replicas::; fi
if wants sqlite; then
    check sqlite crash
    check sqlite-checks checks
fi
if wants postgres; then
    check postgres postgres
    [ -n "${BAREBOAT_PREVIOUS:-}" ] || BAREBOAT_PREVIOUS=$(scripts/previous.sh)
    export BAREBOAT_PREVIOUS
    check postgres-servers outages postgresql promotion cut_off defects negatives partition balanced rolling leader stopped
fi
if wants mariadb; then
    check mariadb mariadb
    check mariadb-servers outages mariadb
fi
if wants etcd; then
    check etcd etcd
    check etcd-servers outages on_etcd
fi

if [ ${#failed[@]} != 0 ]; then
    echo "torture: FAILED with seed $TORTURE_SEED: ${failed[*]} (logs in $logs)" >&2
    exit 1
fi
echo "torture: passed with seed $TORTURE_SEED in $SECONDS s"
