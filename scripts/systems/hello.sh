# hello-extended behind Bareboat and behind a kube-apiserver, used from Go by generated clients.
needs "$peers/hello" "$peers/kubectl" "$bin/hello-extended"

# behind SERVER: uses Foos of hello-extended through a server.
behind() {
    start "hello-$1" "$bin/hello-extended" --listen 127.0.0.1:0 --behind "$KUBECONFIG"
    eventually available v2.hello.zeng.dev
    eventually kubectl apply -f "$root/examples/hello-extended/foo.yaml"
    says "busybox" kubectl get foos hi
    says "hi there" kubectl get foos.v1.hello.zeng.dev hi -o yaml
    checked "Foos in two versions behind $1"
    "$peers/hello" || fail "the generated clients do not work behind $1"
    checked "clientset, lister and informer of k8s.io/code-generator behind $1"
    stop "hello-$1"
    refuses "ServiceUnavailable" kubectl get --raw /apis/hello.zeng.dev/v2/foos
    kubectl get namespaces >/dev/null
    checked "stopped: only its group is not available"
}

bareboat
behind Bareboat
kube_apiserver
behind kube-apiserver
