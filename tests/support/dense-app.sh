#!/bin/sh
# dense-app.sh FOLDER BYTES: makes FOLDER/dense.apk, an app of a few hundred kilobytes that inflates to so many bytes.
# Its signature covers each entry, so whoever checks it inflates all of them. Needs zip and apksigner.
set -eu
fixtures=$(cd "$(dirname "$0")/../../data/fixtures" && pwd)
cd "$1"
cp "$fixtures/sample-unsigned.apk" unsigned.apk
head -c "$2" /dev/zero >zeros
zip --quiet unsigned.apk zeros
apksigner sign --ks "$fixtures/throwaway.p12" --ks-pass pass:throwaway --min-sdk-version 21 \
    --v2-signing-enabled false --v3-signing-enabled false --v4-signing-enabled false \
    --out dense.apk unsigned.apk
rm zeros unsigned.apk
