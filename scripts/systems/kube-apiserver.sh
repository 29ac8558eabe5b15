# metrics-server, custom-metrics and virt behind a real kube-apiserver.
kube_apiserver
version=$(kubectl version -o json | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p' | tail -n 1)
examples="$root/examples"

kubectl apply -f "$examples/metrics-server/rbac.yaml" -f "$examples/metrics-server/nodes.yaml" >/dev/null
start metrics-server "$bin/metrics-server" --kubeconfig "$(account kube-system metrics-server)" --samples "$examples/metrics-server/samples.json"
eventually available v1beta1.metrics.k8s.io
says "harbour-2" kubectl top node
says "512Mi" kubectl top pod db
refuses 'User "jane" cannot list resource "nodes" in API group "metrics.k8s.io"' kubectl top node --as jane
checked "kube-apiserver $version: kubectl top node and pod, rights of its roles"
stop metrics-server KILL
says "False (FailedDiscoveryCheck)" kubectl get apiservice v1beta1.metrics.k8s.io
kubectl create configmap other >/dev/null
checked "metrics-server killed: other groups go on, the APIService says why"
kubectl delete apiservice v1beta1.metrics.k8s.io >/dev/null

kubectl apply -f "$examples/custom-metrics/rbac.yaml" -f "$examples/custom-metrics/crontab.yaml" >/dev/null
cp "$examples/custom-metrics/metrics.json" "$here/metrics.json"
start custom-metrics "$bin/custom-metrics" --kubeconfig "$(account kube-system custom-metrics)" --metrics "$here/metrics.json"
for name in v1beta2.custom v1beta1.custom v1beta1.external; do eventually available "$name.metrics.k8s.io"; done
eventually kubectl wait --for=condition=Established crd/crontabs.stable.example.com
kubectl create -f - >/dev/null <<'YAML'
{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: backup}, spec: {cronSpec: "* * * * */5", replicas: 1}}
YAML
kubectl patch crontab backup --subresource=status --type=merge -p '{"status":{"replicas":1,"labelSelector":"app=backup"}}' >/dev/null
kubectl create service clusterip orders --tcp=80 >/dev/null
kubectl apply -f "$examples/custom-metrics/autoscaler.yaml" >/dev/null
kubectl wait --for=jsonpath='{.spec.replicas}'=4 crontab/backup --timeout 60s >/dev/null
sed -i 's/"value": "60"/"value": "210"/' "$here/metrics.json"
kubectl wait --for=jsonpath='{.spec.replicas}'=7 crontab/backup --timeout 60s >/dev/null
checked "an autoscaler scales a CronTab by an Object and an External metric"
stop custom-metrics

start virt "$bin/virt"
eventually available v1.subresources.kubevirt.io
eventually kubectl wait --for=create validatingwebhookconfiguration/virt-evictions
eventually kubectl apply -f "$examples/virt/vm.yaml"
says "Halted" kubectl get vm vm1 -o yaml
refuses "memory.guest is required" kubectl patch vm vm1 --type=json -p '[{"op": "remove", "path": "/spec/template/spec/domain/memory"}]'
checked "virt: both webhooks"
needs "$peers/virtctl"
"$peers/virtctl" start vm1 >/dev/null
kubectl wait --for=jsonpath='{.status.printableStatus}'=Running vm/vm1 --timeout 60s >/dev/null
# The input stays open until the machine has answered.
answered() { until grep -q "vm1: ahoy" "$here/console.txt"; do sleep 0.2; done; }
: >"$here/console.txt"
(echo ahoy; answered) | timeout 60 "$peers/virtctl" console vm1 >"$here/console.txt" 2>&1 || fail "the console does not answer"
"$peers/virtctl" pause vm vm1 >/dev/null
"$peers/virtctl" unpause vm vm1 >/dev/null
"$peers/virtctl" migrate vm1 >/dev/null
kubectl wait --for=jsonpath='{.status.nodeName}'=host-b vmi/vm1 --timeout 60s >/dev/null
pod=$(kubectl get pod -l vm.kubevirt.io/name=vm1 -o jsonpath='{.items[0].metadata.name}')
refuses "Eviction triggered evacuation" kubectl create --raw "/api/v1/namespaces/default/pods/$pod/eviction" -f /dev/stdin \
    <<<"{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$pod\"}}"
"$peers/virtctl" stop vm1 >/dev/null
kubectl wait --for=jsonpath='{.status.printableStatus}'=Stopped vm/vm1 --timeout 60s >/dev/null
checked "virtctl: start, console, pause, unpause, migrate, stop; an eviction moves the machine"
stop virt
