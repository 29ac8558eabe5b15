#!/usr/bin/env bash
# Generates deep copies, the clientset, listers and informers of package api into the folder it is run in, a copy of this one.
set -euo pipefail
module=bareboat/tests/peers/hello
generate() { go run "k8s.io/code-generator/cmd/$1" --go-header-file /dev/null "${@:2}"; }
generate deepcopy-gen --output-file zz_generated.deepcopy.go "$module/api/v1" "$module/api/v2"
generate client-gen --clientset-name versioned --input-base "$module" --input api/v1,api/v2 \
    --output-dir generated/clientset --output-pkg "$module/generated/clientset"
generate lister-gen --output-dir generated/listers --output-pkg "$module/generated/listers" "$module/api/v1" "$module/api/v2"
generate informer-gen --versioned-clientset-package "$module/generated/clientset/versioned" \
    --listers-package "$module/generated/listers" --output-dir generated/informers \
    --output-pkg "$module/generated/informers" "$module/api/v1" "$module/api/v2"
