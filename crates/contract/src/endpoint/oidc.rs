//! The exchange of identity tokens of CI jobs.

use crate::trusted_publishers::{ExchangedToken, IdentityExchange};

endpoints! {
    group KeylessCi "Keyless CI";

    /// Exchange the identity token of a CI job for a deploy token.
    ///
    /// The app must have a trusted publisher that matches the job, or the job must be one that the
    /// service began for a build in the operator's repository. An identity token can be exchanged
    /// once.
    "exchangeIdentity": Post "/api/v1/oidc/exchange" => ExchangeIdentity {} -> ExchangedToken
    {
        body: IdentityExchange,
        who: Public,
        effect: Change,
        secret: true,
        done: "The deploy token.",
        errors: [
            Invalid "neither `appId` nor the audience names the app",
            Unauthenticated "the identity token is not valid, was exchanged before, or the app does not trust the job",
            Unavailable "the issuer of the token does not answer",
        ],
    }
}
