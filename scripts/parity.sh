#!/usr/bin/env bash
# Records the responses of a kube-apiserver 1.36 to the corpus in crates/bareboat/tests/parity, then compares.
#
#   scripts/parity.sh               the corpus and the generated writes
#   scripts/parity.sh FILE          only the files of the corpus whose names contain FILE
#   scripts/parity.sh generated     only the generated writes
#   scripts/parity.sh --more N [SEED]   N additional generated sequences for each kind, starting at SEED
#
# Exit codes: 0 no differences beyond docs/parity.md, 1 other differences, 2 no kube-apiserver.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
tests=parity::
skipped=()
case "${1:-}" in
    --more)
        export BAREBOAT_PARITY_MORE=${2:?how many} BAREBOAT_PARITY_FROM=${3:-1000}
        tests=parity::generated::
        ;;
    generated) tests=parity::generated:: ;;
    "") ;;
    *)
        export BAREBOAT_PARITY_ONLY=$1
        skipped=(--skip parity::generated::)
        ;;
esac

# Plug-ins that Bareboat does not have, or that would reject objects because of others in the corpus.
without=LimitRanger,ResourceQuota,PodSecurity
without+=,CertificateApproval,CertificateSigning,CertificateSubjectRestriction,ClusterTrustBundleAttest
without+=,StorageObjectInUseProtection,MutatingAdmissionWebhook,ValidatingAdmissionWebhook
without+=,ValidatingAdmissionPolicy,MutatingAdmissionPolicy,PodTopologyLabels,NodeDeclaredFeatureValidator

dir=$(mktemp -d)
cargo build --package bareboat-bench
"${CARGO_TARGET_DIR:-target}/debug/bareboat-bench" --hold --work-dir "$dir" -- \
    --allow-privileged --disable-admission-plugins=$without >"$dir/held" &
held=$!
trap 'kill $held 2>/dev/null || true; wait $held 2>/dev/null || true; rm -rf "$dir"' EXIT
until [ -s "$dir/held" ]; do
    kill -0 $held 2>/dev/null || exit 2
    sleep 0.2
done
BAREBOAT_PARITY_PEER=$(cat "$dir/held") cargo test --package bareboat --test it $tests -- --nocapture "${skipped[@]}"
