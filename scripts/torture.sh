#!/usr/bin/env bash
# Crashes, power cuts, a failing disk and a full one, for as long as is asked, each kind in turn.
#
#   scripts/torture.sh [SECONDS [SEED]]     (60 seconds for each kind, and a seed from the clock)
#
# The same seed gives the same faults; what the system does between them is its own. With root, a small file system is
# mounted as well. Exit codes: 0 nothing was lost, 1 something was; then the seed is said again.
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
