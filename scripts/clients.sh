#!/usr/bin/env bash
# Real clients against a server of their own: an ordinary `bareboat serve` on a free port.
#
#   scripts/clients.sh [go] [python]       (BAREBOAT_BIN: the program, default target/debug/bareboat)
#
# The last line counts. Exit codes: 0 all well, 1 a client is not content, 2 wrong usage.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
program=${BAREBOAT_BIN:-$root/target/debug/bareboat}
peers="$root/.cache/peers"
work=$(mktemp -d)
server=
good=0
bad=0

finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT

serve() {
    "$program" serve --data-dir "$work/data" --bind 127.0.0.1:0 >"$work/server.log" 2>&1 &
    server=$!
    export KUBECONFIG="$work/data/admin.kubeconfig"
    # The greeting comes when the socket is open and the kubeconfig written.
    for _ in $(seq 200); do
        grep -q kubectl "$work/server.log" && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    echo "clients: the server did not start:" >&2
    cat "$work/server.log" >&2
    exit 1
}

# try NAME COMMAND...: one client, whose output is shown when it is not content.
try() {
    local name=$1 started=$SECONDS
    shift
    if timeout 180 "$@" >"$work/out" 2>"$work/err"; then
        good=$((good + 1))
        echo "ok      $name ($((SECONDS - started)) s)"
    else
        bad=$((bad + 1))
        echo "FAILED  $name: $*"
        grep -v '"ok":true' "$work/out" | tail -n 40 | sed 's/^/        /' || true
        tail -n 10 "$work/err" | sed 's/^/        /'
    fi
}

# What people do with kubectl; it leaves something behind for the informers to see.
kubectl_session='
set -e
kubectl create configmap seen --from-literal=a=b
kubectl get configmap seen -o wide
kubectl label configmap seen tier=front
kubectl get configmaps -l tier=front -o name | grep -x configmap/seen
kubectl get configmap seen -o yaml | sed "s/name: seen/name: applied/" | grep -v "uid:\|resourceVersion:" |
    kubectl apply --server-side -f -
kubectl explain configmap.data
kubectl diff -f <(kubectl get configmap seen -o yaml)
kubectl delete configmap applied
'

go_clients() {
    try "kubectl" env PATH="$peers:$PATH" bash -c "$kubectl_session"
    try "typed client, every kind" "$peers/peers" typed
    try "informer (WatchList)" "$peers/peers" informer --resource v1/configmaps --for 3s
    try "informer (list, then watch)" env KUBE_FEATURE_WatchListClient=false \
        "$peers/peers" informer --resource v1/configmaps --for 3s
    try "informer, dynamic" "$peers/peers" informer --resource apps/v1/deployments --mode dynamic --for 3s
    try "informer, metadata" "$peers/peers" informer --resource v1/configmaps --mode metadata --for 3s
    try "informer of client-go 0.30" "$peers/informer130" --resource v1/configmaps --for 3s
    try "leader election" "$peers/peers" leaderelect --identity a
    try "compare-and-swap under stress" "$peers/peers" stress
    try "controller-runtime manager" "$peers/peers" manager
}

# pytest shows and counts its tests itself.
python_client() {
    timeout 600 "$root/scripts/python.sh" 2>&1 | tee "$work/out" || true
    count() { tail -n 1 "$work/out" | grep -oE "[0-9]+ $1" | cut -d' ' -f1 || true; }
    local passed failed errors
    passed=$(count passed) failed=$(count failed) errors=$(count error)
    good=$((good + ${passed:-0}))
    bad=$((bad + ${failed:-0} + ${errors:-0}))
    # No count at all: it never came to testing.
    [ -n "$passed$failed$errors" ] || bad=$((bad + 1))
}

[ $# -gt 0 ] || set -- go python
serve
for set in "$@"; do
    case $set in
    go) go_clients ;;
    python) python_client ;;
    *)
        echo "usage: scripts/clients.sh [go] [python]" >&2
        exit 2
        ;;
    esac
done
echo "$good passed, $bad failed"
[ "$bad" = 0 ]
