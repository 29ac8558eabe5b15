# cert-manager, installed by helm from its chart: a controller, a cainjector, and a webhook that is reached by URL.

port=$(free_port)
works "$peers/helm" install cert-manager "$peers/manifests-cert-manager" --namespace cert-manager --create-namespace \
    --set crds.enabled=true --set startupapicheck.enabled=false --set "webhook.url.host=localhost:$port"
checked "helm installs the chart"

for name in cert-manager cert-manager-cainjector cert-manager-webhook; do account cert-manager $name; done
hook() {
    start cert-manager-webhook "$peers/cert-manager" webhook --kubeconfig "$dir/cert-manager-webhook.kubeconfig" \
        --secure-port "$port" --dynamic-serving-ca-secret-namespace cert-manager \
        --dynamic-serving-ca-secret-name cert-manager-webhook-ca --dynamic-serving-dns-names localhost
}
hook
start cert-manager-cainjector "$peers/cert-manager" cainjector --kubeconfig "$dir/cert-manager-cainjector.kubeconfig"
start cert-manager-controller "$peers/cert-manager" controller --kubeconfig "$dir/cert-manager.kubeconfig"
bundle='jsonpath={.webhooks[*].clientConfig.caBundle}'
comes '^LS0t' kubectl get validatingwebhookconfiguration cert-manager-webhook -o "$bundle"
comes '^LS0t' kubectl get mutatingwebhookconfiguration cert-manager-webhook -o "$bundle"
checked "cainjector writes caBundle of both webhook configurations"

works kubectl create namespace issued
in_issued() { kubectl --namespace issued "$@"; }
issuer() {
    in_issued "${@:2}" -f - <<EOF
{"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "$1"}, "spec": {"selfSigned": {}}}
EOF
}
# The webhook starts to answer when it has a certificate of its own authority.
comes 'created \(server dry run\)' issuer selfsigned create --dry-run=server
works issuer selfsigned create
comes '^selfsigned +True' in_issued get issuers
says 'admission webhook "webhook.cert-manager.io" denied the request: spec: Invalid value: .*at least one of' in_issued create -f - <<EOF
{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "nobody"},
 "spec": {"secretName": "nobody", "issuerRef": {"name": "selfsigned"}}}
EOF
checked "webhook validates: a Certificate without a name is refused"

works in_issued create -f - <<EOF
{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "authority"}, "spec": {
    "isCA": true, "commonName": "authority", "secretName": "authority", "issuerRef": {"name": "selfsigned"},
    "privateKey": {"algorithm": "ECDSA"}}}
EOF
comes '^authority +True' in_issued get certificates
says '^authority +kubernetes.io/tls +3 ' in_issued get secrets
says '^-----BEGIN CERTIFICATE-----' sh -c "'$peers/kubectl' -n issued get secret authority -o 'jsonpath={.data.tls\.crt}' | base64 -d"
says '^1 ' in_issued get certificates authority -o 'jsonpath={.status.revision} {.status.notAfter}'
checked "a self-signed Certificate is issued into a Secret"
says '^system:serviceaccount:cert-manager:cert-manager$' in_issued get certificaterequests \
    -o 'jsonpath={.items[*].spec.username}'
says '(^| )Approved( |$)' in_issued get certificaterequests -o 'jsonpath={.items[*].status.conditions[*].type}'
checked "webhook mutates: a CertificateRequest names its author"

works in_issued create -f - <<EOF
{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "ours"}, "spec": {"ca": {"secretName": "authority"}}},
{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "leaf"}, "spec": {
    "dnsNames": ["leaf.example.com"], "secretName": "leaf", "issuerRef": {"name": "ours"}}}]}
EOF
comes '^leaf +True' in_issued get certificates
works kubectl create -f - <<EOF
{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {
    "name": "v1.injected.example.com", "annotations": {"cert-manager.io/inject-ca-from": "issued/authority"}},
 "spec": {"group": "injected.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
    "service": {"namespace": "issued", "name": "absent"}}}
EOF
comes '^LS0t' kubectl get apiservice v1.injected.example.com -o 'jsonpath={.spec.caBundle}'
says 'False \(ServiceNotFound\)' kubectl get apiservice v1.injected.example.com
works kubectl delete apiservice v1.injected.example.com
checked "an issuer with that authority, and cainjector writes it into an APIService"

works in_issued delete secret leaf
comes '^leaf +kubernetes.io/tls ' in_issued get secrets
comes '^leaf +True' in_issued get certificates
checked "a deleted Secret is issued again"

stop cert-manager-webhook
says 'failed calling webhook "webhook.cert-manager.io": failed to call webhook: Post "https://localhost:.*connection refused' \
    issuer another create
others_go_on
says '^leaf +True' in_issued get certificates
checked "webhook killed: writes of its kinds are refused (failurePolicy Fail), the rest goes on"
hook
comes 'created|already exists' issuer another create
checked "started again: back"
