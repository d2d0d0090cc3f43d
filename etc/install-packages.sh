#!/bin/bash
# Installs the Debian packages that the lists name and this machine lacks; does nothing when all are there.
set -euo pipefail

usage() {
    echo "usage: install-packages.sh [--help] [LIST…]"
    echo "Installs every package named in the LISTs (default: packages.txt beside this script) with apt-get,"
    echo "as root or through sudo. Says what it does; does nothing when nothing is missing."
}

say() { echo "install-packages: $*"; }

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# missing_from LIST…: the packages that are neither installed nor replaced by the command named beside them
missing_from() {
    local package substitute
    sed -e 's/#.*//' "$@" | while read -r package substitute; do
        [ -n "$package" ] || continue
        is_installed "$package" && continue
        [ -n "$substitute" ] && command -v "$substitute" >/dev/null && continue
        echo "$package"
    done
}

main() {
    local lists=("$@") missing as_root=()
    case ${1:-} in
    --help | -h) usage && exit 0 ;;
    esac
    [ ${#lists[@]} -gt 0 ] || lists=("$(cd "$(dirname "$0")" && pwd)/packages.txt")
    command -v apt-get >/dev/null || {
        say "no apt-get here; install by other means what these lists name: ${lists[*]}" >&2
        exit 1
    }

    missing=$(missing_from "${lists[@]}" | sort -u | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            say "needs root, and there is no sudo. As root: apt-get install --no-install-recommends $missing" >&2
            exit 1
        }
        as_root=(sudo)
    fi
    say "installing: $missing"
    # -q -q leaves only warnings and errors; dpkg's own lines follow the same switch.
    "${as_root[@]}" apt-get update -q -q </dev/null
    # shellcheck disable=SC2086  # one word a package is meant
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q -q --no-install-recommends \
        -o Dpkg::Use-Pty=0 $missing </dev/null
    say "done"
}

main "$@"
