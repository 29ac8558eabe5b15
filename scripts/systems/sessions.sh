# The READMEs of the examples, with Bareboat.
needs cargo "$peers/kubectl" "$peers/kube-controller-manager" python3 curl
cargo test --workspace --test session >"$here/sessions.log" 2>&1 || fail "$(tail -n 40 "$here/sessions.log")"
checked "READMEs of all examples that have one"
