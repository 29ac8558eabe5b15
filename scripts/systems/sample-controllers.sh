# The sample controller in Rust, Go and Python against Bareboat: lines of code, milliseconds and memory side by side.
needs "$peers/kubectl" "$peers/sample-controller" "$root/.cache/python/bin/kopf" go
bareboat

# lines FILE...: lines that are neither blank nor comment, without the unit tests at the end of a file of Rust.
lines() {
    local file
    for file in "$@"; do sed '/^#\[cfg(test)\]/,$d' "$file"; done | grep -vcE '^[[:space:]]*($|//|# |/\*|\*)'
}

# appears FILE RESOURCE: writes the time in milliseconds at which a new object of a resource appears.
appears() {
    rm -f "$1"
    kubectl get "$2" --watch-only --output name 2>/dev/null | while read -r _; do
        date +%s%3N >"$1"
        break
    done &
    watches+=($!)
}

await() {
    local end=$((SECONDS + 60))
    until [ -s "$1" ]; do
        [ $SECONDS -lt $end ] || fail "$language: $1 did not appear"
        sleep 0.02
    done
}

foo() {
    printf '{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, metadata: {name: %s}, spec: {deploymentName: %s, replicas: 1}}' "$1" "$1" |
        kubectl create -f - >/dev/null
}

# measure LANGUAGE LINES COMMAND...: how long a controller takes from its start to its first Deployment, and for another Foo.
measure() {
    language=$1
    local count=$2 begun reaction
    shift 2
    watches=()
    foo "$language-first"
    appears "$here/$language.first" deployments
    sleep 1
    begun=$(date +%s%3N)
    start "$language" "$@"
    await "$here/$language.first"
    begun=$(($(cat "$here/$language.first") - begun))
    sleep 1
    appears "$here/$language.foo" foos
    appears "$here/$language.second" deployments
    sleep 1
    foo "$language-second"
    await "$here/$language.foo"
    await "$here/$language.second"
    reaction=$(($(cat "$here/$language.second") - $(cat "$here/$language.foo")))
    says "$language-second" kubectl get deployments
    kubectl delete deployment "$language-second" >/dev/null
    eventually kubectl get deployment "$language-second"
    local memory
    memory=$(($(ps -o rss= -p "$(cat "$here/$language.pid")") / 1024))
    kubectl delete foo --all >/dev/null
    eventually bash -c '[ -z "$(kubectl get deployments --output name)" ]'
    stop "$language" INT
    kill "${watches[@]}" 2>/dev/null || true
    checked "$language: $count lines, $begun ms from start to the first Deployment, $reaction ms for another, $memory MiB"
}

example="$root/examples/sample-controller"
export RUST_LOG=warn
start define "$bin/sample-controller"
eventually kubectl wait --for=condition=Established crd/foos.samplecontroller.k8s.io
stop define
measure rust "$(lines "$example"/src/*.rs)" "$bin/sample-controller"
module=$(cd "$root/tests/peers/kubernetes" && go list -m -f '{{.Dir}}' k8s.io/sample-controller)
mapfile -t hand < <(find "$module" -name '*.go' ! -path '*/generated/*' ! -path '*/hack/*' ! -name 'zz_*' ! -name '*_test.go')
mapfile -t every < <(find "$module" -name '*.go' ! -path '*/hack/*' ! -name '*_test.go')
measure go "$(lines "${hand[@]}") by hand of $(lines "${every[@]}")" "$peers/sample-controller" --kubeconfig "$KUBECONFIG"
measure python "$(lines "$example/python/controller.py")" "$root/.cache/python/bin/kopf" run --all-namespaces --quiet "$example/python/controller.py"
