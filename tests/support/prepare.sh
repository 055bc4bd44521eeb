#!/usr/bin/env bash
# Makes the images and the node packages of the tests that are not there yet, while the compiler works.
# What cannot be made here, the first test that needs it tries again, and says why it failed.
set -u
cd "$(dirname "$0")/../.."

if docker info >/dev/null 2>&1; then
    tests/support/images/build.sh >/dev/null 2>&1 &
fi
for lock in tests/support/*/package-lock.json sdk/*/package-lock.json; do
    folder=$(dirname "$lock")
    if [ ! -e "$folder/node_modules" ] && ! (cd "$folder" && npm ci --ignore-scripts --no-audit >/dev/null 2>&1); then
        # A test takes what is there for whole.
        rm -rf "$folder/node_modules"
    fi
done
wait
