# metrics-server, fed by a stub kubelet: an aggregated server, registered by the annotation bareboat.dev/url.

works kubectl apply -k "$peers/manifests-metrics-server/base"
port=$(free_port)
works kubectl annotate apiservice v1beta1.metrics.k8s.io "bareboat.dev/url=https://localhost:$port"

# A node, and a pod that runs on it as far as the API knows.
start kubelet "$peers/stub-kubelet" --write-certificate "$dir/kubelet.crt" --metrics-of default/web/web
comes '^[0-9]+$' cat "$dir/kubelet.log"
works kubectl create -f - <<EOF
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stub"}}
EOF
works kubectl patch node stub --subresource=status --type=merge -p "{\"status\": {
    \"addresses\": [{\"type\": \"InternalIP\", \"address\": \"127.0.0.1\"}],
    \"daemonEndpoints\": {\"kubeletEndpoint\": {\"Port\": $(head -n 1 "$dir/kubelet.log")}},
    \"capacity\": {\"cpu\": \"2\", \"memory\": \"2Gi\"}, \"allocatable\": {\"cpu\": \"2\", \"memory\": \"2Gi\"},
    \"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}"
works kubectl create --namespace default -f - <<EOF
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
 "spec": {"nodeName": "stub", "containers": [{"name": "web", "image": "web"}]}}
EOF
works kubectl patch pod web --namespace default --subresource=status --type=merge -p '{"status": {"phase": "Running"}}'

serve() {
    start metrics-server "$peers/metrics-server" --kubeconfig "$dir/metrics-server.kubeconfig" \
        --authentication-kubeconfig "$dir/metrics-server.kubeconfig" \
        --authorization-kubeconfig "$dir/metrics-server.kubeconfig" \
        --bind-address 127.0.0.1 --secure-port "$port" --cert-dir "$dir/metrics-server" \
        --kubelet-certificate-authority "$dir/kubelet.crt" --kubelet-preferred-address-types InternalIP \
        --kubelet-use-node-status-port --kubelet-request-timeout 5s --metric-resolution 10s
}
account kube-system metrics-server
comes 'kube-system/metrics-server +False \(FailedDiscoveryCheck\)' kubectl get apiservice v1beta1.metrics.k8s.io
serve
comes 'kube-system/metrics-server +True' kubectl get apiservice v1beta1.metrics.k8s.io
checked "APIService becomes available"

comes '^stub +(499|500|501)m +2[45]% +512Mi +25%' kubectl top node
comes '^web +(99|100|101)m +64Mi' kubectl top pod --namespace default
says '^web +web +(99|100|101)m +64Mi' kubectl top pod web --namespace default --containers
says '^default +web +(99|100|101)m' kubectl top pod --all-namespaces --selector app=web
checked "kubectl top node, kubectl top pod"

says '^pods +metrics.k8s.io/v1beta1 +true +PodMetrics' kubectl api-resources --api-group metrics.k8s.io
says '"kind":"NodeMetrics"' kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes/stub
says 'NodeMetrics' kubectl explain nodes --api-version metrics.k8s.io/v1beta1
checked "discovery, raw requests, kubectl explain"

# The role that metrics-server adds to `view` is aggregated here; metrics-server asks about the caller again.
says 'cannot list resource "pods" in API group "metrics.k8s.io"' kubectl top pod --namespace default --as eve
works kubectl create rolebinding eve --clusterrole view --user eve --namespace default
comes '^web +' kubectl top pod --namespace default --as eve
says 'cannot list resource "nodes" in API group "metrics.k8s.io"' kubectl top node --as eve
checked "rights by an aggregated role"

stop metrics-server
comes 'False \(FailedDiscoveryCheck\)' kubectl get apiservice v1beta1.metrics.k8s.io
says 'failing or missing response from https://localhost:' kubectl describe apiservice v1beta1.metrics.k8s.io
says 'Metrics API not available|unable to handle the request|error trying to reach service' kubectl top node
others_go_on
works kubectl create namespace passing
works kubectl delete namespace passing --timeout=60s
says 'not found' kubectl get namespace passing
checked "killed: the APIService says why, other groups go on, and so does the deletion of a namespace"
serve
comes 'kube-system/metrics-server +True' kubectl get apiservice v1beta1.metrics.k8s.io
comes '^stub +(499|500|501)m' kubectl top node
checked "started again: back"
