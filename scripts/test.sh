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
rm -rf "$logs"
mkdir -p "$logs"
# Where tests leave what the table tells: they print it to nobody, since lines of tests that run at once would mix.
export BAREBOAT_TEST_NOTES="$logs"
strict=${CI:-false}
failed=0
table=()

row() { table+=("$(printf '%-32s %-9s %s' "$1" "$2" "$3")"); }

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
    printf '\n%-32s %-9s %s\n' what outcome remark
    printf '%s\n' "${table[@]}"
    printf 'in %s s\n' "$SECONDS"
    exit "$failed"
}

step "the real clients: kubectl, client-go, controller-runtime, kube-controller-manager, sample-controller"
go=yes
scripts/peers.sh || {
    case $? in
    3) go="Go is missing or too old" ;;
    *) go="the Go clients could not be built (no network?)" ;;
    esac
}
[ "$go" = yes ] && export PATH="$root/.cache/peers:$PATH" BAREBOAT_PEERS="$root/.cache/peers"

step "the Python client and kopf"
python=yes
scripts/python.sh --setup || python="Python or its packages cannot be had (no network?)"

step "the Java clients: fabric8, the Java Operator SDK, client-java"
java=yes
scripts/java.sh --setup || {
    case $? in
    3) java="a JDK, Maven or the libraries cannot be had (no network?)" ;;
    *) java=broken ;;
    esac
}

step "the JavaScript client"
javascript=yes
scripts/javascript.sh --setup || javascript="Node.js or its packages cannot be had (no network?)"

kubectl=yes
command -v kubectl >/dev/null 2>&1 || kubectl="kubectl is not installed"

step "what the build needs"
export CARGO_NET_RETRY=${CARGO_NET_RETRY:-5}
for attempt in 1 2 3; do
    cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')" && break
    # The build may still find all it needs; if not, it says so.
    [ "$attempt" = 3 ] || sleep $((attempt * 10))
done

# One build for all that follows.
step "build"
if ! cargo build --workspace --all-targets; then
    failure build "it does not compile"
    close
fi

step "unit and integration tests, and every client"
if cargo test --workspace --no-fail-fast 2>&1 | tee "$logs/cargo.log"; then outcome=passed; else outcome=failure; fi
count() { grep -oE "[0-9]+ $1" "$logs/cargo.log" | awk '{ n += $1 } END { print n + 0 }'; }
"$outcome" "all tests" "$(count 'passed;') passed, $(count 'failed;') failed, $(count 'ignored;') ignored; of them:"

vectors=${BAREBOAT_VECTORS:-$root/../shared/vectors}
if [ -d "$vectors" ]; then
    row "  published vectors" there "$vectors"
else
    # They are nothing this script could fetch, so not even CI insists on them.
    row "  published vectors" "left out" "BAREBOAT_VECTORS names no folder"
fi

# client LABEL BINARY PATTERN NEEDED [REMARK]: the tests of one client, found in the log by the binary they are
# in and the beginning of their names.
client() {
    if [ "$4" != yes ]; then
        left_out "  $1" "$4"
        return
    fi
    local good bad
    read -r good bad < <(awk -v binary="Running $2 " -v name="^($3)" '
        /^ +(Running|Doc-tests) / { here = index($0, binary) > 0 }
        here && $1 == "test" && $2 ~ name && $NF == "ok" { good++ }
        here && $1 == "test" && $2 ~ name && $NF == "FAILED" { bad++ }
        END { print good + 0, bad + 0 }' "$logs/cargo.log")
    if [ "$bad" = 0 ] && [ "$good" != 0 ]; then outcome=passed; else outcome=failure; fi
    "$outcome" "  $1" "$good passed, $bad failed${5:+; $5}"
}
# remark RUNNER NAME: what a suite of another language has left in a file about its count.
remark() { [ ! -f "$logs/$2" ] || echo "$1: $(cat "$logs/$2")"; }

e2e=tests/e2e/main.rs
client "kubectl" $e2e kubectl:: "$kubectl"
client "client-go, controller-runtime" $e2e "clients::|informers::" "$go"
client "helm" $e2e helm:: "$go"
client "kube-controller-manager" $e2e controller_manager:: "$go"
client "sample-controller (Go)" $e2e sample_controller:: "$go"
client "kube-rs" $e2e kube_rs:: yes
client "sample-controller (kube-rs)" tests/controller.rs "" "$kubectl"
client "Python client" $e2e python::the_python_client "$python" "$(remark pytest python)"
client "kopf" $e2e python::an_operator "$python" "$(remark pytest kopf)"
if [ "$java" = broken ]; then
    failure "  Java clients" "their tests do not compile"
else
    client "Java clients" $e2e java:: "$java" "$(remark JUnit java)"
fi
client "JavaScript client" $e2e javascript:: "$javascript" "$(remark node javascript)"

close
