#!/usr/bin/env bash
# Runs the examples with everything they need from elsewhere: a real kube-apiserver, virtctl, a controller manager, clients that
# k8s.io/code-generator made, controllers in other languages, generators of projects. Each system has a session in scripts/systems/.
#
#   scripts/systems.sh [SYSTEM...]         default: all, in this order
#
# CARGO_TARGET_DIR is respected. It ends with a table of what was checked. A system that needs a program which is not there
# is skipped; with CI=true it fails. Exit codes: 0 all passed, 1 some failed, 2 wrong usage or a program could not be built.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
all="sessions kube-apiserver virtctl hello sample-controllers kubebuilder apiserver-boot smallest"
[ $# -gt 0 ] || set -- $all
for name in "$@"; do
    case " $all " in
    *" $name "*) ;;
    *) echo "usage: scripts/systems.sh [${all// /] [}]" >&2 && exit 2 ;;
    esac
done

export root peers="$root/.cache/peers" bin="${CARGO_TARGET_DIR:-$root/target}/debug"
dir=$(mktemp -d)
export dir
source scripts/systems/finish.sh
trap finish EXIT

# Always the whole workspace, as in scripts/test.sh, so that nothing is compiled twice with other features.
if [ -z "${SYSTEMS_BUILT:-}" ]; then
    cargo build --workspace --bins || exit 2
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
    bash -c "source scripts/systems/common.sh; source scripts/systems/$system.sh" || outcome=failed
    if [ -f "$dir/$system/missing" ]; then
        outcome="skipped: $(cat "$dir/$system/missing")"
        [ "${CI:-}" != true ] || outcome="failed: $(cat "$dir/$system/missing")"
    fi
    case $outcome in failed*) result=1 ;; esac
    what=$(paste -sd ';' "$dir/$system/checked" | sed 's/;/; /g')
    rows+=("| $system | $what | $((SECONDS - started)) s | $outcome |")
done
echo
echo "| system | checked | time | outcome |"
echo "|---|---|---|---|"
printf '%s\n' "${rows[@]}"
if [ $result = 0 ]; then
    finish
    rm -rf "$dir"
else
    echo "systems: the logs are in $dir"
fi
exit $result
