#!/usr/bin/env bash
# Builds the real programs that tests and benchmarks use, into .cache/peers.
#
#   scripts/peers.sh [clients] [client130] [kubernetes] [servers] [conformance] [extension] [kine] [virtctl] [hello] [kubebuilder] [apiserver-boot] [fleet]
#                                          (nothing named: the first three)
#
#   clients     peers, helm                informer, typed, leaderelect, stress, manager, flux, whoami, metrics (newest client-go)
#   client130   informer130                an informer with client-go 0.30
#   kubernetes  kubectl, kube-controller-manager, sample-controller, sample-apiserver, etcd, kms-plugin, stub-kubelet, kubemark,
#               pod-security with its fixtures
#   servers     etcd, kube-apiserver       to compare with, for `bareboat-bench`
#   conformance conformance.test, ginkgo, kube-scheduler, pod-servers     for `scripts/conformance.sh`, with the set kubernetes
#   extension   metrics-server, cert-manager, gatekeeper, custom-metrics-adapter, with their manifests
#                                          for `scripts/extension.sh`, with the sets kubernetes and clients
#   kubebuilder kubebuilder, controller-gen, kustomize       for `scripts/systems/kubebuilder.sh`, with the set kubernetes
#   apiserver-boot apiserver-boot          for `scripts/systems/apiserver-boot.sh`, with the sets kubernetes and kubebuilder
#   virtctl     virtctl                    the client of KubeVirt, for `scripts/systems.sh`
#   hello       hello                      clients of examples/hello-extended, generated, for `scripts/systems.sh`
#   fleet       fleet-peers                ghosts, informers of views and a controller of multicluster-runtime, for `scripts/fleet.sh`,
#                                          with the sets kubernetes and servers
#   kine        kine                       kube-apiserver on PostgreSQL, for `bareboat-bench --engines`, with the set servers
#
# A set is built only when its sources changed. PEERS_JOBS (default 2) bounds parallel compilation.
# Exit codes: 0 built or up to date, 2 wrong usage, 3 Go is missing or too old, 4 a build failed.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
out="$root/.cache/peers"
jobs=${PEERS_JOBS:-2}
go_needed=1.26

