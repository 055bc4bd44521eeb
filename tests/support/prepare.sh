#!/usr/bin/env bash
# Makes the images, the node packages and the driver of Firefox of the tests that are not there yet, while the compiler works.
# What cannot be made here, the first test that needs it tries again, and says why it failed.
set -u
cd "$(dirname "$0")/../.."

if docker info >/dev/null 2>&1; then
    tests/support/images/build.sh >/dev/null 2>&1 &
fi
# The driver of Firefox is no package of Debian. It works as well without optimization, and is there sooner.
if command -v firefox-esr >/dev/null 2>&1 && [ ! -x target/tools/bin/geckodriver ]; then
    CARGO_PROFILE_DEV_DEBUG=false cargo install --debug --quiet --locked geckodriver@0.37.1 --root target/tools >/dev/null 2>&1 &
fi
# A test takes the packages that are there for whole, so what was not finished goes.
unfinished=
trap 'rm -rf "$unfinished"; exit 1' INT TERM
for lock in tests/support/*/package-lock.json sdk/*/package-lock.json; do
    folder=$(dirname "$lock")
    if [ ! -e "$folder/node_modules" ]; then
        unfinished=$folder/node_modules
        (cd "$folder" && npm ci --ignore-scripts --no-audit >/dev/null 2>&1) || rm -rf "$unfinished"
        unfinished=
    fi
done
wait
