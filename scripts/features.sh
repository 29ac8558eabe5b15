#!/usr/bin/env bash
# Compiles the crate bareboat without features, and with each of its features alone; lints bareboat-server in the same ways. Then
# it runs the test of what is different without features. `scripts/systems.sh smallest` builds and runs a server without any.
set -euo pipefail

cd "$(dirname "$0")/.."
# The names left of "=" in the table of features.
features() { awk '/^\[/ { here = $0 == "[features]" } here && /^[a-z]/ && $1 != "default" { print $1 }' "crates/$1/Cargo.toml"; }

for feature in "" $(features bareboat-server); do
    echo "== bareboat-server, features: ${feature:-none}"
    cargo clippy --quiet --package bareboat-server --lib --no-default-features --features "$feature" -- --deny warnings
done
for feature in "" $(features bareboat); do
    echo "== bareboat, features: ${feature:-none}"
    cargo check --quiet --package bareboat --lib --no-default-features --features "$feature"
done
echo "== tests without features"
cargo test --quiet --package bareboat-schema --no-default-features --test without_expressions
