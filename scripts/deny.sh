#!/usr/bin/env bash
# Runs cargo-deny with the given arguments; builds it into .cache/tools if missing.
#
#   scripts/deny.sh --offline check bans licenses sources
#
# Built without optimisation: that takes a third of the time, and a run takes a second.
set -euo pipefail

cd "$(dirname "$0")/.."
version=0.20.2
tools="$PWD/.cache/tools"
deny="$tools/bin/cargo-deny"

if [ "$("$deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    echo "deny: building cargo-deny $version, which takes some minutes once" >&2
    cargo install --quiet --locked --debug --root "$tools" \
        --target-dir "$tools/build" "cargo-deny@$version"
    rm -rf "$tools/build"
fi
# It reads the manifests of all platforms, which a build does not fetch.
for attempt in 1 2 3; do
    cargo fetch --quiet --locked && break
    sleep $((attempt * 5))
done
exec "$deny" "$@"
