#!/usr/bin/env bash
# Installs what the tests need beyond a Rust toolchain, and starts a container engine, where this is
# root on a Debian machine; elsewhere says what is missing. Tests that cannot run for it report
# themselves as left out.
set -eu

missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need cc gcc
need node nodejs
need npm npm
need aiosmtpd python3-aiosmtpd
need git git
need openssl openssl
need keytool default-jre-headless
need ssh openssh-client
[ -x /usr/sbin/sshd ] || missing+=(openssh-server)
need aapt2 aapt
need apksigner apksigner
need zipalign zipalign
need smali smali
need zip zip
need chromium chromium
need chromedriver chromium-driver
need firefox-esr firefox-esr
need curl curl
need jq jq
need strace strace
need haproxy haproxy
need pgbouncer pgbouncer
need nft nftables
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null 2>&1 || missing+=(postgresql)
[ -e /usr/share/android-framework-res/framework-res.apk ] || missing+=(android-framework-res)
need docker docker.io
need ip iproute2
need dockerd docker.io
need docker-registry docker-registry
need caddy caddy
need pebble pebble
need lego lego
need mmdebstrap mmdebstrap
need pip3 python3-pip

if [ ${#missing[@]} -eq 0 ]; then
    :
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "make test installs these packages: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
else
    echo "missing: ${missing[*]}; install them to run every test" >&2
fi

# The container engine, where nobody has started it or named another: as root, without a service manager
# too.
if [ -z "${DOCKER_HOST:-}" ] && [ "$(id -u)" = 0 ] && command -v dockerd >/dev/null 2>&1 && ! docker info >/dev/null 2>&1; then
    echo "make test starts dockerd, which stays; its log is /var/log/dockerd.log"
    setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null &
    for _ in $(seq 100); do
        docker info >/dev/null 2>&1 && break
        sleep 0.2
    done
fi
