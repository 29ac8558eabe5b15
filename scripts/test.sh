#!/usr/bin/env bash
# Unit, integration and end-to-end tests, each once, and a table of what ran and what was left out.
#
#   scripts/test.sh            (CI=true: whatever would be left out for want of a tool fails instead)
#
# Exit codes: 0 all that ran is well, 1 something is not.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
logs="$root/target/test-logs"
mkdir -p "$logs"
strict=${CI:-false}
failed=0
table=()

row() { table+=("$(printf '%-26s %-9s %s' "$1" "$2" "$3")"); }

passed() { row "$1" ok "$2"; }

failure() {
    row "$1" FAILED "$2"
    failed=1
}

# What cannot be had here is left out with a reason; where nothing may be left out, that is a failure.
left_out() {
    if [ "$strict" = true ]; then failure "$1" "$2"; else row "$1" "left out" "$2"; fi
}

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

close() {
    printf '\n%-26s %-9s %s\n' what outcome remark
    printf '%s\n' "${table[@]}"
    printf 'in %s s\n' "$SECONDS"
    exit "$failed"
}

step "the real clients: kubectl, client-go, controller-runtime, kube-controller-manager"
go=yes
scripts/peers.sh || {
    case $? in
    3) go="Go is missing or too old" ;;
    *) go="the Go clients could not be built (no network?)" ;;
    esac
}
[ "$go" = yes ] && export PATH="$root/.cache/peers:$PATH" BAREBOAT_PEERS="$root/.cache/peers"

step "the Python client"
python=yes
scripts/python.sh --setup || python="Python or its packages cannot be had (no network?)"

# One build for all that follows: the tests, and the program that the clients talk to.
step "build"
if ! cargo build --workspace --all-targets; then
    failure build "it does not compile"
    close
fi
export BAREBOAT_BIN="${CARGO_TARGET_DIR:-$root/target}/debug/bareboat"

step "unit and integration tests"
if cargo test --workspace --no-fail-fast 2>&1 | tee "$logs/cargo.log"; then outcome=passed; else outcome=failure; fi
count() { grep -oE "[0-9]+ $1" "$logs/cargo.log" | awk '{ n += $1 } END { print n + 0 }'; }
"$outcome" "unit and integration" "$(count passed) passed, $(count failed) failed, $(count ignored) ignored"

vectors=${BAREBOAT_VECTORS:-$root/../shared/vectors}
if [ -d "$vectors" ]; then
    passed "published vectors" "part of the tests above"
else
    # They are nothing this script could fetch, so not even CI insists on them.
    row "published vectors" "left out" "BAREBOAT_VECTORS names no folder"
fi
if ! command -v kubectl >/dev/null 2>&1; then left_out "examples with kubectl" "kubectl is not installed"; fi

# clients LABEL SET REASON: one set of real clients, or why not.
clients() {
    if [ "$3" != yes ]; then
        left_out "$1" "$3"
        return
    fi
    step "$1"
    if scripts/clients.sh "$2" 2>&1 | tee "$logs/$2.log"; then outcome=passed; else outcome=failure; fi
    "$outcome" "$1" "$(tail -n 1 "$logs/$2.log")"
}
clients "Go clients" go "$go"
clients "Python client" python "$python"

close
