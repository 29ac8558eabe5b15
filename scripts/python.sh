#!/usr/bin/env bash
# Runs the tests of the Python client against the server named by KUBECONFIG.
#
#   KUBECONFIG=FILE scripts/python.sh [pytest arguments]
#   scripts/python.sh --setup          only creates the environment in .cache/python
#
# Exit codes: those of pytest, or 2 for wrong usage, 3 if Python or its packages are not available.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
env="$root/.cache/python"
tests="$root/tests/python"

unavailable() {
    echo "python: $1" >&2
    exit 3
}

command -v python3 >/dev/null 2>&1 || unavailable "Python 3 is not installed"
print=$(cat "$tests/requirements.txt" <(python3 --version) | sha256sum | cut -d' ' -f1)
if [ "$(cat "$env/.stamp" 2>/dev/null || true)" != "$print" ]; then
    echo "python: installing the client library into .cache/python"
    rm -rf "$env"
    python3 -m venv "$env" || unavailable "cannot make a virtual environment (is the venv module installed?)"
    # Retries after network failures; downloads are kept.
    attempt=1
    until "$env/bin/python" -m pip install --quiet --disable-pip-version-check --retries 5 --timeout 60 \
        --requirement "$tests/requirements.txt"; do
        [ "$attempt" -lt 3 ] || unavailable "cannot install the packages of tests/python/requirements.txt"
        sleep $((attempt * 10))
        attempt=$((attempt + 1))
    done
    echo "$print" >"$env/.stamp"
fi
[ "${1:-}" = --setup ] && exit 0
if [ -z "${KUBECONFIG:-}" ]; then
    echo "usage: KUBECONFIG=FILE scripts/python.sh [pytest arguments]" >&2
    exit 2
fi
exec "$env/bin/python" -B -m pytest -p no:cacheprovider --quiet "$@" "$tests"
