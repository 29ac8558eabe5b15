#!/usr/bin/env bash
# Records the responses of a kube-apiserver 1.36 to the corpus in crates/bareboat/tests/parity, then compares.
#
#   scripts/parity.sh               the corpus and the generated writes
#   scripts/parity.sh FILE          only the files of the corpus whose names contain FILE
#   scripts/parity.sh generated     only the generated writes
#   scripts/parity.sh admission     only webhooks and policies
#   scripts/parity.sh --more N [SEED]   N additional generated sequences for each kind, starting at SEED
#
# Exit codes: 0 no differences beyond docs/parity.md and docs/differences.md, 1 other differences, 2 no kube-apiserver.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
tests=parity::
skipped=()
corpus=yes
admission=yes
case "${1:-}" in
    --more)
        export BAREBOAT_PARITY_MORE=${2:?how many} BAREBOAT_PARITY_FROM=${3:-1000}
        tests=parity::generated::
        admission=
        ;;
    generated)
        tests=parity::generated::
        admission=
        ;;
    admission) corpus= ;;
    "") ;;
    *)
        export BAREBOAT_PARITY_ONLY=$1
        skipped=(--skip parity::generated::)
        admission=
        ;;
esac

dir=$(mktemp -d)
held=
release() {
    [ -z "$held" ] || kill "$held" 2>/dev/null || true
    [ -z "$held" ] || wait "$held" 2>/dev/null || true
    held=
}
trap 'release; rm -rf "$dir"' EXIT

# hold NAME FLAG...: starts a kube-apiserver with these flags of `bareboat-bench`, and prints the path of its kubeconfig to $dir/NAME.held.
hold() {
    local name=$1
    shift
    mkdir "$dir/$name"
    "${CARGO_TARGET_DIR:-target}/debug/bareboat-bench" --hold --work-dir "$dir/$name" "$@" >"$dir/$name.held" &
    held=$!
    until [ -s "$dir/$name.held" ]; do
        kill -0 $held 2>/dev/null || exit 2
        sleep 0.2
    done
}

# Plug-ins that Bareboat does not have, or that would reject objects because of others in the corpus.
without=LimitRanger,ResourceQuota,PodSecurity
without+=,CertificateApproval,CertificateSigning,CertificateSubjectRestriction,ClusterTrustBundleAttest
without+=,StorageObjectInUseProtection,PodTopologyLabels,NodeDeclaredFeatureValidator
extensible=MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy

cargo build --package bareboat-bench
failed=
if [ -n "$corpus" ]; then
    hold corpus -- --allow-privileged --disable-admission-plugins=$without,$extensible
    BAREBOAT_PARITY_PEER=$(cat "$dir/corpus.held") cargo test --package bareboat --test it $tests -- --nocapture \
        --skip parity::admission:: "${skipped[@]}" || failed=yes
    release
fi
if [ -n "$admission" ]; then
    # Types of policies are checked by kube-controller-manager.
    printf 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n' >"$dir/audit.yaml"
    hold admission --controller-manager -- --allow-privileged \
        --disable-admission-plugins=$without,ServiceAccount \
        --audit-policy-file="$dir/audit.yaml" --audit-log-path="$dir/audit.log"
    BAREBOAT_PARITY_ADMISSION=$(cat "$dir/admission.held") BAREBOAT_PARITY_AUDIT="$dir/audit.log" \
        cargo test --package bareboat --test it parity::admission:: -- --nocapture || failed=yes
    release
fi
[ -z "$failed" ]
