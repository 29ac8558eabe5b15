# A server that apiserver-boot generates, on sigs.k8s.io/apiserver-runtime and etcd, behind Bareboat: kubectl uses its kind.
needs "$peers/kubectl" "$peers/apiserver-boot" "$peers/controller-gen" "$peers/etcd" go openssl make python3

project="$here/harbour"
mkdir -p "$project"
cd "$project"
export GOFLAGS="${GOFLAGS:-} -mod=mod"
{
    apiserver-boot init repo --domain example.org --module-name example.org/harbour
    apiserver-boot create group version resource --group fleet --version v1 --kind Berth --skip-resource=false --skip-controller=true
    # A field, as its author would add it.
    sed -i 's|^type BerthSpec struct {|&\n\tLength int64 `json:"length,omitempty"`|' pkg/apis/fleet/v1/berth_types.go
    go mod tidy
    # The Makefile would install it from the network.
    cp "$peers/controller-gen" bin/controller-gen
    make generate
    apiserver-boot build executables --targets apiserver
} >"$here/init.log" 2>&1 || fail "$(tail -n 40 "$here/init.log")"
checked "apiserver-boot $(go version -m "$peers/apiserver-boot" | awk '$2 == "sigs.k8s.io/apiserver-builder-alpha" { print $3 }') generates and builds a server of Kubernetes $(sed -n 's|^\tk8s.io/apimachinery v0|1|p' go.mod)"

bareboat
etcd=$(free_port) peer=$(free_port) port=$(free_port)
start etcd "$peers/etcd" --data-dir "$here/etcd" --listen-client-urls "http://127.0.0.1:$etcd" \
    --advertise-client-urls "http://127.0.0.1:$etcd" --listen-peer-urls "http://127.0.0.1:$peer" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer"
authority serving
certificate tls serving /CN=harbour "subjectAltName=DNS:harbour.default.svc,IP:127.0.0.1"
# Its own priority and fairness asks for a version that Kubernetes no longer has; `apiserver-boot run` turns it off as well.
start harbour bin/apiserver --etcd-servers "http://127.0.0.1:$etcd" --secure-port "$port" --bind-address 127.0.0.1 \
    --feature-gates APIPriorityAndFairness=false --tls-cert-file "$here/tls.crt" --tls-private-key-file "$here/tls.key" \
    --kubeconfig "$KUBECONFIG" --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG"
kubectl apply -f - >"$here/apply.log" <<YAML
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.fleet.example.org
  annotations: {bareboat.dev/url: "https://127.0.0.1:$port"}
spec:
  group: fleet.example.org
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {namespace: default, name: harbour, port: 443}
  caBundle: $(base64 -w0 "$here/serving.crt")
YAML
eventually available v1.fleet.example.org
berth() { printf '{apiVersion: fleet.example.org/v1, kind: Berth, metadata: {name: %s}, spec: {length: %s}}' "$1" "$2"; }
berth north 12 >north.yaml
kubectl create -f north.yaml >>"$here/apply.log" 2>&1 || fail "$(cat "$here/apply.log")"
berth north 14 >north.yaml
kubectl apply -f north.yaml >>"$here/apply.log" 2>&1 || fail "$(cat "$here/apply.log")"
says 14 kubectl get berth north -o jsonpath='{.spec.length}'
kubectl label berth north side=port >/dev/null
says "berth.fleet.example.org/north" kubectl get berths -l side=port -o name
refuses 'User "jane" cannot list resource "berths" in API group "fleet.example.org"' kubectl get berths --as jane
checked "behind Bareboat: kubectl create, apply, get, label; the rights are those of Bareboat's roles"
kubectl delete berth north >/dev/null
refuses "NotFound" kubectl get berth north
stop harbour
refuses "ServiceUnavailable" kubectl get --raw /apis/fleet.example.org/v1/berths
kubectl get namespaces >/dev/null
checked "stopped: only its group is not available"
