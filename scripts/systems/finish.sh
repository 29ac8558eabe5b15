# Ends the programs that sessions of scripts/systems.sh and scripts/fleet.sh started and left. The caller sets dir, the folder of this
# run. A kube-apiserver whose etcd is gone does not end by itself.
finish() {
    local file signal
    for signal in TERM KILL; do
        for file in "$dir"/*/*.pid; do
            [ -f "$file" ] && kill -$signal "$(cat "$file")" 2>/dev/null || rm -f "$file"
        done
        for _ in $(seq 20); do
            for file in "$dir"/*/*.pid; do
                [ -f "$file" ] && ! kill -0 "$(cat "$file")" 2>/dev/null && rm -f "$file"
            done
            ls "$dir"/*/*.pid >/dev/null 2>&1 || return 0
            sleep 0.2
        done
    done
}
