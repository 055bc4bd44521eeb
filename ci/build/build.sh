#!/usr/bin/env bash
# Runs the command that .svc/config.json names for $PLATFORM and $PROFILE. Writes `artifact`, the path
# of the built file, to $GITHUB_OUTPUT. Needs jq.
set -euo pipefail

config=.svc/config.json
fail() {
    echo "::error file=$config::$1"
    exit 1
}
# entry PART: the entry of `build` or `artifact` for this platform and profile
entry() {
    jq -er --arg part "$1" --arg platform "$PLATFORM" --arg profile "$PROFILE" \
        '.[$part][$platform][$profile] | strings' "$config" ||
        fail "$config has no $1.$PLATFORM.$PROFILE"
}

[ -f "$config" ] || fail "the repository has no $config; svc init writes it"
command=$(entry build) || { echo "$command"; exit 1; }
artifact=$(entry artifact) || { echo "$artifact"; exit 1; }
echo "$ $command"
# The command must not ask for the identity of the job.
env -u ACTIONS_ID_TOKEN_REQUEST_URL -u ACTIONS_ID_TOKEN_REQUEST_TOKEN sh -c "$command"
[ -f "$artifact" ] || fail "the command made no $artifact"
echo "artifact=$artifact" >>"$GITHUB_OUTPUT"
