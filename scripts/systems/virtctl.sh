# The example virt behind Bareboat, with virtctl.
needs "$peers/virtctl" "$peers/kubectl" cargo
cargo test --workspace --test session -- --ignored >"$here/session.log" 2>&1 || fail "$(tail -n 40 "$here/session.log")"
checked "examples/virt/virtctl.md: version, start, console, pause, unpause, migrate, restart, stop, errors"
