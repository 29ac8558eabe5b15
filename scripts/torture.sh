#!/usr/bin/env bash
# Tests crashes, power cuts, a failing disk and a full disk, for the given time each.
#
#   scripts/torture.sh [SECONDS [SEED]]     (default: 60 seconds each, and a seed from the clock)
#
# The same seed gives the same faults, but not the same scheduling. With root, a small file system is mounted as well.
# Exit codes: 0 nothing was lost, 1 data was lost; then the seed is printed again.
set -euo pipefail

cd "$(dirname "$0")/.."
export TORTURE_SECONDS=${1:-60} TORTURE_SEED=${2:-$(date +%s)}
export CI=true # a missing C compiler is a failure here

echo "torture: $TORTURE_SECONDS s of each kind, seed $TORTURE_SEED"
cargo test --package bareboat-sqlite --test crash --no-run
if ! cargo test --package bareboat-sqlite --test crash -- --nocapture --test-threads 1; then
    echo "torture: FAILED with seed $TORTURE_SEED" >&2
    exit 1
fi
