#!/usr/bin/env bash
# Runs conformance specs of Kubernetes against Bareboat, with a real kube-controller-manager, a real kube-scheduler and
# two hollow nodes: real kubelets that only pretend to run containers. `pod-servers` runs the servers of specs about
# webhooks, aggregation and conversion in their place.
#
# The run has a network of its own (`unshare --net`), where the one address of all pods of hollow nodes belongs to this
# machine. So kubelets and the server reach those servers as they reach pods in a cluster, and nothing else listens there.
#
#   scripts/conformance.sh              the specs of tests/conformance.txt, which must all pass
#   scripts/conformance.sh REGEXP       the conformance specs whose names match
#
# BAREBOAT names a binary to use instead of building one.
# Exit codes: 0 all passed, 1 some failed, 2 a program did not start.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
peers="$root/.cache/peers"
# The address that the fake runtime of hollow nodes gives to every pod.
pods=192.168.192.168

if [ "${CONFORMANCE_NETWORK:-}" != own ]; then
    if [ -z "${BAREBOAT:-}" ]; then
        cargo build --package bareboat-cli
        export BAREBOAT="${CARGO_TARGET_DIR:-target}/debug/bareboat"
    fi
    # Root keeps its user IDs, which kubelets need for files of pods that run as other users.
    own=(unshare --net)
    [ "$(id -u)" = 0 ] || own+=(--map-root-user)
    if ! "${own[@]}" ip link add name eth0 type veth peer name eth1; then
        echo "conformance: this machine does not allow a network of its own" >&2
        exit 2
    fi
    export CONFORMANCE_NETWORK=own
    exec "${own[@]}" "$0" "$@"
fi
ip link set lo up
# Kubelets take the address of the interface with the default route. Nothing is behind it.
ip link add name eth0 type veth peer name eth1
ip addr add "$pods/24" dev eth0
ip link set eth0 up
ip link set eth1 up
ip route add default via "${pods%.*}.1"
# Names are looked up in vain, but at once.
for server in $(awk '$1 == "nameserver" && $2 !~ /:/ && $2 !~ /^127/ { print $2 }' /etc/resolv.conf); do
    ip route add unreachable "$server" || true
done

dir=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait 2>/dev/null || true' EXIT

# start NAME COMMAND...: runs a command in the background until this script ends. Its output goes to NAME.log.
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
            echo "conformance: timeout of: $*; see $dir" >&2
            exit 2
        fi
        sleep 0.2
    done
}

# Prints the names of specs as one regular expression.
names() { grep -vE '^(#|$)' "$1" | sed -E 's/[][().*+?^$|{}\\]/\\&/g' | paste -sd '|'; }

case ${1:-} in
"") focus=$(names tests/conformance.txt) ;;
*) focus="(?:$1).*\\[Conformance\\]" ;;
esac

bareboat=$BAREBOAT
kubeconfig="$dir/data/admin.kubeconfig"
kubectl() { "$peers/kubectl" --kubeconfig "$kubeconfig" "$@"; }
# as NAME USER [FLAGS]: makes the kubeconfig of a user.
as() {
    local name=$1
    shift
    "$bareboat" kubeconfig create "$@" --data-dir "$dir/data" --save "$dir/$name.kubeconfig" >/dev/null
}
# A short history, because one spec waits until it expires.
start bareboat "$bareboat" serve --in-memory --data-dir "$dir/data" \
    --bind 127.0.0.1:0 --retain-for 1m
until_true 60 test -s "$kubeconfig"
until_true 60 "$peers/kubectl" --kubeconfig "$kubeconfig" get --raw /readyz

# Controllers that Bareboat has itself are disabled: two garbage collectors would interfere.
ours=(garbage-collector namespace serviceaccount serviceaccount-token root-ca-certificate-publisher
    resourcequota clusterrole-aggregation service-cidr)
controllers='*'
for name in "${ours[@]}"; do controllers+=",-$name-controller"; done
# Every component runs as its own user with its default role, and every controller as its own service account.
as kube-controller-manager system:kube-controller-manager
start kube-controller-manager "$peers/kube-controller-manager" --kubeconfig "$dir/kube-controller-manager.kubeconfig" \
    --leader-elect=false --secure-port=0 --use-service-account-credentials=true "--controllers=$controllers" \
    --cluster-signing-cert-file="$dir/data/certificates/ca.crt" \
    --cluster-signing-key-file="$dir/data/certificates/ca.key"
as kube-scheduler system:kube-scheduler
start kube-scheduler "$peers/kube-scheduler" --kubeconfig "$dir/kube-scheduler.kubeconfig" --leader-elect=false \
    --secure-port=0
# There is no authorizer for nodes: the default role gives them their rights.
kubectl create clusterrolebinding nodes --clusterrole=system:node --group=system:nodes
port=$((20000 + RANDOM % 10000))
for node in 1 2; do
    as "hollow-$node" "system:node:hollow-$node" --group system:nodes
    start "hollow-$node" "$peers/kubemark" --morph=kubelet --name="hollow-$node" \
        --kubeconfig "$dir/hollow-$node.kubeconfig" \
        --kubelet-port=$((port + node)) --kubelet-read-only-port=0 --use-host-image-service=false \
        --node-labels=kubernetes.io/os=linux --cert-dir="$dir/hollow-$node"
done
until_true 120 "$peers/kubectl" --kubeconfig "$kubeconfig" wait --for=condition=Ready --timeout=60s \
    node/hollow-1 node/hollow-2

mkdir "$dir/pods"
start pod-servers "$peers/pod-servers" --kubeconfig "$kubeconfig" --address "$pods" --programs "$peers" --dir "$dir/pods"

case ${1:-} in
"") echo "conformance: $(grep -cvE '^(#|$)' tests/conformance.txt) specs, about ten minutes; progress: tail -f $dir/specs.log" ;;
*) echo "conformance: specs that match $1; progress: tail -f $dir/specs.log" ;;
esac
result=0
"$peers/ginkgo" --procs=${PROCS:-4} --keep-going --no-color --timeout=60m --focus="$focus" --output-dir="$dir" \
    --junit-report=specs.xml "$peers/conformance.test" -- --kubeconfig="$kubeconfig" --provider=local \
    --kubectl-path="$peers/kubectl" --ginkgo.slow-spec-threshold=10m >"$dir/specs.log" 2>&1 || result=1
grep -aE '^ *\[(FAIL|PANICKED|TIMEDOUT|INTERRUPTED)\] \[sig' "$dir/specs.log" | sort -u || true
grep -aE '^(Ran|SUCCESS|FAIL!)' "$dir/specs.log" || tail -n 20 "$dir/specs.log"
[ $result = 0 ] && rm -rf "$dir" || echo "conformance: the logs are in $dir"
exit $result
