# The test adapter of custom-metrics-apiserver: three aggregated versions, registered by a Service of type ExternalName.

works kubectl apply -f "$peers/manifests-custom-metrics/testing-adapter.yaml"
versions=(v1beta1.custom.metrics.k8s.io v1beta2.custom.metrics.k8s.io v1beta1.external.metrics.k8s.io)
port=$(free_port)
works kubectl patch service custom-metrics-apiserver --namespace custom-metrics --type=merge \
    -p '{"spec": {"type": "ExternalName", "externalName": "localhost"}}'
for name in "${versions[@]}"; do
    works kubectl patch apiservice "$name" --type=merge -p "{\"spec\": {\"service\": {\"port\": $port}}}"
done
account custom-metrics custom-metrics-apiserver
writes=$(free_port)
serve() {
    start custom-metrics-adapter "$peers/custom-metrics-adapter" \
        --authentication-kubeconfig "$dir/custom-metrics-apiserver.kubeconfig" \
        --authorization-kubeconfig "$dir/custom-metrics-apiserver.kubeconfig" \
        --lister-kubeconfig "$dir/custom-metrics-apiserver.kubeconfig" \
        --bind-address 127.0.0.1 --secure-port "$port" --cert-dir "$dir/custom-metrics" \
        --write-address "127.0.0.1:$writes"
}
serve
for name in "${versions[@]}"; do comes 'custom-metrics/custom-metrics-apiserver +True' kubectl get apiservice "$name"; done
checked "three APIServices become available"

value=/namespaces/default/services/kubernetes/test-metric
put() {
    comes '^20[0-9]$' curl --silent --output /dev/null --write-out '%{http_code}\n' -X POST \
        -H 'Content-Type: application/json' --data "\"$1\"" "http://127.0.0.1:$writes/write-metrics$value"
}
put 300m
says '"value":"300m"' kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta2$value"
says '"value":"300m"' kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta1$value"
says '"kind":"MetricValueList"' kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2
says 'my-external-metric' kubectl get --raw /apis/external.metrics.k8s.io/v1beta1/namespaces/default/my-external-metric
says 'the server could not find the (metric|requested resource)' kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta2${value}s"
checked "custom metrics in both versions, external metrics, errors of the adapter"
says 'Forbidden' kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta2$value" --as eve
says '"value":"300m"' kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta2$value" \
    --as system:serviceaccount:kube-system:horizontal-pod-autoscaler
checked "rights: the autoscaler of its manifest, nobody else"

stop custom-metrics-adapter
for name in "${versions[@]}"; do comes 'False \(FailedDiscoveryCheck\)' kubectl get apiservice "$name"; done
says 'service unavailable|unable to handle the request|error trying to reach service' \
    kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta2$value"
others_go_on
# The other aggregated server, if its session came before.
if kubectl get node stub >/dev/null 2>&1; then
    says '"kind":"NodeMetrics"' kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes/stub
fi
checked "killed: other groups go on, and the APIServices say why"
serve
for name in "${versions[@]}"; do comes 'custom-metrics/custom-metrics-apiserver +True' kubectl get apiservice "$name"; done
put 700m
says '"value":"700m"' kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta2$value"
checked "started again: back"
