#!/usr/bin/env bash
# Compiles the crate bareboat without features, and with each of its features alone.
set -euo pipefail

cd "$(dirname "$0")/.."
check() {
    echo "== bareboat, features: ${1:-none}"
    cargo check --quiet --package bareboat --lib --no-default-features --features "$1"
}
check ""
# The names left of "=" in the table of features.
for feature in $(awk '/^\[/ { here = $0 == "[features]" } here && /^[a-z]/ && $1 != "default" { print $1 }' crates/bareboat/Cargo.toml); do
    check "$feature"
done
