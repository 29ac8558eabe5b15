#!/usr/bin/env bash
# Runs the tests of the official JavaScript client against the server named by KUBECONFIG.
#
#   KUBECONFIG=FILE scripts/javascript.sh [arguments of node --test]
#   scripts/javascript.sh --setup      only installs the client and copies the tests, into .cache/javascript
#
# Exit codes: those of node, or 2 for wrong usage, 3 if Node.js or its packages are not available.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
env="$root/.cache/javascript"
tests="$root/tests/javascript"

unavailable() {
    echo "javascript: $1" >&2
    exit 3
}

command -v node >/dev/null 2>&1 || unavailable "Node.js is not installed"
command -v npm >/dev/null 2>&1 || unavailable "npm is not installed"
[ "$(node -p 'process.versions.node.split(".")[0] >= 20')" = true ] || unavailable "Node.js 20 or newer is needed"
print=$(cd "$tests" && { sha256sum ./*.json; node --version; } | sha256sum | cut -d' ' -f1)
if [ "$(cat "$env/.stamp" 2>/dev/null || true)" != "$print" ]; then
    echo "javascript: installing the client library into .cache/javascript"
    rm -rf "$env"
    mkdir -p "$env"
    cp "$tests"/package.json "$tests"/package-lock.json "$env"
    # Retries after network failures; downloads are kept.
    attempt=1
    until (cd "$env" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error); do
        [ "$attempt" -lt 3 ] || unavailable "cannot install the packages of tests/javascript/package-lock.json"
        sleep $((attempt * 10))
        attempt=$((attempt + 1))
    done
    echo "$print" >"$env/.stamp"
fi
# Node.js looks for modules beside the importing file, so the tests are copied to the packages.
rm -f "$env"/*.mjs
cp "$tests"/*.mjs "$env"
[ "${1:-}" = --setup ] && exit 0
if [ -z "${KUBECONFIG:-}" ]; then
    echo "usage: KUBECONFIG=FILE scripts/javascript.sh [arguments of node --test]" >&2
    exit 2
fi
cd "$env"
exec node --test --test-concurrency=1 --test-reporter=tap "$@"
