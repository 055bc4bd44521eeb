//! The kinds of faults, each with its code, its HTTP status and its meaning. All documents read
//! them here.

macro_rules! faults {
    ($($kind:ident $code:literal $status:literal $when:literal;)+) => {
        /// The kinds of faults. Declarations of functions name them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each row says when it is answered")]
        pub enum FaultKind { $($kind),+ }

        impl FaultKind {
            /// All kinds, sorted by code and status.
            pub const ALL: &[FaultKind] = &[$(FaultKind::$kind),+];

            const fn row(self) -> (u16, u16, &'static str) {
                match self { $(FaultKind::$kind => ($code, $status, $when)),+ }
            }
        }
    };
}

faults! {
    Unavailable 100 503 "an upstream is unreachable, or the service is busy; nothing was done, retry after `Retry-After`";
    NoAnswer 100 424 "an upstream did not answer in time; the call may have been executed, so read the object before a retry";
    NotFound 101 404 "the object does not exist, or the caller may not see it";
    BadCredentials 101 404 "wrong e-mail or password";
    Unauthenticated 119 401 "no or invalid application id, session, token or key";
    NotNow 119 409 "the state of the object does not allow the call";
    OverQuota 119 409 "a quota of the organization is used up; see `svc_getUsage`";
    Exists 137 409 "another object has this unique value";
    UnknownFunction 141 400 "no function has this name";
    CalledFailed 141 400 "the cloud function that was called failed";
    Refused 141 400 "a payment provider or a shop refused";
    Uncertain 141 424 "an internal error; the call may have been executed, so read the object before a retry";
    Internal 141 500 "an internal error; nothing was done";
    Invalid 142 400 "a parameter is missing, unknown or invalid";
    Method 142 405 "the path is not served with this HTTP method";
    RequestTimeout 142 408 "the request did not arrive in time";
    TooLarge 142 413 "the body is larger than the limit";
    ContentType 142 415 "the content type is not JSON";
    RangeOutside 142 416 "the range lies outside the file";
    NotAsDeclared 142 422 "the uploaded bytes are not as declared";
    UsernameTaken 202 400 "another account has this user name; only session routes use this code";
    InvalidSession 209 400 "the session is invalid; only session routes use this code";
    Forbidden 403 403 "the caller may see the object, but lacks the role or the scope";
    RateLimited 429 429 "too many requests; retry after `Retry-After`";
}

impl FaultKind {
    /// The code in the body, which tells clients the kind of fault.
    pub const fn code(self) -> u16 {
        self.row().0
    }

    /// The HTTP status of the answer.
    pub const fn status(self) -> u16 {
        self.row().1
    }

    /// When a call gets this fault.
    pub const fn when(self) -> &'static str {
        self.row().2
    }
}
