#!/usr/bin/env bash
# Runs the tests of the Java clients against the server named by KUBECONFIG, all in one JVM.
#
#   KUBECONFIG=FILE scripts/java.sh [arguments of the JUnit console launcher]
#   scripts/java.sh --setup            only downloads the libraries and compiles the tests, into .cache/java
#
# Exit codes: those of the launcher, or 1 if the tests do not compile, 2 for wrong usage, 3 if Java, Maven or the
# libraries are not available.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
env="$root/.cache/java"
tests="$root/tests/java"

unavailable() {
    echo "java: $1" >&2
    exit 3
}

command -v javac >/dev/null 2>&1 || unavailable "a JDK is not installed"
command -v mvn >/dev/null 2>&1 || unavailable "Maven is not installed"
print=$(cd "$tests" && { find . -type f | LC_ALL=C sort | xargs sha256sum; javac -version; } 2>&1 |
    sha256sum | cut -d' ' -f1)
if [ "$(cat "$env/.stamp" 2>/dev/null || true)" != "$print" ]; then
    echo "java: fetching the libraries and compiling the tests into .cache/java"
    rm -rf "$env"
    mkdir -p "$env"
    # Retries after network failures; downloads are kept.
    attempt=1
    until mvn --batch-mode --quiet --file "$tests/pom.xml" dependency:copy-dependencies -DoutputDirectory="$env/lib"; do
        [ "$attempt" -lt 3 ] || unavailable "cannot fetch what tests/java/pom.xml names"
        sleep $((attempt * 10))
        attempt=$((attempt + 1))
    done
    find "$tests/src" -name '*.java' -print0 |
        xargs -0 javac --release 17 -proc:none -Xlint:all,-processing,-path,-serial,-classfile,-try -Werror -cp "$env/lib/*" -d "$env/classes"
    cp "$tests"/src/test/resources/* "$env/classes/"
    echo "$print" >"$env/.stamp"
fi
[ "${1:-}" = --setup ] && exit 0
if [ -z "${KUBECONFIG:-}" ]; then
    echo "usage: KUBECONFIG=FILE scripts/java.sh [arguments of the JUnit console launcher]" >&2
    exit 2
fi
exec java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dcom.google.protobuf.use_unsafe_pre22_gencode=true \
    -cp "$env/classes:$env/lib/*" org.junit.platform.console.ConsoleLauncher execute \
    --scan-classpath "$env/classes" --disable-banner --disable-ansi-colors --details=summary "$@"
