# The smallest server made with the library against k8s.io/sample-apiserver: lines, binary, start, memory, CPU of a request.
#
# It builds examples/smallest with the profiles dist and small. The measurements are worth something on a quiet machine only.
# SMALLEST_COMPILE=1 also compiles it from nothing with the profile release, which takes about two minutes.
needs "$peers/sample-apiserver" "$peers/etcd" openssl python3 strip go

target=${CARGO_TARGET_DIR:-$root/target}
for profile in dist small; do
    cargo build --profile $profile --package smallest >"$here/build.log" 2>&1 || fail "$(tail -n 40 "$here/build.log")"
    cp "$target/$profile/smallest" "$here/smallest-$profile"
    strip "$here/smallest-$profile"
done
sample=$(cd "$root/tests/peers/kubernetes" && go list -m -f '{{.Dir}}' k8s.io/sample-apiserver)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=smallest \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$here/tls.key" -out "$here/tls.crt" 2>/dev/null
printf 'secret,admin,1,"system:masters"\n' >"$here/tokens"

# sample-apiserver asks another server who a user is and what the user may do, and stores in etcd.
bareboat
etcd=$(free_port) peer=$(free_port)
start etcd "$peers/etcd" --data-dir "$here/etcd" --listen-client-urls "http://127.0.0.1:$etcd" \
    --advertise-client-urls "http://127.0.0.1:$etcd" --listen-peer-urls "http://127.0.0.1:$peer" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer"

python3 "$root/scripts/systems/smallest.py" "$here" "$root" "$peers/sample-apiserver" "$sample" "http://127.0.0.1:$etcd" |
    tee "$here/table" || fail "it could not be measured"
while IFS= read -r row; do checked "$row"; done < <(sed -n 's/^\* //p' "$here/table")

if [ -n "${SMALLEST_COMPILE:-}" ]; then
    begun=$SECONDS
    (cd "$root" && CARGO_TARGET_DIR="$here/clean" cargo build --release --package smallest --locked) >"$here/compile.log" 2>&1 ||
        fail "$(tail -n 40 "$here/compile.log")"
    checked "compiled from nothing in $((SECONDS - begun)) s"
    rm -rf "$here/clean"
fi
