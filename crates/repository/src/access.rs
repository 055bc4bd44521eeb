//! How git gets the token of a private repository.

use contract::text::AccessToken;
use data_encoding::BASE64;

/// The user name that goes with a token. Bitbucket wants this one; the other hosts take any.
const USER: &str = "x-token-auth";

/// The variables of the environment with which git sends the token. Unlike arguments, the
/// environment is not visible to other users.
pub fn git_environment(token: &AccessToken) -> [(&'static str, String); 3] {
    let basic = BASE64.encode(format!("{USER}:{}", token.as_str()).as_bytes());
    [
        ("GIT_CONFIG_COUNT", "1".to_owned()),
        ("GIT_CONFIG_KEY_0", "http.extraHeader".to_owned()),
        ("GIT_CONFIG_VALUE_0", format!("Authorization: Basic {basic}")),
    ]
}
