#!/usr/bin/env bash
# Builds what the service at $SVC_API_URL asks of this run. Proves the identity of the job, fetches the
# one commit, and runs the command of the build. Writes `artifact`, `app-id` and `platform` to
# $GITHUB_OUTPUT. Needs curl, jq and git.
set -euo pipefail

# shellcheck source=../upload/service.sh
. "$(dirname "${BASH_SOURCE[0]}")/../upload/service.sh"

# The service may learn the number of this run later than the run begins.
patience=${patience:-12}
exchange
build=$(jq -c '.build // empty' "$answer")
[ -n "$build" ] || fail "the service has no build for this run"
unset SVC_TOKEN
of() { jq -r ".$1 // empty" <<<"$build"; }

url=$(of url) commit=$(of commit) artifact=$(of artifact) command=$(of command) token=$(of token)
git init --quiet source
cd source
if [ -n "$token" ]; then
    echo "::add-mask::$token"
    header="Authorization: Basic $(printf 'x-token-auth:%s' "$token" | base64 | tr -d '\n')"
    echo "::add-mask::${header##* }"
fi
fetch() {
    GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=2 \
        GIT_CONFIG_KEY_0=http.followRedirects GIT_CONFIG_VALUE_0=false \
        GIT_CONFIG_KEY_1=http.extraHeader GIT_CONFIG_VALUE_1="${header:-}" \
        git fetch --quiet --depth=1 --no-tags -- "$url" "$1"
}
# Some servers hand out only the newest commits of branches and tags.
fetch "$commit" || fetch "$(of ref)" || fail "the repository cannot be fetched"
git checkout --quiet --detach "$commit" || fail "the repository has no commit $commit any more"

# The command must neither ask for the identity of the job nor write its outputs.
hidden=()
while IFS= read -r name; do
    hidden+=(-u "$name")
done < <(compgen -e | grep -E '^(ACTIONS|GITHUB|INPUT|SVC)_')
echo "$ $command"
env "${hidden[@]}" CI=true SVC_BUILD_ID="$(of buildId)" SVC_APP_ID="$(of appId)" \
    SVC_PLATFORM="$(of platform)" SVC_PROFILE="$(of profile)" SVC_COMMIT="$commit" SVC_REF="$(of ref)" \
    sh -c "$command"
{ [ -f "$artifact" ] && [ ! -L "$artifact" ]; } || fail "the command made no $artifact"
{
    echo "artifact=$PWD/$artifact"
    echo "app-id=$(of appId)"
    echo "platform=$(of platform)"
} >>"$GITHUB_OUTPUT"
