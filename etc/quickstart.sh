#!/bin/bash
# From a checkout to a streamed answer: installs what is missing, builds the programs, starts the daemon on the
# model that comes with it and on a socket of its own, asks it something, and stops it. Nothing outside the
# checkout changes but Debian's packages. Ends with 0 only if every step worked and the answer is right.
set -euo pipefail
cd "$(dirname "$0")/.."

QUESTION="Which command shows what the daemon is doing?"
ANSWER="pantheon status"
BIN=build/release/bin

usage() {
    echo "usage: etc/quickstart.sh [--help]"
    echo "Installs, builds, starts pantheond on the embedded model, streams an answer through its socket, stops it."
    echo "The first run builds everything (some minutes); later ones take seconds."
}

step() { echo "== $*"; }

scratch=""
daemon=""

# Whatever happens, no daemon and no scratch folder stay behind.
clean_up() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" || true
    fi
    if [ -n "$scratch" ]; then rm -rf "$scratch"; fi
}

build() {
    mkdir -p build
    cmake --preset release >build/quickstart.configure.log 2>&1 || {
        cat build/quickstart.configure.log
        return 1
    }
    cmake --build --preset release --target pantheond pantheon --parallel "$(nproc)"
}

start_daemon() {
    cat >"$scratch/pantheond.toml" <<END
ipc.endpoint = "ipc://$scratch/pantheond.sock"
END
    "$BIN/pantheond" --config "$scratch/pantheond.toml" --foreground 2>"$scratch/log" &
    daemon=$!
    local tries
    for tries in $(seq 100); do
        if pantheon ping >/dev/null 2>&1; then return; fi
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    echo "the daemon does not answer after $tries tries; its log:"
    cat "$scratch/log"
    return 1
}

pantheon() { "$BIN/pantheon" --endpoint "ipc://$scratch/pantheond.sock" "$@"; }

stop_daemon() {
    kill -TERM "$daemon"
    local code=0
    wait "$daemon" || code=$?
    daemon=""
    if [ "$code" -ne 0 ]; then
        echo "the daemon ended with $code; its log:"
        cat "$scratch/log"
        return 1
    fi
}

main() {
    case ${1:-} in
    "") ;;
    --help | -h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    trap clean_up EXIT
    step "packages"
    etc/install-packages.sh
    step "build"
    build
    scratch=$(mktemp -d)
    step "start the daemon on its embedded model (5 million parameters: it knows this program, and not much else)"
    start_daemon
    step "ask it: $QUESTION"
    pantheon generate -p "$QUESTION" --temp 0 2>"$scratch/reasoning" | tee "$scratch/answer"
    echo
    step "stop the daemon"
    stop_daemon
    if ! grep -q "$ANSWER" "$scratch/answer"; then
        echo "the answer does not name '$ANSWER'"
        return 1
    fi
    step "done; this answer was streamed through the socket:"
    cat "$scratch/answer"
    echo
}

main "$@" </dev/null
