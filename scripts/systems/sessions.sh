# The READMEs of the examples, with Bareboat.
needs cargo "$peers/kubectl" "$peers/kube-controller-manager" python3 curl
cargo test --workspace --test readme >"$here/readme.log" 2>&1 || fail "$(tail -n 40 "$here/readme.log")"
checked "READMEs of metrics-server, custom-metrics, pod-streams and virt"
