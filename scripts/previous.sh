#!/usr/bin/env bash
# Builds the program of the release before this one, for tests of two releases side by side, and prints its path.
#
#   scripts/previous.sh [REVISION]
#
# REVISION is a tag or a commit; by default the newest tag before this commit, or the commit before it if there is no tag.
# Exit codes: 0 it is built, 1 it is not.
set -euo pipefail

cd "$(dirname "$0")/.."
wanted=${1:-$(git describe --tags --abbrev=0 HEAD~1 2>/dev/null || git rev-parse HEAD~1)}
commit=$(git rev-parse --verify --quiet "$wanted^{commit}") || {
    echo "previous: there is no $wanted" >&2
    exit 1
}
folder="$PWD/target/previous/$commit"
if [ ! -x "$folder/bareboat" ]; then
    mkdir -p "$folder/source"
    git archive "$commit" | tar -x -C "$folder/source"
    # All releases share the folder of the build: most dependencies are the same. The whole workspace chooses their features, as in
    # tests.
    (cd "$folder/source" && cargo build --locked --workspace --bin bareboat --target-dir "$folder/../build" >&2)
    cp "$folder/../build/debug/bareboat" "$folder/bareboat"
    rm -rf "$folder/source"
fi
echo "$folder/bareboat"
