#!/usr/bin/env bash
# Uploads $ARTIFACT to the app $SVC_APP_ID of the service at $SVC_API_URL, has it verified, and with
# CREATE_RELEASE=true adds it to the release of its version in $RELEASE_CHANNEL. $PROFILE is the build
# profile, if there is one. Needs curl and jq.
#
# Without $SVC_TOKEN, it exchanges the identity of the CI job for a token. Writes `artifact-id` to
# $GITHUB_OUTPUT. An upload that breaks off goes on where it stopped.
set -euo pipefail

# shellcheck source=service.sh
. "$(dirname "${BASH_SOURCE[0]}")/service.sh"
rest=$(mktemp)
trap 'rm -f "$answer" "$rest"' EXIT

# Sends the bytes from the offset that the service has.
send() {
    local offset=$1 failures=0 status before
    while [ "$offset" -lt "$size" ]; do
        # curl sends the length of a file, and not that of a pipe.
        tail -c "+$((offset + 1))" "$ARTIFACT" >"$rest"
        status=$(curl -sS -o "$answer" -w '%{http_code}' --connect-timeout 10 --speed-limit 1000 --speed-time 60 -T "$rest" \
            -H 'Content-Type: application/octet-stream' -H 'Expect:' \
            -H "Content-Range: bytes $offset-$((size - 1))/$size" -K <(printf 'url = "%s"\n' "$url")) ||
            status=000
        [ "$status" = 200 ] && return
        failures=$((failures + 1))
        case $status in
        000 | 408 | 409 | 429 | 5*) [ "$failures" -lt "$attempts" ] || fail "the upload broke off ($status)" ;;
        *) fail "the service refused the bytes ($status): $(jq -r .error "$answer" || true)" ;;
        esac
        sleep "$failures"
        before=$offset
        offset=$(curl -sS -I --retry "$attempts" --retry-all-errors --max-time 60 \
            -K <(printf 'url = "%s"\n' "$url") | tr -d '\r' | sed -n 's/^[Uu]pload-[Oo]ffset: //p') ||
            fail "$api cannot be reached"
        offset=${offset:-0}
        # Attempts without progress count.
        [ "$offset" -le "$before" ] || failures=0
    done
}

[ -f "$ARTIFACT" ] || fail "there is no file $ARTIFACT"
size=$(wc -c <"$ARTIFACT" | tr -d ' ')
sha256=$( (sha256sum "$ARTIFACT" 2>/dev/null || shasum -a 256 "$ARTIFACT") | cut -d' ' -f1)
[ -n "${SVC_TOKEN:-}" ] || exchange

run=${GITHUB_SERVER_URL:-}/${GITHUB_REPOSITORY:-}/actions/runs/${GITHUB_RUN_ID:-}
post /api/v1/artifacts/upload-url "$(jq -n \
    --arg app "$SVC_APP_ID" --arg platform "$PLATFORM" --arg file "$(basename "$ARTIFACT")" \
    --argjson size "$size" --arg sha256 "$sha256" \
    --arg repository "${GITHUB_REPOSITORY:-}" --arg commit "${GITHUB_SHA:-}" \
    --arg ref "${GITHUB_REF_NAME:-}" --arg run "${GITHUB_RUN_ID:+$run}" --arg profile "${PROFILE:-}" '
    {appId: $app, platform: $platform, fileName: $file, size: $size, sha256: $sha256}
    + if $profile == "" then {} else {profile: $profile} end
    + {provenance: ({path: "external-ci", repository: $repository, commit: $commit, ref: $ref,
         runUrl: $run}
         # The service takes no longer names.
         | with_entries(select(.value != "" and (.key == "runUrl" or (.value | length) <= 120))))}')"
artifact=$(jq -er .artifactId "$answer")
url=$(jq -r '.uploadUrl // empty' "$answer")
[ -z "$url" ] || send "$(jq -r .offset "$answer")"

attestation=/dev/null
if [ -n "${ATTESTATION:-}" ]; then
    [ -f "$ATTESTATION" ] || fail "there is no file $ATTESTATION"
    attestation=$ATTESTATION
fi
post "/api/v1/artifacts/$artifact/finalize" "$(jq -n \
    --arg sha256 "$sha256" --argjson size "$size" --slurpfile attestation "$attestation" \
    --arg release "${CREATE_RELEASE:-false}" --arg channel "${RELEASE_CHANNEL:-production}" '
    {sha256: $sha256, size: $size}
    + if $attestation == [] then {} else {attestation: $attestation[0]} end
    + if $release == "true" then {createRelease: {channel: $channel}} else {} end')"
version=$(jq -r .version "$answer")
echo "verified $artifact, version $version, SHA-256 $sha256"
echo "artifact-id=$artifact" >>"${GITHUB_OUTPUT:-/dev/null}"
echo "\`$(basename "$ARTIFACT")\` $version is \`$artifact\`, SHA-256 \`$sha256\`" \
    >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
