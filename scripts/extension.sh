#!/usr/bin/env bash
# Runs systems that extend the API of Kubernetes against Bareboat, as local processes: metrics-server, cert-manager, the test
# adapter of custom metrics, Gatekeeper. Each has a session in scripts/extension/, with a failure of its server.
#
#   scripts/extension.sh [SYSTEM...]         default: all, in this order
#
# BAREBOAT names a binary to use instead of building one. It ends with a table of what was checked, as in docs/extension.md.
# Exit codes: 0 all passed, 1 some failed, 2 a program did not start.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
peers="$root/.cache/peers"
dir=$(mktemp -d)
# Everything that a session started and left.
finish() {
    local file
    for file in "$dir"/*.pid; do
        [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null || true
    done
    wait 2>/dev/null || true
}
trap finish EXIT

[ $# -gt 0 ] || set -- metrics-server cert-manager custom-metrics gatekeeper
for name in "$@"; do
    if [ ! -f "scripts/extension/$name.sh" ] || [ "$name" = common ]; then
        echo "usage: scripts/extension.sh [metrics-server] [cert-manager] [custom-metrics] [gatekeeper]" >&2
        exit 2
    fi
done
if [ -n "${BAREBOAT:-}" ]; then
    bareboat=$BAREBOAT
else
    cargo build --package bareboat-cli
    bareboat="${CARGO_TARGET_DIR:-target}/debug/bareboat"
fi

export KUBECONFIG="$dir/data/admin.kubeconfig"
"$bareboat" serve --in-memory --data-dir "$dir/data" --bind 127.0.0.1:0 >"$dir/bareboat.log" 2>&1 &
echo $! >"$dir/bareboat.pid"
end=$((SECONDS + 60))
until "$peers/kubectl" get --raw /readyz >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
        echo "extension: bareboat did not start; see $dir" >&2
        exit 2
    fi
    sleep 0.2
done

# The version of a system, from the module that pins it.
version() {
    local module
    case $1 in
    metrics-server) module=sigs.k8s.io/metrics-server ;;
    cert-manager) module=github.com/cert-manager/cert-manager ;;
    gatekeeper) module=github.com/open-policy-agent/gatekeeper/v3 ;;
    custom-metrics) module=sigs.k8s.io/custom-metrics-apiserver ;;
    esac
    (cd tests/peers/extension && go list -m -f '{{.Version}}' "$module")
}

result=0
rows=()
for system in "$@"; do
    outcome=passed
    : >"$dir/$system.checked"
    # A process of its own: a session ends at its first failure, and the next one starts.
    export system dir peers bareboat
    bash -c "source scripts/extension/common.sh; source scripts/extension/$system.sh" || outcome=failed
    [ $outcome = passed ] || result=1
    rows+=("| $system | $(version "$system") | $(paste -sd ';' "$dir/$system.checked" | sed 's/;/; /g') | $outcome |")
done
echo
echo "| system | version | checked | outcome |"
echo "|---|---|---|---|"
printf '%s\n' "${rows[@]}"
if [ $result = 0 ]; then
    finish
    rm -rf "$dir"
else
    echo "extension: the logs are in $dir"
fi
exit $result
