#!/usr/bin/env bash
# build.sh [image...]: builds the named images, or all of them, each once.
#
# An image is a folder here with a Dockerfile. Its tag is a hash of all that goes into it: its folder, the images
# it stands on and this script. A tag that Docker has already is not built again.
# Stdout has one line per image, `<name> <reference>`; progress goes to stderr.
set -euo pipefail
export LC_ALL=C
umask 022
cd "$(dirname "$(readlink -f "$0")")"

die() { echo "build.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is missing; install $2 and run this again."; }

# The images that an image is made from.
parents() { sed -n 's|^FROM svc-test/\([a-z0-9-]*\).*|\1|p' "$1/Dockerfile" | sort -u; }

reference() {
    local parent
    {
        cat build.sh
        find "$1" -type f -print0 | sort -z | xargs -0 sha256sum
        for parent in $(parents "$1"); do reference "$parent"; done
    } | sha256sum | sed "s|^\(.\{16\}\).*|svc-test/$1:\1|"
}

# A release of Debian with these packages, as little of it as there is, in a tar.
debian() {
    need mmdebstrap "the package mmdebstrap"
    # What is left out here is also left out by each apt-get in an image on top. The clock of the machine may be
    # past the time until which the list of a release is said to be valid.
    mmdebstrap --quiet --variant=minbase ${2:+--include="$2"} --aptopt='APT::Install-Recommends "false"' \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        "$1" rootfs.tar
}

# Brings what comes from package managers into the folder that Docker builds from. Debian's packages apart it is
# done here and not in a Dockerfile: the machine's npm and pip know how to reach their registries.
prepare() {
    case $1 in
        base) debian bookworm ;;
        builder-base) debian forky buildah,ca-certificates,e2fsprogs,libcap2-bin,netavark,nftables,passwd,socat,uidmap ;;
    esac
    if [ "$1" = recipe-base ] || [ "$1" = builder-base ]; then
        [ -f /etc/ssl/certs/ca-certificates.crt ] || die "the package ca-certificates is missing; install it."
        cp /etc/ssl/certs/ca-certificates.crt .
    fi
    if [ -f package-lock.json ]; then
        # The machine's Node may be older than these packages want: none of their code runs on it.
        need npm npm
        npm ci --omit=dev --ignore-scripts --prefer-offline --no-audit --no-fund
    fi
    if [ -f npm.sha256 ]; then
        # Packages of which an image takes single files, so that it needs none of what they depend on.
        need npm npm
        local sum package archive
        while read -r sum package; do
            archive=$(npm pack --silent "$package")
            sha256sum --check --quiet <<<"$sum  $archive"
            tar -xf "$archive"
        done < npm.sha256
    fi
    # What no server loads.
    find . -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \
        -o -name '*.flow' -o -name '*.md' ! -iname 'licen[sc]e*' \) -delete
    if [ -f requirements.txt ]; then
        need pip3 "the package python3-pip"
        # For the image's Python, which need not be the machine's.
        pip3 install --quiet --target site-packages --no-deps --no-compile --require-hashes \
            --only-binary :all: --platform manylinux2014_x86_64 --python-version 3.11 -r requirements.txt
    fi
}

build() {
    local reference parent from=$work/$1
    reference=$(reference "$1")
    if docker image inspect "$reference" >/dev/null 2>&1; then return; fi
    for parent in $(parents "$1"); do build "$parent"; done

    echo "building $reference"
    cp -r "$1" "$from"
    (cd "$from" && prepare "$1")
    for parent in $(parents "$1"); do
        sed -i -E "s#^FROM svc-test/$parent( AS .*)?\$#FROM $(reference "$parent")\1#" "$from/Dockerfile"
    done
    docker build --tag "$reference" "$from"
    rm -r "$from"
}

if [ $# = 0 ]; then set -- $(dirname */Dockerfile); fi
for image; do
    [ -f "$image/Dockerfile" ] || die "there is no image $image; there are: $(echo $(dirname */Dockerfile))."
done
need docker Docker
have=$(docker image ls --format '{{.Repository}}:{{.Tag}}' --filter 'reference=svc-test/*') ||
    die "Docker does not answer; start its daemon, or let this user talk to it."

for image; do
    reference=$(reference "$image")
    if ! grep -qxF "$reference" <<<"$have"; then
        # Of two test runs that start together one builds, and the other waits for it.
        exec 9<build.sh && flock 9
        work=$(mktemp -d)
        trap 'rm -rf "$work"; echo "build.sh: $image was not built; why is above." >&2' EXIT
        build "$image" >&2
        trap - EXIT
        rm -rf "$work"
        exec 9<&-
    fi
    echo "$image $reference"
done
