# A real kube-apiserver with etcd and kube-controller-manager is a member: first sync, equality, outages, owner search.
kube_apiserver
member="$KUBECONFIG"
version=$(kubectl version -o json | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p' | tail -n 1)
stop kube-controller-manager
start kube-controller-manager "$peers/kube-controller-manager" --kubeconfig "$member" --leader-elect=false --secure-port=0 \
    --service-account-private-key-file "$here/accounts.key" --root-ca-file "$here/ca.crt" --use-service-account-credentials
hub --fleet-probe-interval 1s
own() { kubectl --kubeconfig "$member" "$@"; }
of_view() { kubectl --kubeconfig "$here/fleet.kubeconfig" "$@"; }

begun=$(now_ms)
"$bin/bareboat" fleet join real --member-kubeconfig "$member" --all-resources >"$here/join.log" 2>&1 || fail "join: $(cat "$here/join.log")"
eventually synced real
types=$(kubectl get pediacluster real -o json | python3 -c 'import json, sys; print(sum(len(g["resources"]) for g in json.load(sys.stdin)["status"]["syncResources"]))')
checked "kube-apiserver $version joined with all its types ($types): synced after $(seconds $(($(now_ms) - begun)))"
"$bin/bareboat" fleet kubeconfig --save "$here/fleet.kubeconfig" >/dev/null

own create deployment web --image=nginx:1 --replicas=10 >/dev/null
ten() { [ "$(own get pods -l app=web --no-headers | wc -l)" = 10 ]; }
eventually ten
# The same table, apart from the column of the cluster.
same() {
    diff <(own get pods -o wide | tr -s ' ') <(of_view --cluster real get pods -o wide | tr -s ' ' | sed 's/^[^ ]* //')
}
eventually same
checked "a Deployment of 10: the view shows its Pods as the member does"
pods() { kubectl get --raw "$views/api/v1/pods?$1" | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["items"]))'; }
[ "$(pods 'ownerName=web&ownerGR=deployments.apps&ownerSeniority=1')" = 10 ] || fail "owner search does not find 10 Pods"
[ "$(pods 'ownerName=web&ownerGR=deployments.apps')" = 0 ] || fail "a Deployment owns no Pod directly"
checked "owner search finds them below the Deployment and its ReplicaSet"

# How often the member listed or watched ReplicaSets and so on for the hub, since it started.
asked() {
    own get --raw /metrics | awk -v verb="verb=\"$1\"" '/^apiserver_request_total\{/ && index($0, verb) && /resource="(pods|deployments|replicasets|configmaps|services)"/ && /scope="cluster"/ { sum += $NF } END { print sum + 0 }'
}
# The hub is killed; its member changes meanwhile.
lists=$(asked LIST)
stop hub KILL
own scale deployment web --replicas=4 >/dev/null
own create configmap while-away --from-literal a=b >/dev/null
launch_hub --fleet-probe-interval 1s
eventually synced real
eventually same
says while-away kubectl --kubeconfig "$here/fleet.kubeconfig" --cluster real get configmaps
[ "$(asked LIST)" = "$lists" ] || fail "a type was listed again after the hub was killed: $lists lists became $(asked LIST)"
checked "the hub was killed with SIGKILL: changes meanwhile are there, no type was listed again"

# The member is killed: a kube-apiserver forgets what was before its start.
restart="$(tr '\0' '\n' <"/proc/$(cat "$here/kube-apiserver.pid")/cmdline")"
mapfile -t restart <<<"$restart"
stop kube-apiserver KILL
eventually sh -c "kubectl get pediacluster real -o json | grep -q NotReachable"
says "real is not ready and the resources obtained may be inaccurate" kubectl --kubeconfig "$here/fleet.kubeconfig" --cluster real get pods
start kube-apiserver "${restart[@]}"
KUBECONFIG=$member eventually kubectl get --raw /readyz
own scale deployment web --replicas=7 >/dev/null
eventually synced real
eventually same
checked "the member was killed with SIGKILL: the view warns, and is equal again"
