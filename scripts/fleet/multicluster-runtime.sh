# A controller of multicluster-runtime and client-go informers over members: one Bareboat and one kube-apiserver.
needs "$peers/fleet-peers"
kube_apiserver
first="$KUBECONFIG"
start member "$bin/bareboat" serve --in-memory --data-dir "$here/second" --bind 127.0.0.1:0
second="$here/second/admin.kubeconfig"
KUBECONFIG=$second eventually kubectl get --raw /readyz
hub --fleet-probe-interval 1s
for name in first second; do
    "$bin/bareboat" fleet join "$name" --member-kubeconfig "${!name}" --resource configmaps --resource pods >>"$here/join.log" 2>&1 ||
        fail "join: $(cat "$here/join.log")"
    # The administrator of the hub writes to members here.
    kubectl annotate pediacluster "$name" fleet.bareboat.dev/masters=true >/dev/null
    eventually synced "$name"
    kubectl --kubeconfig "${!name}" create configmap before --from-literal a=b >/dev/null
    kubectl --kubeconfig "${!name}" label configmap before example.com/reconcile=yes >/dev/null
done
start controller "$peers/fleet-peers" controller --clusters 2 --for 10m
seen() { [ "$(kubectl --kubeconfig "$1" get configmap "$2" -o 'jsonpath={.metadata.labels.example\.com/seen-in}')" = "$3" ]; }
for name in first second; do eventually seen "${!name}" before "view-$name"; done
checked "multicluster-runtime $(cd "$root/tests/peers/fleet" && go list -m -f '{{.Version}}' sigs.k8s.io/multicluster-runtime): a controller finds both members by their ClusterProfiles, and writes through their views"
for name in first second; do
    kubectl --kubeconfig "${!name}" create configmap later --from-literal a=b >/dev/null
    kubectl --kubeconfig "${!name}" label configmap later example.com/reconcile=yes >/dev/null
done
for name in first second; do eventually seen "${!name}" later "view-$name"; done
checked "changes in the members reach it"
stop hub KILL
kubectl --kubeconfig "$first" create configmap away --from-literal a=b >/dev/null
kubectl --kubeconfig "$first" label configmap away example.com/reconcile=yes >/dev/null
launch_hub --fleet-probe-interval 1s
eventually seen "$first" away view-first
checked "the hub is killed and starts again: the controller goes on"
! grep -q '"type":"ERROR"' "$here/controller.log" || fail "the controller failed: $(grep '"type":"ERROR"' "$here/controller.log" | head -n 3)"
stop controller

# reflected VIEW-PATH FEATURE FLAG...: a reflector has what the view has, and follows it.
reflected() {
    local before path=$1 feature=$2
    shift 2
    before=$(kubectl get --raw "$views$path/api/v1/configmaps" | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["items"]))')
    start reflect env KUBE_FEATURE_WatchListClient="$feature" "$peers/fleet-peers" reflect --resource v1/configmaps --for 4s --expect $((before + 1)) "$@"
    eventually grep -q SYNCED "$here/reflect.log"
    kubectl --kubeconfig "$second" create configmap "more-$feature" --from-literal a=b >/dev/null
    eventually grep -q DONE "$here/reflect.log"
    grep DONE "$here/reflect.log" | grep -q "\"count\":$((before + 1))" || fail "the informer: $(cat "$here/reflect.log")"
    rm "$here/reflect.log" "$here/reflect.pid"
}
reflected "" false
reflected /clusters/second true --member second
checked "client-go's reflector follows the view of all members with lists, and that of one with WatchList"
