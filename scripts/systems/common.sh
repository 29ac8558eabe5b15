# What the sessions of scripts/systems.sh and scripts/fleet.sh share. The caller sets: root, peers, bin (the folder of built programs),
# dir (a folder for this run), system, and suite (the name in messages).
set -euo pipefail
here="$dir/$system"

export PATH="$peers:$PATH"

# Ends this session.
fail() {
    echo "${suite:-systems}: $system: $*" >&2
    exit 1
}

# Notes what was checked, for the table.
checked() {
    echo "$*" >>"$here/checked"
    echo "${suite:-systems}: $system: $*"
}

# needs PROGRAM...: ends this session as skipped if a program is missing.
needs() {
    local program
    for program in "$@"; do
        if ! command -v "$program" >/dev/null 2>&1; then
            echo "$(basename "$program") is missing" >"$here/missing"
            echo "${suite:-systems}: $system: skipped, $(basename "$program") is missing"
            exit 0
        fi
    done
}

# start NAME COMMAND...: runs a command in the background. Its output goes to NAME.log. It ends with the whole run at the latest.
start() {
    local name=$1
    shift
    "$@" >>"$here/$name.log" 2>&1 &
    echo $! >"$here/$name.pid"
}

# stop NAME [SIGNAL]: ends a command that was started, and waits for it.
stop() {
    local pid
    pid=$(cat "$here/$1.pid")
    rm "$here/$1.pid"
    kill "-${2:-TERM}" "$pid"
    wait "$pid" 2>/dev/null || true
}

# eventually COMMAND...: repeats a command until it succeeds, for a minute at most.
eventually() {
    local end=$((SECONDS + 60))
    until "$@" >"$here/last.out" 2>&1; do
        [ $SECONDS -lt $end ] || fail "$* does not succeed: $(cat "$here/last.out")"
        sleep 0.2
    done
}

# says TEXT COMMAND...: the output of a command contains a text, in the end.
says() {
    local text=$1
    shift
    eventually bash -c '"${@:2}" 2>&1 | grep -F -- "$1"' says "$text" "$@"
}

# refuses TEXT COMMAND...: a command fails with a text.
refuses() {
    local text=$1
    shift
    if "$@" >"$here/last.out" 2>&1; then
        fail "$* should have failed"
    fi
    grep -qF -- "$text" "$here/last.out" || fail "$* did not say '$text': $(cat "$here/last.out")"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# bareboat: starts Bareboat in memory, and sets KUBECONFIG.
bareboat() {
    start bareboat "$bin/bareboat" serve --in-memory --data-dir "$here/data" --bind 127.0.0.1:0 "$@"
    export KUBECONFIG="$here/data/admin.kubeconfig"
    eventually kubectl get --raw /readyz
}

# certificate NAME CA SUBJECT [EXTENSION]: a key and a certificate of a CA.
certificate() {
    openssl req -newkey rsa:2048 -nodes -keyout "$here/$1.key" -subj "$3" -out "$here/$1.csr" 2>/dev/null
    openssl x509 -req -in "$here/$1.csr" -CA "$here/$2.crt" -CAkey "$here/$2.key" -CAcreateserial -days 30 \
        -extfile <(printf '%s\n' "${4:-keyUsage=digitalSignature}") -out "$here/$1.crt" 2>/dev/null
}

# authority NAME: a new CA.
authority() {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$here/$1.key" -subj "/CN=$1" -days 30 -out "$here/$1.crt" 2>/dev/null
}

# kube_apiserver FLAG...: starts etcd, a kube-apiserver with its aggregation layer, and some controllers; sets KUBECONFIG. The flags
# are for the kube-apiserver.
kube_apiserver() {
    needs "$peers/etcd" "$peers/kube-apiserver" "$peers/kube-controller-manager" openssl python3
    local port etcd peer
    port=$(free_port) etcd=$(free_port) peer=$(free_port)
    authority ca
    authority front-proxy-ca
    certificate server ca /CN=kube-apiserver "subjectAltName=DNS:localhost,IP:127.0.0.1"
    certificate admin ca /O=system:masters/CN=admin
    certificate front-proxy-client front-proxy-ca /CN=front-proxy-client
    openssl genrsa -out "$here/accounts.key" 2048 2>/dev/null
    start etcd "$peers/etcd" --data-dir "$here/etcd" --listen-client-urls "http://127.0.0.1:$etcd" \
        --advertise-client-urls "http://127.0.0.1:$etcd" --listen-peer-urls "http://127.0.0.1:$peer" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer"
    start kube-apiserver "$peers/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd" \
        --bind-address 127.0.0.1 --secure-port "$port" --cert-dir "$here/apiserver" \
        --tls-cert-file "$here/server.crt" --tls-private-key-file "$here/server.key" --client-ca-file "$here/ca.crt" \
        --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 \
        --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$here/accounts.key" \
        --service-account-signing-key-file "$here/accounts.key" \
        --requestheader-client-ca-file "$here/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client \
        --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
        --requestheader-extra-headers-prefix X-Remote-Extra- \
        --proxy-client-cert-file "$here/front-proxy-client.crt" --proxy-client-key-file "$here/front-proxy-client.key" "$@"
    export KUBECONFIG="$here/admin.kubeconfig"
    kubectl config set-cluster local --server "https://127.0.0.1:$port" --certificate-authority "$here/ca.crt" --embed-certs >/dev/null
    kubectl config set-credentials admin --client-certificate "$here/admin.crt" --client-key "$here/admin.key" --embed-certs >/dev/null
    kubectl config set-context local --cluster local --user admin >/dev/null
    kubectl config use-context local >/dev/null
    eventually kubectl get --raw /readyz
    start kube-controller-manager "$peers/kube-controller-manager" --kubeconfig "$KUBECONFIG" --leader-elect=false --secure-port=0 \
        --service-account-private-key-file "$here/accounts.key" --root-ca-file "$here/ca.crt" --use-service-account-credentials \
        --horizontal-pod-autoscaler-sync-period 1s \
        --controllers serviceaccount-controller,namespace-controller,garbage-collector-controller,horizontal-pod-autoscaler-controller
    eventually kubectl get serviceaccount default
}

# account NAMESPACE NAME: a kubeconfig with a token of a service account; prints its path.
account() {
    local file="$here/$2.kubeconfig"
    cp "$KUBECONFIG" "$file"
    kubectl --kubeconfig "$file" config set-credentials "$2" --token "$(kubectl create token "$2" -n "$1" --duration 1h)" >/dev/null
    kubectl --kubeconfig "$file" config set-context --current --user "$2" >/dev/null
    echo "$file"
}

# available NAME: an APIService becomes available.
available() { kubectl wait --for=condition=Available "apiservice/$1" --timeout 60s >/dev/null; }
