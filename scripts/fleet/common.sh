# What the sessions of scripts/fleet.sh share, beside scripts/systems/common.sh.
views=/apis/clusterpedia.io/v1beta1/resources

# launch_hub FLAG...: starts the hub on the data it has, at the address it has, and waits until it is ready.
launch_hub() {
    start hub "$bin/bareboat" serve --data-dir "$here/data" --bind "127.0.0.1:$hub_port" --fleet "$@"
    eventually kubectl --kubeconfig "$here/data/admin.kubeconfig" get --raw /readyz
}

# hub FLAG...: starts a hub, and sets KUBECONFIG.
hub() {
    needs kubectl python3
    hub_port=$(free_port)
    launch_hub "$@"
    export KUBECONFIG="$here/data/admin.kubeconfig"
    eventually kubectl get namespace clusterpedia-system
}

hub_pid() { cat "$here/hub.pid"; }

# The memory of the hub in MB: now, and at most so far.
hub_memory() { awk '/^VmRSS:/ { now = $2 } /^VmHWM:/ { most = $2 } END { printf "%d MB, at most %d MB", now / 1024, most / 1024 }' "/proc/$(hub_pid)/status"; }

# The processor time of the hub in milliseconds.
hub_cpu() { awk '{ sub(/.*\) /, ""); print ($12 + $13) * 10 }' "/proc/$(hub_pid)/stat"; }

now_ms() { date +%s%3N; }

# seconds MILLISECONDS: with one digit after the point.
seconds() { awk -v ms="$1" 'BEGIN { printf "%.1f s", ms / 1000 }'; }

# synced MEMBER: a member is ready, and all its types are synced.
synced() {
    kubectl get pediacluster "$1" -o json | python3 -c '
import json, sys
cluster = json.load(sys.stdin)
status = cluster.get("status", {})
ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))
types = [t["syncConditions"][0]["status"] for group in status.get("syncResources", []) for t in group["resources"]]
sys.exit(not (ready and types and all(one == "Syncing" for one in types)))'
}

# field JSON-LINE NAME: a value of a line of JSON.
field() { python3 -c 'import json, sys; print(json.loads(sys.argv[1])[sys.argv[2]])' "$1" "$2"; }
