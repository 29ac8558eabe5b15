#!/usr/bin/env bash
# Fuzzes all parsers of client input with coverage guidance, one target after the other.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]     (60 seconds each of all targets, the folders of fuzz/seeds)
#
# Inputs are kept in fuzz/corpus, failures in fuzz/artifacts. The nightly compiler is used if installed; it adds an
# address sanitizer. A C++ compiler builds libFuzzer.
# Exit codes: 0 no failure, 1 a failure.
set -euo pipefail

cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- $(ls fuzz/seeds)

host=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table
    -C llvm-args=-sanitizer-coverage-trace-compares"
cargo=(cargo)
if cargo +nightly --version >/dev/null 2>&1; then
    cargo=(cargo +nightly)
    flags="$flags -Z sanitizer=address"
fi
# With a target, build scripts and macros are compiled without instrumentation.
RUSTFLAGS=$(echo $flags) "${cargo[@]}" build --release --manifest-path fuzz/Cargo.toml --target "$host"

failed=0
for target in "$@"; do
    echo "== $target, $seconds s"
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    FUZZ_TARGET=$target ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0 "fuzz/target/$host/release/fuzz" \
        "fuzz/corpus/$target" "fuzz/seeds/$target" \
        -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" -max_len=8192 -timeout=20 \
        -rss_limit_mb=3072 -print_final_stats=1 || failed=1
done
exit "$failed"
