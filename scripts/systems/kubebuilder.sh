# A project made by kubebuilder, with an API and webhooks, works unchanged against Bareboat: `make manifests generate install run`.
# The Makefile of the project would install its tools from the network; they are put where it looks for them instead.
needs "$peers/kubectl" "$peers/kubebuilder" "$peers/controller-gen" "$peers/kustomize" go openssl make

project="$here/yachts"
mkdir -p "$project"
cd "$project"
export GOFLAGS="${GOFLAGS:-} -mod=mod"
{
    # Dependencies are fetched once, by `go mod tidy`.
    kubebuilder init --domain example.org --repo example.org/yachts --skip-go-version-check --fetch-deps=false
    kubebuilder create api --group fleet --version v1 --kind Yacht --resource --controller --make=false
    kubebuilder create webhook --group fleet --version v1 --kind Yacht --defaulting --programmatic-validation --make=false
    go mod tidy
} >"$here/init.log" 2>&1 || fail "$(tail -n 40 "$here/init.log")"

# tool NAME VARIABLE: puts a program where the Makefile would install it, in the version that the Makefile names.
tool() {
    local version
    version=$(sed -n "s/^$2 ?= //p" Makefile)
    mkdir -p bin
    cp "$peers/$1" "bin/$1-$version"
    ln -sf "$PWD/bin/$1-$version" "bin/$1"
}
tool controller-gen CONTROLLER_TOOLS_VERSION
tool kustomize KUSTOMIZE_VERSION

start bareboat "$bin/bareboat" serve --in-memory --bind 127.0.0.1:0 --data-dir "$here/data"
export KUBECONFIG="$here/data/admin.kubeconfig"
eventually kubectl get --raw /readyz
make manifests generate install >"$here/make.log" 2>&1 || fail "$(tail -n 40 "$here/make.log")"
eventually kubectl wait --for condition=Established crd/yachts.fleet.example.org
checked "a project of kubebuilder: make manifests, generate, install"

# The manager looks for the certificate of webhooks in the folder for temporary files. The first build takes minutes.
export TMPDIR="$here/tmp"
certificates="$TMPDIR/k8s-webhook-server/serving-certs"
mkdir -p "$certificates"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=webhook \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$certificates/tls.key" -out "$certificates/tls.crt" 2>/dev/null
go build ./... >>"$here/make.log" 2>&1 || fail "$(tail -n 40 "$here/make.log")"
# A group of its own: `go run` does not pass signals on.
trap 'kill -TERM -- "-$(cat "$here/run.pid")" 2>/dev/null || true' EXIT
# The ports of the project are fixed; another program may use one of them for a while.
is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
for attempt in 1 2 3; do
    eventually is_free 9443
    eventually is_free 8081
    start run setsid make run
    end=$((SECONDS + 180))
    until grep -q 'Starting workers' "$here/run.log"; do
        kill -0 "$(cat "$here/run.pid")" 2>/dev/null || break
        [ $SECONDS -lt $end ] || fail "the manager does not start: $(tail -n 20 "$here/run.log")"
        sleep 0.5
    done
    grep -q 'Starting workers' "$here/run.log" && kill -0 "$(cat "$here/run.pid")" 2>/dev/null && break
    if [ "$attempt" = 3 ] || ! grep -q 'address already in use' "$here/run.log"; then
        fail "the manager does not start: $(tail -n 20 "$here/run.log")"
    fi
    mv "$here/run.log" "$here/run.$attempt.log"
done

# On this machine webhooks have a URL instead of a service.
ca=$(base64 -w0 "$certificates/tls.crt")
sed -e '/^ *service:/,/^ *path:/{ s|^\( *\)path: \(.*\)|\1PATH \2|; /PATH/!d; }' config/webhook/manifests.yaml |
    sed -e "s|^ *PATH \(.*\)|    url: https://127.0.0.1:9443\1\n    caBundle: $ca|" | kubectl apply -f - >>"$here/make.log" 2>&1
kubectl apply -k config/samples >>"$here/make.log" 2>&1 || fail "$(tail -n 40 "$here/make.log")"
eventually kubectl get yacht yacht-sample
eventually grep 'Defaulting for Yacht' "$here/run.log"
eventually grep 'Validation for Yacht upon creation' "$here/run.log"
checked "make run: the controller works, and its webhooks are asked"
kubectl delete -f config/samples/fleet_v1_yacht.yaml >>"$here/make.log" 2>&1
make uninstall ignore-not-found=true >>"$here/make.log" 2>&1 || fail "$(tail -n 40 "$here/make.log")"
checked "make uninstall"

# The other way round: kubebuilder extends a project that `bareboat new operator --lang go` made.
project="$here/boats"
cp -R "$root/tests/scaffolds/go-operator" "$project"
cd "$project"
{
    kubebuilder create api --group fleet --version v1 --kind Dock --resource --controller --make=false
    make manifests generate build CONTROLLER_GEN="$peers/controller-gen"
    kubectl kustomize config/crd
    make build-installer IMG=example.org/boats:1
} >"$here/boats.log" 2>&1 || fail "$(tail -n 40 "$here/boats.log")"
grep -q 'kind: Dock$' config/crd/bases/fleet.example.org_docks.yaml || fail "there is no definition of Dock"
grep -q 'image: example.org/boats:1' dist/install.yaml && grep -q 'name: docks.fleet.example.org' dist/install.yaml ||
    fail "dist/install.yaml lacks the image or the new definition"
kubectl apply --server-side -f config/crd/bases >>"$here/boats.log" 2>&1 || fail "$(tail -n 40 "$here/boats.log")"
eventually kubectl wait --for condition=Established crd/docks.fleet.example.org crd/yachts.fleet.example.org
checked "a project of bareboat new --lang go: kubebuilder create api, make manifests, generate, build, build-installer"
