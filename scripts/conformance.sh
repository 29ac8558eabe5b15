#!/usr/bin/env bash
# Runs conformance specs of Kubernetes itself against Bareboat, with a real kube-controller-manager, a real
# kube-scheduler and two hollow nodes: real kubelets that only say that they run containers.
#
#   scripts/conformance.sh              the specs of tests/conformance.txt, which must all pass
#   scripts/conformance.sh REGEXP       the conformance specs whose names match
#
# Exit codes: 0 all passed, 1 some did not, 2 something could not be started.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
peers="$root/.cache/peers"
dir=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait 2>/dev/null || true' EXIT

# start NAME COMMAND...: in the background, until this script ends. Its words are kept in a file of that name.
start() {
    local name=$1
    shift
    "$@" >"$dir/$name.log" 2>&1 &
    started+=($!)
}

# until_true SECONDS COMMAND...
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "conformance: not within its time: $*; see $dir" >&2
            exit 2
        fi
        sleep 0.2
    done
}

# Names of specs as one regular expression.
names() { grep -vE '^(#|$)' "$1" | sed -E 's/[][().*+?^$|{}\\]/\\&/g' | paste -sd '|'; }

case ${1:-} in
"") focus=$(names tests/conformance.txt) ;;
*) focus="(?:$1).*\\[Conformance\\]" ;;
esac

cargo build --package bareboat-cli
kubeconfig="$dir/data/admin.kubeconfig"
# History is short here, since one spec waits until it is over.
start bareboat "${CARGO_TARGET_DIR:-target}/debug/bareboat" serve --in-memory --data-dir "$dir/data" \
    --bind 127.0.0.1:0 --retain-for 1m
until_true 60 test -s "$kubeconfig"
until_true 60 "$peers/kubectl" --kubeconfig "$kubeconfig" get --raw /readyz

# What Bareboat does itself is left to it: two garbage collectors would fight.
ours=(garbage-collector namespace serviceaccount serviceaccount-token root-ca-certificate-publisher
    resourcequota clusterrole-aggregation service-cidr)
controllers='*'
for name in "${ours[@]}"; do controllers+=",-$name-controller"; done
start kube-controller-manager "$peers/kube-controller-manager" --kubeconfig "$kubeconfig" --leader-elect=false \
    --secure-port=0 --use-service-account-credentials=false "--controllers=$controllers" \
    --cluster-signing-cert-file="$dir/data/certificates/ca.crt" \
    --cluster-signing-key-file="$dir/data/certificates/ca.key"
start kube-scheduler "$peers/kube-scheduler" --kubeconfig "$kubeconfig" --leader-elect=false --secure-port=0
port=$((20000 + RANDOM % 10000))
for node in 1 2; do
    start "hollow-$node" "$peers/kubemark" --morph=kubelet --name="hollow-$node" --kubeconfig "$kubeconfig" \
        --kubelet-port=$((port + node)) --kubelet-read-only-port=0 --use-host-image-service=false \
        --node-labels=kubernetes.io/os=linux --cert-dir="$dir/hollow-$node"
done
until_true 120 "$peers/kubectl" --kubeconfig "$kubeconfig" wait --for=condition=Ready --timeout=60s \
    node/hollow-1 node/hollow-2

case ${1:-} in
"") echo "conformance: $(grep -cvE '^(#|$)' tests/conformance.txt) specs, some ten minutes; tail -f $dir/specs.log shows how far they are" ;;
*) echo "conformance: specs that match $1; tail -f $dir/specs.log shows how far they are" ;;
esac
result=0
"$peers/ginkgo" --procs=${PROCS:-4} --keep-going --no-color --timeout=60m --focus="$focus" --output-dir="$dir" \
    --junit-report=specs.xml "$peers/conformance.test" -- --kubeconfig="$kubeconfig" --provider=local \
    --kubectl-path="$peers/kubectl" --ginkgo.slow-spec-threshold=10m >"$dir/specs.log" 2>&1 || result=1
grep -aE '^ *\[(FAIL|PANICKED|TIMEDOUT|INTERRUPTED)\] \[sig' "$dir/specs.log" | sort -u || true
grep -aE '^(Ran|SUCCESS|FAIL!)' "$dir/specs.log" || tail -n 20 "$dir/specs.log"
[ $result = 0 ] && rm -rf "$dir" || echo "conformance: everything that was said is in $dir"
exit $result
