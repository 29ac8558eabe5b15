#!/usr/bin/env bash
# Runs unit, integration and end-to-end tests once and prints a table of results and skipped parts.
#
#   scripts/test.sh            (CI=true: a part that would be skipped because a tool is missing fails instead)
#
# Exit codes: 0 all passed, 1 a failure.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
logs="$root/target/test-logs"
rm -rf "$logs"
mkdir -p "$logs"
# Tests write remarks for the table to files here, because the output of parallel tests would mix.
export BAREBOAT_TEST_NOTES="$logs"
strict=${CI:-false}
failed=0
table=()

row() { table+=("$(printf '%-32s %-9s %s' "$1" "$2" "$3")"); }

passed() { row "$1" ok "$2"; }

failure() {
    row "$1" FAILED "$2"
    failed=1
}

# Skips a part with a reason; in strict mode that is a failure.
left_out() {
    if [ "$strict" = true ]; then failure "$1" "$2"; else row "$1" "skipped" "$2"; fi
}

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

close() {
    printf '\n%-32s %-9s %s\n' what outcome remark
    printf '%s\n' "${table[@]}"
    printf 'in %s s\n' "$SECONDS"
    exit "$failed"
}

step "the real clients: kubectl, client-go, controller-runtime, kube-controller-manager, sample-controller"
go=yes
scripts/peers.sh || {
    case $? in
    3) go="Go is missing or too old" ;;
    *) go="the Go clients could not be built (no network?)" ;;
    esac
}
[ "$go" = yes ] && export PATH="$root/.cache/peers:$PATH" BAREBOAT_PEERS="$root/.cache/peers"

go_project=$go
if [ "$go" = yes ]; then
    step "what the projects in Go need"
    # Compiled here, with the flags of their tests, because the tests have a deadline.
    # `true` runs instead of the tests.
    for project in go-operator go-webhook; do
        (cd tests/scaffolds/$project && CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false -mod=readonly" go test -exec true ./...) ||
            go_project="the project in Go does not compile (no network?)"
    done
fi

step "the Python client and kopf"
python=yes
scripts/python.sh --setup || python="Python or its packages are not available (no network?)"

step "the Java clients: fabric8, the Java Operator SDK, client-java"
java=yes
scripts/java.sh --setup || {
    case $? in
    3) java="a JDK, Maven or the libraries are not available (no network?)" ;;
    *) java=broken ;;
    esac
}

step "the JavaScript client"
javascript=yes
scripts/javascript.sh --setup || javascript="Node.js or its packages are not available (no network?)"

