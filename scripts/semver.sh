#!/usr/bin/env bash
# Compares the public API of the library with a tag: prints what was removed or changed in an incompatible way.
#
#   scripts/semver.sh [TAG|COMMIT]        (without it: the last tag that is reachable)
#
# It uses cargo-semver-checks, which is built into .cache/tools the first time (some minutes).
# Exit codes: 0 compatible, or no tag yet; 1 a change needs another version, or there is no such commit; 2 the tool could not be built.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
version=0.51.0
tools="$root/.cache/tools"
packages=(bareboat bareboat-api bareboat-server bareboat-storage bareboat-testing)

tag=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if [ -z "$tag" ]; then
    echo "semver: nothing to compare with: no version is tagged yet, so no public API was promised to anyone."
    echo "semver: after a release is tagged (git tag v0.1.0), this compares with the last tag."
    echo "semver: to compare with any commit: make semver ARGS=COMMIT"
    exit 0
fi
if ! git rev-parse --quiet --verify "$tag^{commit}" >/dev/null; then
    echo "semver: $tag is no tag or commit of this repository" >&2
    exit 1
fi

if [ "$("$tools/bin/cargo-semver-checks" --version 2>/dev/null | awk '{ print $2 }')" != "$version" ]; then
    echo "semver: building cargo-semver-checks $version (the first time takes minutes)"
    cargo install --quiet --locked --root "$tools" --version "$version" cargo-semver-checks || {
        echo "semver: cargo-semver-checks could not be built (no network?)" >&2
        exit 2
    }
fi

flags=()
for package in "${packages[@]}"; do flags+=(--package "$package"); done
echo "semver: comparing with $tag"
CARGO_TARGET_DIR="$root/target/semver" "$tools/bin/cargo-semver-checks" semver-checks --baseline-rev "$tag" "${flags[@]}" || exit 1
