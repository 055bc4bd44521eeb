//! Services of others, such as app stores, payment providers and shops: requests with limits, and
//! what their failures mean. [`ssh`] has the files of the programs of OpenSSH.

#![warn(missing_docs)]

#[cfg(feature = "http")]
mod guarded;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod look_up;
#[cfg(feature = "http")]
mod network;
pub mod ssh;

#[cfg(feature = "http")]
pub use guarded::Guarded;
#[cfg(feature = "http")]
pub use http::{Http, RemoteResponse, Repeat, WITHIN, quotation};
#[cfg(feature = "http")]
pub use look_up::look_up;
#[cfg(feature = "http")]
pub use network::{NoAddress, PrivateHosts, SPECIAL, is_public};

use std::time::Duration;

/// Why a service of somebody else did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The service, or a check before anything was sent, refuses. Another attempt would fail too,
    /// until somebody does what the text says. The text ends with the service's own words and code.
    #[error("{0}")]
    Refused(String),
    /// The service did nothing. Another attempt after this time may succeed.
    #[error("{why}")]
    Busy {
        /// The reason, as a sentence.
        why: String,
        /// The pause that the service asks for, or a usual one.
        after: Duration,
    },
    /// The service did not answer, and may have done it.
    #[error("{0}")]
    Unclear(String),
}
