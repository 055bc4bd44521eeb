# Calls of the service at $SVC_API_URL, for scripts that read this file. Needs curl and jq.
#
# With `patience`, a refused credential is tried again so often, every 5 seconds.

api=${SVC_API_URL%/}
attempts=8
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

fail() {
    echo "::error::$1"
    exit 1
}

# request CURL_OPTIONS…: writes the body to $answer, and prints the status. Retries what may pass.
# Tokens and signed addresses are not among the arguments, which other programs can read.
request() {
    curl -sS -o "$answer" -w '%{http_code}' --connect-timeout 10 --max-time 900 \
        --retry "$attempts" --retry-all-errors -K <(
            [ -z "${SVC_TOKEN:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$SVC_TOKEN"
        ) "$@"
}

# post PATH BODY: fails with the sentence of the service
post() {
    local status limit waits=0
    while :; do
        status=$(request -H 'Content-Type: application/json' --data-binary @- "$api$1" <<<"$2") ||
            fail "$api cannot be reached"
        case $status in
        # The service still works on it.
        424) limit=120 ;;
        401) limit=${patience:-0} ;;
        *) break ;;
        esac
        [ "$waits" -lt "$limit" ] || break
        waits=$((waits + 1))
        sleep 5
    done
    case $status in
    2*) ;;
    *) fail "the service refused $1 ($status): $(jq -r '.error // "no reason"' "$answer" || cat "$answer")" ;;
    esac
}

# Asks the CI for a token that proves the identity of the job, and the service for a deploy token.
exchange() {
    [ -n "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ] ||
        fail "there is no token: pass SVC_TOKEN, or grant id-token: write to the job"
    local identity
    identity=$(curl -sS --fail --retry "$attempts" --max-time 60 -G --data-urlencode "audience=$api" \
        -K <(printf 'header = "Authorization: Bearer %s"\n' "$ACTIONS_ID_TOKEN_REQUEST_TOKEN") \
        "$ACTIONS_ID_TOKEN_REQUEST_URL" | jq -er .value) || fail "the CI gives no identity token"
    post /api/v1/oidc/exchange "$(IDENTITY=$identity jq -n '
        {token: env.IDENTITY} + if env.SVC_APP_ID then {appId: env.SVC_APP_ID} else {} end')"
    SVC_TOKEN=$(jq -er .token "$answer")
    echo "::add-mask::$SVC_TOKEN"
}
