#!/usr/bin/env bash
# Runs a hub with everything a fleet has at full size: a real kube-apiserver as a member, a hundred ghosts with ten thousand objects
# each, a controller of multicluster-runtime, informers of client-go, and the figures of the shelf beside Clusterpedia's table.
# Each row has a session in scripts/fleet/.
#
#   scripts/fleet.sh [SESSION...]         default: all, in this order
#
# FLEET_MEMBERS (100) and FLEET_OBJECTS (10000) make it smaller. CARGO_TARGET_DIR is respected. It ends with a table. A session that
# needs a program which is not there is skipped; with CI=true it fails. Figures are told beside their targets; only what must hold
# on any machine is checked. Exit codes: 0 all passed, 1 some failed, 2 wrong usage or a program could not be built.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
all="kube-apiserver multicluster-runtime ghosts shelf"
[ $# -gt 0 ] || set -- $all
for name in "$@"; do
    case " $all " in
    *" $name "*) ;;
    *) echo "usage: scripts/fleet.sh [${all// /] [}]" >&2 && exit 2 ;;
    esac
done

export suite=fleet root peers="$root/.cache/peers" bin="${CARGO_TARGET_DIR:-$root/target}/dist"
export FLEET_MEMBERS=${FLEET_MEMBERS:-100} FLEET_OBJECTS=${FLEET_OBJECTS:-10000}
dir=$(mktemp -d)
export dir
source scripts/systems/finish.sh
trap finish EXIT

# The program as it is shipped, which is also what `make bench` measures.
if [ -z "${FLEET_BUILT:-}" ]; then
    cargo build --profile dist --package bareboat-cli || exit 2
    cargo build --profile dist --package bareboat-shelf --example million || exit 2
fi

result=0
rows=()
for system in "$@"; do
    export system
    mkdir -p "$dir/$system"
    : >"$dir/$system/checked"
    started=$SECONDS
    # A process of its own: a session ends at its first failure, and the next one starts.
    outcome=passed
    bash -c "source scripts/systems/common.sh; source scripts/fleet/common.sh; source scripts/fleet/$system.sh" || outcome=failed
    if [ -f "$dir/$system/missing" ]; then
        outcome="skipped: $(cat "$dir/$system/missing")"
        [ "${CI:-}" != true ] || outcome="failed: $(cat "$dir/$system/missing")"
    fi
    case $outcome in failed*) result=1 ;; esac
    took="$((SECONDS - started)) s"
    while read -r line; do
        rows+=("| $system | $line | | |")
    done <"$dir/$system/checked"
    rows+=("| $system | | $took | $outcome |")
    finish
    [ "$outcome" = failed ] || rm -rf "${dir:?}/$system"/{data,million}
done
echo
echo "| session | checked or measured | time | outcome |"
echo "|---|---|---|---|"
printf '%s\n' "${rows[@]}"
if [ $result = 0 ]; then
    rm -rf "$dir"
else
    echo "fleet: the logs are in $dir"
fi
exit $result
