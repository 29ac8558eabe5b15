#!/usr/bin/env bash
# Coverage-guided fuzzing of the readers of foreign text, each target for a while.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]     (60 seconds each of: cel schema definition)
#
# What it finds is kept in fuzz/corpus, what breaks in fuzz/artifacts.
# Exit codes: 0 nothing broke, 1 something did, 3 a tool is missing.
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- cel schema definition

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: a nightly compiler is needed: rustup toolchain install nightly" >&2
    exit 3
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: cargo-fuzz is needed: cargo install cargo-fuzz" >&2
    exit 3
fi
for target in "$@"; do
    echo "== $target, $seconds s"
    mkdir -p "fuzz/corpus/$target"
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048
done
