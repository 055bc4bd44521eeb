//! A client of `svc`.
//!
//! The type of a function's parameters is the function: [`Client::call`] takes each of them that
//! [`contract`] declares, and gives the declared reply.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use svc_client::contract::{authentication::LoginWithEmail, projects::CreateProject};
//! use svc_client::{Client, Kind};
//!
//! let mut svc = Client::builder("https://svc.example.com/backend").application_id("…").build()?;
//! let password = "correct horse".parse()?;
//! svc.login_with_email(&LoginWithEmail { email: "ada@example.com".into(), password }).await?;
//!
//! let shop = CreateProject { name: "Shop".parse()?, organization_id: None, description: None };
//! match svc.call(&shop).await {
//!     Ok(project) => println!("made {}", project.id),
//!     Err(error) if error.code() == Some(142) => println!("invalid: {:?}", error.details()),
//!     Err(error) if error.kind == Kind::Unclear => {
//!         // It may have been made. With the same key, it is made once.
//!         let key = error.idempotency_key.unwrap_or_default();
//!         println!("made {}", svc.call_once(&key, &shop).await?.id);
//!     }
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A call is repeated, with growing pauses, after a failed connection and the statuses 408, 500 and
//! 502 to 504, for three attempts or the client's own [`Patience`]. It is never repeated after a
//! refusal, and after a rate limit (429) only if the patience says so. A change has the same
//! idempotency key in all attempts, so the service makes it once.

#![warn(missing_docs)]

mod answer;
mod client;
mod error;
mod retry;
mod settings;

pub use answer::{Response, send};
pub use client::Client;
pub use contract;
pub use error::{Error, Kind};
pub use retry::{Patience, varied};
pub use settings::{BuildError, Builder};