step "PostgreSQL"
postgres=yes
if ! { ls /usr/lib/postgresql/*/bin/initdb && command -v pgbouncer; } >/dev/null 2>&1; then
    { [ "$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y --no-install-recommends postgresql-15 pgbouncer; } || postgres="PostgreSQL is not installed (apt-get install postgresql-15 pgbouncer)"
fi

step "MariaDB"
mariadb=yes
if ! command -v mariadbd >/dev/null 2>&1; then
    { [ "$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y --no-install-recommends mariadb-server; } || mariadb="MariaDB is not installed (apt-get install mariadb-server)"
fi

network=yes
unshare --net ip link add name eth0 type veth peer name eth1 2>/dev/null || network="no network namespaces (they need root, unshare and ip)"

# The tests of full disks mount small file systems in memory.
mounts="nothing can be mounted (it needs root)"
place=$(mktemp -d)
if mount -t tmpfs bareboat-test "$place" 2>/dev/null; then
    mounts=yes
    umount "$place"
fi
rmdir "$place"

step "promtool"
promtool=yes
scripts/promtool.sh || promtool="promtool is not available (Debian's package prometheus)"

kubectl=yes
command -v kubectl >/dev/null 2>&1 || kubectl="kubectl is not installed"

step "what the build needs"
export CARGO_NET_RETRY=${CARGO_NET_RETRY:-5}
for attempt in 1 2 3; do
    cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')" && break
    # The build may still have all it needs; if not, it reports an error.
    [ "$attempt" = 3 ] || sleep $((attempt * 10))
done

# One build for everything that follows.
step "build"
# Always with --workspace: a part of it would need its dependencies again, with other features.
if ! { cargo build --workspace --all-targets && cargo build --workspace --test e2e --test hostile --test outages --test postgres --test shelf --test mariadb --test etcd; }; then
    failure build "it does not compile"
    close
fi

step "unit and integration tests, and every client"
outcome=passed
cargo test --workspace --no-fail-fast 2>&1 | tee "$logs/cargo.log" || outcome=failure
# `cargo test` alone skips these: they need clients or databases, and take minutes.
suites=(--test e2e --test hostile)
[ "$postgres" != yes ] || suites+=(--test postgres --test shelf)
[ "$go" != yes ] || suites+=(--test etcd)
[ "$mariadb" != yes ] || suites+=(--test mariadb)
cargo test --workspace "${suites[@]}" --no-fail-fast 2>&1 | tee -a "$logs/cargo.log" || outcome=failure
# Servers under faults mostly wait, for leases and for each other: one test more than there are cores.
cargo test --workspace --test outages --no-fail-fast -- --test-threads $(($(nproc) + 1)) 2>&1 | tee -a "$logs/cargo.log" || outcome=failure
count() { grep -oE "[0-9]+ $1" "$logs/cargo.log" | awk '{ n += $1 } END { print n + 0 }'; }
"$outcome" "all tests" "$(count 'passed;') passed, $(count 'failed;') failed, $(count 'ignored;') ignored; of them:"

vectors=${BAREBOAT_VECTORS:-$root/../shared/vectors}
if [ -d "$vectors" ]; then
    row "  published vectors" present "$vectors"
else
    left_out "  published vectors" "BAREBOAT_VECTORS names no folder"
fi

# client LABEL BINARY PATTERN NEEDED [REMARK]: counts the tests of one client in the log, by binary and test name
# prefix.
client() {
    if [ "$4" != yes ]; then
        left_out "  $1" "$4"
        return
    fi
    local good bad
    read -r good bad < <(awk -v binary="Running $2 " -v name="^($3)" '
        /^ +(Running|Doc-tests) / { here = index($0, binary) > 0 }
        here && $1 == "test" && $2 ~ name && $NF == "ok" { good++ }
        here && $1 == "test" && $2 ~ name && $NF == "FAILED" { bad++ }
        END { print good + 0, bad + 0 }' "$logs/cargo.log")
    if [ "$bad" = 0 ] && [ "$good" != 0 ]; then outcome=passed; else outcome=failure; fi
    "$outcome" "  $1" "$good passed, $bad failed${5:+; $5}"
}
# remark RUNNER NAME: prints the number of tests that a suite in another language recorded.
remark() { [ ! -f "$logs/$2" ] || echo "$1: $(cat "$logs/$2")"; }

e2e=tests/e2e/main.rs
client "kubectl" $e2e kubectl:: "$kubectl"
client "client-go, controller-runtime" $e2e "clients::|informers::" "$go"
client "PostgreSQL" tests/postgres/main.rs "" "$postgres"
client "three servers on PostgreSQL" $e2e replicas::three_servers_share_a_database "$postgres"
client "etcd" tests/etcd/main.rs "" "$go"
client "three servers on etcd" $e2e replicas::three_servers_share_an_etcd "$go"
client "MariaDB" tests/mariadb/main.rs "" "$mariadb"
client "two servers on MariaDB" $e2e replicas::two_servers "$mariadb"
client "book" $e2e book:: "$kubectl" "$(remark tutorial tutorial), $(remark "other pages" pages)"
client "kubectl plug-ins" $e2e plugin:: "$kubectl"
client "fresh projects in Rust" $e2e scaffold::fresh_projects_in_rust yes
client "projects in Go" $e2e "scaffold::the_(project|webhooks)_in_go" "$go_project"
client "projects in Python" $e2e "scaffold::the_(project|webhooks)_in_python" "$python"
client "faults on PostgreSQL" tests/outages/main.rs "three_servers_on_postgresql|cut_off::|defects::|leader::|negatives::|partition::|promotion::|rolling::|stopped::" "$postgres"
client "faults on etcd" tests/outages/main.rs three_servers_on_etcd "$go"
client "faults on MariaDB" tests/outages/main.rs two_servers_on_mariadb "$mariadb"
client "faults: lost packets" tests/outages/main.rs partition:: "$([ "$postgres" = yes ] && echo "$network" || echo "$postgres")"
client "faults: full disk, SQLite" tests/crash/main.rs full::deletions_and_compaction_work_on_a_small "$mounts"
client "faults: full disk, PostgreSQL" tests/postgres/main.rs space:: "$([ "$postgres" = yes ] && echo "$mounts" || echo "$postgres")"
client "faults: full disk, MariaDB" tests/mariadb/main.rs space::a_full "$([ "$mariadb" = yes ] && echo "$mounts" || echo "$mariadb")"
client "clients behind a balancer" tests/outages/main.rs balanced:: "$([ "$postgres" = yes ] && echo "$go" || echo "$postgres")"
# The time that the suites of the storage engines took together. On a quiet machine with two cores it is below 360 s.
engines=$(awk '
    /^ +(Running|Doc-tests) / { here = /tests\/(postgres|mariadb|etcd|outages|crash)\/main.rs|bareboat-sqlite|deps\/(conformance|checks)-/ }
    here && /^test result:/ { sub(/s$/, "", $NF); sum += $NF }
    END { printf "%d", sum }' "$logs/cargo.log")
row "  storage engines, time" "${engines} s" "all suites of engines and servers under faults; planned are 360 s"
client "alert rules (promtool)" $e2e prometheus:: "$promtool"
client "fleet (kubectl, client-go)" $e2e fleet:: "$go"
client "helm" $e2e helm:: "$go"
client "kube-controller-manager" $e2e controller_manager:: "$go"
client "sample-controller (Go)" $e2e sample_controller:: "$go"
client "kube-rs" $e2e kube_rs:: yes
client "sample-controller (kube-rs)" tests/controller.rs "" "$kubectl"
client "sessions of the examples" tests/session.rs the_readme_is_true "$kubectl"
client "Python client" $e2e python::the_python_client "$python" "$(remark pytest python)"
client "OTLP (Python)" $e2e tracing::a_collector_gets "$python"
client "kopf" $e2e python::an_operator "$python" "$(remark pytest kopf)"
if [ "$java" = broken ]; then
    failure "  Java clients" "their tests do not compile"
else
    client "Java clients" $e2e java:: "$java" "$(remark JUnit java)"
fi
client "JavaScript client" $e2e javascript:: "$javascript" "$(remark node javascript)"

close
