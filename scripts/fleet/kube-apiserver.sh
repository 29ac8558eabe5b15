# A real kube-apiserver with etcd and kube-controller-manager is a member: first sync, equality, outages, owner search.
# Every request that begins is in the audit log, so a watch counts while it runs.
printf '%s\n' 'apiVersion: audit.k8s.io/v1' 'kind: Policy' 'omitStages: [ResponseStarted, ResponseComplete]' 'rules: [{level: Metadata}]' >"$here/policy.yaml"
kube_apiserver --audit-policy-file "$here/policy.yaml" --audit-log-path "$here/audit.log"
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
pods_are() { [ "$(own get pods -l app=web --no-headers | wc -l)" = "$1" ]; }
eventually pods_are 10
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

# asked: how often the hub asked the member for each type since the last line that was marked, as JSON: lists, and watches that were
# resumed. A watch that begins with the state is a list; the pages of one list count once. The namespace kube-system, whose uid tells that
# this is still the same member, is no list of a type.
mark() { marked=$(wc -l <"$here/audit.log"); }
asked() {
    tail -n "+$((marked + 1))" "$here/audit.log" | python3 -c '
import collections, json, sys
lists, watches = collections.Counter(), collections.Counter()
for line in sys.stdin:
    try:
        event = json.loads(line)
    except ValueError:
        # A server that was killed may have left half a line.
        continue
    if event.get("userAgent") != "bareboat" or event["verb"] not in ("list", "watch") or "resource" not in event.get("objectRef", {}):
        continue
    ref, target = event["objectRef"], event["requestURI"]
    name = ref["resource"] + "." + ref.get("apiGroup", "")
    if event["verb"] == "watch" and "sendInitialEvents=" not in target:
        watches[name] += 1
    elif "continue=" not in target and "fieldSelector=metadata.name%3Dkube-system" not in target:
        lists[name] += 1
print(json.dumps({"lists": lists, "watches": watches, "listed": sum(lists.values()), "most": max(lists.values(), default=0),
                  "watched": len(watches), "again": sum(watches.values()) - len(watches)}))'
}
# all_watched: every type is watched again since the mark, after a list or without one. Definitions are synced, too, if no rule names them.
all_watched() { [ "$(field "$(asked)" watched)" -ge "$types" ]; }
# rows: how many rows of the member the hub has written since it started.
rows() { kubectl get --raw /metrics | awk '/^bareboat_fleet_changes_total\{member="real"\}/ { print $2 }'; }

# The hub is killed; its member changes meanwhile.
mark
stop hub KILL
own scale deployment web --replicas=4 >/dev/null
own create configmap while-away --from-literal a=b >/dev/null
launch_hub --fleet-probe-interval 1s
eventually synced real
eventually same
says while-away kubectl --kubeconfig "$here/fleet.kubeconfig" --cluster real get configmaps
eventually all_watched
since=$(asked)
[ "$(field "$since" listed)" = 0 ] || fail "a type was listed again after the hub was killed: $since"
[ "$(field "$since" again)" = 0 ] || fail "a type was watched twice after the hub was killed: $since"
checked "the hub was killed with SIGKILL: changes meanwhile are there; $(field "$since" watched) watches, one for each type, and no list"

# The member restarts: a kube-apiserver forgets what was before its start.
restart="$(tr '\0' '\n' <"/proc/$(cat "$here/kube-apiserver.pid")/cmdline")"
mapfile -t restart <<<"$restart"
for signal in KILL TERM; do
    # Nothing else changes the member's objects meanwhile.
    stop kube-controller-manager
    mark
    stop kube-apiserver $signal
    eventually sh -c "kubectl get pediacluster real -o json | grep -q NotReachable"
    says "real is not ready and the resources obtained may be inaccurate" kubectl --kubeconfig "$here/fleet.kubeconfig" --cluster real get pods
    before=$(rows)
    start kube-apiserver "${restart[@]}"
    KUBECONFIG=$member eventually kubectl get --raw /readyz
    own create configmap "after-${signal,,}" --from-literal a=b >/dev/null
    own delete pod "$(own get pods -l app=web -o name | head -n 1 | cut -d/ -f2)" --grace-period 0 --force >/dev/null 2>&1
    says "after-${signal,,}" kubectl --kubeconfig "$here/fleet.kubeconfig" --cluster real get configmaps
    eventually synced real
    eventually same
    eventually all_watched
    since=$(asked) written=$(($(rows) - before))
    [ "$(field "$since" most)" -le 1 ] || fail "a type was listed twice after the member restarted: $since"
    total=$(kubectl get --raw "/apis/clusterpedia.io/v1beta1/collectionresources/any?groups=*&limit=1&withRemainingCount=true" |
        python3 -c 'import json, sys; print(json.load(sys.stdin).get("remainingItemCount", 0) + 1)')
    checked "the member ended with SIG$signal and started: the view warned and is equal again; $(field "$since" listed) lists, at most one for each of $types types; $written of $total rows were written"
    # A new kube-apiserver writes some objects of its own.
    [ "$written" -lt $((total / 2)) ] || fail "$written of $total rows were written after the member restarted"
    start kube-controller-manager "$peers/kube-controller-manager" --kubeconfig "$member" --leader-elect=false --secure-port=0 \
        --service-account-private-key-file "$here/accounts.key" --root-ca-file "$here/ca.crt" --use-service-account-credentials
    eventually pods_are 4
done
