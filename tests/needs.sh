#!/usr/bin/env bash
# Installs what the tests need beyond a Rust toolchain, where this is root on a Debian machine;
# elsewhere says what is missing. Tests that cannot run for it report themselves as left out.
set -eu

missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need cc gcc
need node nodejs
need npm npm
need aiosmtpd python3-aiosmtpd

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
else
    echo "missing: ${missing[*]}; install them to run every test" >&2
fi
