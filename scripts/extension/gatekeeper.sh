# Gatekeeper, installed from its manifest: a webhook behind a Service of type ExternalName, with certificates that it makes
# and rotates itself, and an audit of stored objects.

works kubectl apply -f "$peers/manifests-gatekeeper/gatekeeper.yaml"
port=$(free_port)
works kubectl patch service gatekeeper-webhook-service --namespace gatekeeper-system --type=merge \
    -p '{"spec": {"type": "ExternalName", "externalName": "localhost"}}'
# place N: the port of webhook N, and more time than the manifest gives: the checks must not depend on a fast machine.
place() {
    echo "{\"op\": \"add\", \"path\": \"/webhooks/$1/clientConfig/service/port\", \"value\": $port},
        {\"op\": \"replace\", \"path\": \"/webhooks/$1/timeoutSeconds\", \"value\": 30}"
}
works kubectl patch mutatingwebhookconfiguration gatekeeper-mutating-webhook-configuration --type=json -p "[$(place 0)]"
works kubectl patch validatingwebhookconfiguration gatekeeper-validating-webhook-configuration --type=json \
    -p "[$(place 0), $(place 1)]"

# What the objects of Gatekeeper's own status belong to. The namespace of its manifest has the pod security level "restricted".
for name in controller audit; do
    works kubectl create --namespace gatekeeper-system -f - <<EOF
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$name"}, "spec": {
    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [{"name": "manager", "image": "manager", "securityContext": {
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}}
EOF
done
account gatekeeper-system gatekeeper-admin
mkdir "$dir/gatekeeper-secret" "$dir/gatekeeper-audit"
gatekeeper() {
    local name=$1
    shift
    start "gatekeeper-$name" env POD_NAMESPACE=gatekeeper-system POD_NAME="$name" "$peers/gatekeeper" \
        --kubeconfig "$dir/gatekeeper-admin.kubeconfig" --cert-dir "$dir/gatekeeper-certificates" --host 127.0.0.1 \
        --health-addr "127.0.0.1:$(free_port)" --logtostderr "--disable-opa-builtin={http.send}" \
        --metrics-backend opentelemetry --otlp-endpoint 127.0.0.1:9 --otlp-metric-interval 1h "$@"
}
hook() {
    gatekeeper controller --port "$port" --exempt-namespace gatekeeper-system --operation webhook \
        --operation mutation-webhook
}
hook

# A kubelet would write the files of the Secret's volume, all at once.
part() { kubectl get secret gatekeeper-webhook-server-cert --namespace gatekeeper-system -o "jsonpath={.data.${1/./\\.}}"; }
comes '^LS0t' part tls.crt
for name in ca.crt ca.key tls.crt tls.key; do part $name | base64 -d >"$dir/gatekeeper-secret/$name"; done
mv "$dir/gatekeeper-secret" "$dir/gatekeeper-certificates"
# The audit ends if they are missing.
gatekeeper audit --operation audit --operation status --operation mutation-status --operation generate \
    --disable-cert-rotation --audit-interval 5 --api-cache-dir "$dir/gatekeeper-audit" \
    --default-wait-for-vapb-generation 1
comes '^LS0t' kubectl get validatingwebhookconfiguration gatekeeper-validating-webhook-configuration \
    -o 'jsonpath={.webhooks[1].clientConfig.caBundle}'
checked "makes its certificates and writes caBundle"

works kubectl apply -f "$peers/manifests-gatekeeper-demo/templates/k8srequiredlabels_template.yaml"
comes '^true$' kubectl get constrainttemplate k8srequiredlabels -o 'jsonpath={.status.created}'
works kubectl wait --for=condition=Established --timeout=60s crd/k8srequiredlabels.constraints.gatekeeper.sh
# A constraint for each of the two failure policies, below.
comes 'created|unchanged|configured' kubectl apply -f "$peers/manifests-gatekeeper-demo/constraints/all_ns_must_have_gatekeeper.yaml"
works kubectl create -f - <<EOF
{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "K8sRequiredLabels", "metadata": {"name": "maps-have-owners"},
 "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}], "namespaces": ["guarded"]},
          "parameters": {"labels": ["owner"]}}}
EOF
checked "a ConstraintTemplate becomes a kind, constraints of it are stored"

refused='admission webhook "validation.gatekeeper.sh" denied the request: \[ns-must-have-gk\] you must provide labels: \{"gatekeeper"\}'
comes "$refused" kubectl create namespace plain --dry-run=server
says "$refused" kubectl create namespace plain
works kubectl create -f - <<EOF
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guarded", "labels": {"gatekeeper": "yes"}}}
EOF
comes '\[maps-have-owners\] you must provide labels: \{"owner"\}' \
    kubectl create configmap plain --namespace guarded --dry-run=server
says '\[maps-have-owners\]' kubectl create configmap plain --namespace guarded
says '\[ns-must-have-gk\]' kubectl label namespace guarded gatekeeper-
checked "a Constraint refuses creates, updates and dry runs"
says 'denied the request: invalid ConstraintTemplate: the ConstraintTemplate.s name "k8suniquelabels" is not equal' \
    kubectl create -f "$peers/manifests-gatekeeper-demo/bad/bad_template.yaml"
comes '"name":"default"' kubectl get k8srequiredlabels ns-must-have-gk -o 'jsonpath={.status.violations}'
checked "a broken template is refused, and the audit lists the namespaces that violate"

works kubectl create -f - <<EOF
{"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "AssignMetadata", "metadata": {"name": "owner"}, "spec": {
    "match": {"scope": "Namespaced", "kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}], "namespaces": ["guarded"]},
    "location": "metadata.labels.owner", "parameters": {"assign": {"value": "nobody"}}}}
EOF
labels='jsonpath={.metadata.labels.owner}'
comes '^nobody$' kubectl create configmap owned --namespace guarded --dry-run=server -o "$labels"
works kubectl create configmap owned --namespace guarded
says '^nobody$' kubectl get configmap owned --namespace guarded -o "$labels"
works kubectl delete assignmetadata owner
comes '\[maps-have-owners\]' kubectl create configmap plain --namespace guarded --dry-run=server
checked "a mutation adds the label, and the constraint is met"

# A template in CEL becomes a ValidatingAdmissionPolicy, whose parameters are the constraints: no webhook refuses this.
works kubectl create -f - <<EOF
{"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate", "metadata": {"name": "k8smaxentries"}, "spec": {
    "crd": {"spec": {"names": {"kind": "K8sMaxEntries"}, "validation": {"openAPIV3Schema": {
        "type": "object", "properties": {"max": {"type": "integer"}}}}}},
    "targets": [{"target": "admission.k8s.gatekeeper.sh", "code": [{"engine": "K8sNativeValidation", "source": {
        "generateVAP": true, "validations": [{
            "expression": "!has(variables.anyObject.data) || size(variables.anyObject.data) <= variables.params.max",
            "messageExpression": "'at most ' + string(variables.params.max) + ' entries'"}]}}]}]}}
EOF
comes '^true$' kubectl get constrainttemplate k8smaxentries -o 'jsonpath={.status.created}'
works kubectl wait --for=condition=Established --timeout=60s crd/k8smaxentries.constraints.gatekeeper.sh
comes 'created' kubectl create -f - <<EOF
{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "K8sMaxEntries", "metadata": {"name": "two"},
 "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["ConfigMap"]}], "namespaces": ["guarded"]}, "parameters": {"max": 2}}}
EOF
comes 'K8sMaxEntries' kubectl get validatingadmissionpolicy gatekeeper-k8smaxentries -o 'jsonpath={.spec.paramKind.kind}'
comes '^two$' kubectl get validatingadmissionpolicybinding gatekeeper-k8smaxentries-two -o 'jsonpath={.spec.paramRef.name}'

stop gatekeeper-controller
says '^configmap/unguarded created' kubectl create configmap unguarded --namespace guarded
says 'failed calling webhook "check-ignore-label.gatekeeper.sh": failed to call webhook: Post "https://gatekeeper-webhook-service.gatekeeper-system.svc:.*connection refused' \
    kubectl create namespace plain
comes "ValidatingAdmissionPolicy 'gatekeeper-k8smaxentries' with binding 'gatekeeper-k8smaxentries-two' denied request: at most 2 entries" \
    kubectl create configmap many --namespace guarded --from-literal=a=1 --from-literal=b=2 --from-literal=c=3
works kubectl create configmap few --namespace guarded --from-literal=a=1
others_go_on
checked "killed: ConfigMaps pass (failurePolicy Ignore), Namespaces are refused (Fail), a ValidatingAdmissionPolicy that it made still refuses"
hook
comes "$refused" kubectl create namespace plain --dry-run=server
comes '\[maps-have-owners\]' kubectl create configmap plain --namespace guarded --dry-run=server
checked "started again: back"
works kubectl delete k8srequiredlabels --all
