#!/usr/bin/env bash
# Fetches promtool, which checks the alert rules, into .cache/promtool, unless it is installed. Only this program is taken
# out of Debian's package prometheus: nothing is installed, and no service is started.
#
#   scripts/promtool.sh
#
# Exit codes: 0 there is a promtool, 3 it is not available.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder="$root/.cache/promtool"

unavailable() {
    echo "promtool: $1" >&2
    exit 3
}

[ ! -x "$folder/promtool" ] || exit 0
command -v promtool >/dev/null 2>&1 && exit 0
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || unavailable "this is not Debian"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fetch() { apt-get download -qq prometheus; }
fetch || { [ "$(id -u)" = 0 ] && apt-get update -qq && fetch; } || unavailable "the package prometheus cannot be downloaded"
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
mkdir -p "$folder"
# Moved last, so that an interrupted run leaves no half of it.
cp usr/bin/promtool "$folder/.promtool.$$"
mv "$folder/.promtool.$$" "$folder/promtool"
"$folder/promtool" --version
