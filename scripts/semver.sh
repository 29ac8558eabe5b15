#!/usr/bin/env bash
# Compares the public API of the library with a tag: prints what was removed or changed in an incompatible way.
#
#   scripts/semver.sh [TAG|COMMIT]        (without it: the last tag that is reachable)
#
# It uses cargo-semver-checks, which is built into .cache/tools the first time (some minutes). Both sides are documented into one
# folder, so that other crates are compiled once.
# Exit codes: 0 compatible, or no tag yet; 1 a change needs another version; 2 there is no such commit, or something could not be built.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
version=0.51.0
tools="$root/.cache/tools"
target="$root/target/semver"
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
    exit 2
fi

if [ "$("$tools/bin/cargo-semver-checks" --version 2>/dev/null | awk '{ print $2 }')" != "$version" ]; then
    echo "semver: building cargo-semver-checks $version (the first time takes minutes)"
    cargo install --quiet --locked --root "$tools" --version "$version" cargo-semver-checks || {
        echo "semver: cargo-semver-checks could not be built (no network?)" >&2
        exit 2
    }
fi

# Writes the documentation of the packages of a folder, as JSON, which is unstable and therefore needs permission.
document() {
    local folder=$1 out=$2 flags=() package
    for package in "${packages[@]}"; do flags+=(--package "$package"); done
    echo "semver: documenting the $3"
    rm -rf "$target/doc" "$out"
    (cd "$folder" && RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target" \
        RUSTDOCFLAGS="-Z unstable-options --document-private-items --document-hidden-items --output-format=json --cap-lints=allow" \
        cargo doc --quiet --no-deps --lib --all-features "${flags[@]}") || exit 2
    mkdir "$out"
    mv "$target"/doc/*.json "$out/"
}

mkdir -p "$target"
document "$root" "$target/current" "working tree"
trap 'git worktree remove --force "$target/tree"' EXIT
git worktree remove --force "$target/tree" 2>/dev/null || git worktree prune
git worktree add --quiet --detach "$target/tree" "$tag"
document "$target/tree" "$target/baseline" "commit $tag"

worst=0
for package in "${packages[@]}"; do
    file=${package//-/_}.json
    result=0
    echo "semver: $package"
    "$tools/bin/cargo-semver-checks" semver-checks --baseline-rustdoc "$target/baseline/$file" --current-rustdoc "$target/current/$file" ||
        result=$?
    case $result in
    0) ;;
    # An incompatible change. Everything else is an error of the tool.
    100) [ $worst = 2 ] || worst=1 ;;
    *) worst=2 ;;
    esac
done
exit $worst
