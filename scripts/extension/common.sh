# What the sessions of scripts/extension.sh share. The caller sets: system, dir (a folder for this run), peers, bareboat, and
# KUBECONFIG, the administrator's.
set -euo pipefail

kubectl() { "$peers/kubectl" "$@"; }

# Ends this session.
fail() {
    echo "extension: $system: $*" >&2
    exit 1
}

# Notes what was checked, for the table.
checked() {
    echo "$*" >>"$dir/$system.checked"
    echo "extension: $system: $*"
}

# start NAME COMMAND...: runs a command in the background. Its output goes to NAME.log. Ends with the whole run at the latest.
start() {
    local name=$1
    shift
    "$@" >>"$dir/$name.log" 2>&1 &
    echo $! >"$dir/$name.pid"
}

# stop NAME: kills a command at once, as a crash would.
stop() {
    local pid
    pid=$(cat "$dir/$1.pid")
    rm "$dir/$1.pid"
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null || true
}

# Fails if a command that was started has ended by itself.
all_run() {
    local file
    for file in "$dir"/*.pid; do
        kill -0 "$(cat "$file")" 2>/dev/null || fail "$(basename "$file" .pid) ended: $(tail -n 5 "${file%.pid}.log")"
    done
}

# says PATTERN COMMAND...: the command's output must match now.
says() {
    local pattern=$1 output
    shift
    output=$("$@" 2>&1) || true
    grep -qE -- "$pattern" <<<"$output" || fail "no \"$pattern\" in the output of: $*"$'\n'"$output"
}

# comes PATTERN COMMAND...: the command's output must match within two minutes.
comes() {
    local pattern=$1 output='' end=$((SECONDS + 120))
    shift
    while [ $SECONDS -lt $end ]; do
        output=$("$@" 2>&1) || true
        if grep -qE -- "$pattern" <<<"$output"; then return; fi
        all_run
        sleep 0.5
    done
    fail "no \"$pattern\" within two minutes in the output of: $*"$'\n'"$output"
}

# works COMMAND...: the command must succeed.
works() {
    local output
    output=$("$@" 2>&1) || fail "failed: $*"$'\n'"$output"
}

# free_port: prints a port that nothing listens on.
free_port() {
    local port
    for _ in {1..50}; do
        port=$((20000 + RANDOM % 12000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo $port
            return
        fi
    done
    fail "no free port"
}

# account NAMESPACE NAME: makes NAME.kubeconfig with a token of a service account.
account() {
    local file="$dir/$2.kubeconfig" token
    token=$(kubectl create token "$2" --namespace "$1" --duration 2h)
    cp "$KUBECONFIG" "$file"
    kubectl config set-credentials account --token="$token" --kubeconfig "$file" >/dev/null
    kubectl config set-context --current --user=account --kubeconfig "$file" >/dev/null
}

# others_go_on: kinds that no other server has are served as ever, and so is discovery.
others_go_on() {
    says '^default ' kubectl get namespaces
    works kubectl create configmap alive --namespace default
    works kubectl delete configmap alive --namespace default
    says '^deployments ' kubectl api-resources
}