need_go() {
    if ! command -v go >/dev/null 2>&1; then
        echo "peers: Go is not installed; Go $go_needed or newer is needed to build the real clients" >&2
        exit 3
    fi
    local have
    have=$(go env GOVERSION) && have=${have#go}
    if [ "$(printf '%s\n%s\n' "$go_needed" "$have" | sort -V | head -n 1)" != "$go_needed" ]; then
        echo "peers: Go $have is too old; Go $go_needed or newer is needed" >&2
        exit 3
    fi
}

# Prints the fingerprint of everything that defines the programs of a set.
fingerprint() {
    (
        cd "$1"
        find . \( -name '*.go' -o -name go.mod -o -name go.sum \) -print | LC_ALL=C sort | xargs sha256sum
        sha256sum "$root/scripts/peers.sh" | cut -d' ' -f1
        go env GOVERSION
    ) | sha256sum | cut -d' ' -f1
}

# Retries a build, because downloads may fail. Compiled packages are kept.
try() {
    local attempt
    for attempt in 1 2 3; do
        "$@" && return
        [ "$attempt" = 3 ] || { echo "peers: retrying in $((attempt * 10)) s" >&2 && sleep $((attempt * 10)); }
    done
    return 1
}

# build SET MODULE LEADER NAME=PACKAGE...: builds programs of one module and stamps the set when all are built. Their
# version is that of the module LEADER. A name that ends in .test builds the tests of a package.
build() {
    local set=$1 dir="$root/tests/peers/$2" leader=$3 stamp="$out/.$1.stamp" print started=$SECONDS
    shift 3
    print=$(fingerprint "$dir")
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$print" ]; then
        local missing=
        for program in "$@"; do [ -x "$out/${program%%=*}" ] || missing=yes; done
        if [ -z "$missing" ]; then
            echo "peers: $set is up to date"
            return
        fi
    fi
    rm -f "$stamp"
    local version minor
    if ! version=$(cd "$dir" && try go list -m -f '{{.Version}}' "$leader"); then
        echo "peers: the version of $leader cannot be found" >&2
        exit 4
    fi
    version="v1.${version#v*.}"
    minor=${version#v1.} && minor=${minor%%.*}
    local flags="-s -w"
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version kubevirt.io/client-go/version; do
        flags="$flags -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
    done
    for program in "$@"; do
        echo "peers: building $set/${program%%=*} (the first build takes minutes)"
        local how=(build)
        case ${program%%=*} in *.test) how=(test -c) ;; esac
        if ! (cd "$dir" && CGO_ENABLED=0 try go "${how[@]}" -trimpath -p "$jobs" -ldflags "$flags" \
            -o "$out/${program%%=*}.new" "${program#*=}"); then
            echo "peers: building $set/${program%%=*} failed" >&2
            exit 4
        fi
        # Renamed, not overwritten: a running program keeps its file.
        mv -f "$out/${program%%=*}.new" "$out/${program%%=*}"
    done
    echo "$print" >"$stamp"
    echo "peers: $set built in $((SECONDS - started)) s"
}

# fixtures SET MODULE FOLDER NAME: copies a folder of a module that is downloaded already.
fixtures() {
    local from print
    from=$(cd "$root/tests/peers/$1" && go list -m -f '{{.Dir}}' "$2")/$3
    shift
    print="$out/$3/.from"
    if [ -f "$print" ] && [ "$(cat "$print")" = "$from" ]; then
        return
    fi
    rm -rf "${out:?}/$3"
    cp -R "$from" "$out/$3"
    chmod -R u+w "$out/$3"
    echo "$from" >"$print"
}

[ $# -gt 0 ] || set -- clients client130 kubernetes
need_go
mkdir -p "$out"
for set in "$@"; do
    case $set in
    clients) build clients clients k8s.io/client-go peers=. helm=helm.sh/helm/v4/cmd/helm ;;
    client130) build client130 client130 k8s.io/client-go informer130=. ;;
    # One module for all of them: shared packages are compiled once.
    kubernetes)
        build kubernetes kubernetes k8s.io/component-base kubectl=./kubectl \
            kube-controller-manager=./kube-controller-manager sample-controller=k8s.io/sample-controller \
            sample-apiserver=k8s.io/sample-apiserver etcd=./etcd kms-plugin=./kms-plugin stub-kubelet=./stub-kubelet \
            kubemark=k8s.io/kubernetes/cmd/kubemark pod-security=./pod-security
        fixtures kubernetes k8s.io/pod-security-admission test/testdata pod-security-fixtures
        ;;
    servers)
        build servers kubernetes k8s.io/component-base etcd=./etcd kube-apiserver=./kube-apiserver
        ;;
    conformance)
        build conformance kubernetes k8s.io/component-base conformance.test=./conformance \
            ginkgo=github.com/onsi/ginkgo/v2/ginkgo kube-scheduler=k8s.io/kubernetes/cmd/kube-scheduler \
            pod-servers=./pod-servers
        ;;
    extension)
        build extension extension k8s.io/component-base metrics-server=sigs.k8s.io/metrics-server/cmd/metrics-server \
            cert-manager=./cert-manager gatekeeper=github.com/open-policy-agent/gatekeeper/v3 \
            custom-metrics-adapter=./custom-metrics-adapter
        fixtures extension sigs.k8s.io/metrics-server manifests manifests-metrics-server
        fixtures extension github.com/cert-manager/cert-manager deploy/charts/cert-manager manifests-cert-manager
        fixtures extension sigs.k8s.io/custom-metrics-apiserver test-adapter-deploy manifests-custom-metrics
        fixtures extension github.com/open-policy-agent/gatekeeper/v3 deploy manifests-gatekeeper
        fixtures extension github.com/open-policy-agent/gatekeeper/v3 demo/basic manifests-gatekeeper-demo
        ;;
    kubebuilder)
        build kubebuilder kubebuilder sigs.k8s.io/kubebuilder/v4 kubebuilder=sigs.k8s.io/kubebuilder/v4 \
            controller-gen=sigs.k8s.io/controller-tools/cmd/controller-gen kustomize=sigs.k8s.io/kustomize/kustomize/v5
        ;;
    apiserver-boot)
        build apiserver-boot apiserver-boot sigs.k8s.io/apiserver-builder-alpha \
            apiserver-boot=sigs.k8s.io/apiserver-builder-alpha/cmd/apiserver-boot
        ;;
    virtctl) build virtctl virtctl kubevirt.io/kubevirt virtctl=. ;;
    hello)
        # The clients are generated into a copy.
        rm -rf "$root/.cache/hello-go"
        cp -R "$root/tests/peers/hello" "$root/.cache/hello-go"
        (cd "$root/.cache/hello-go" && try ./generate.sh) || exit 4
        build hello ../../.cache/hello-go k8s.io/client-go hello=.
        ;;
    fleet) build fleet fleet k8s.io/client-go fleet-peers=. ;;
    kine) build kine kine github.com/k3s-io/kine kine=github.com/k3s-io/kine ;;
    *)
        echo "usage: scripts/peers.sh [clients] [client130] [kubernetes] [servers] [conformance] [extension] [kine] [virtctl] [hello] [kubebuilder] [apiserver-boot] [fleet]" >&2
        exit 2
        ;;
    esac
done
