//! Organizations, their members and invitations.

mod effects;
mod handlers;
mod mail_limit;
mod memberships;
mod responsible;
mod rules;
mod tenant;

pub(crate) use handlers::is_invited;
pub use mail_limit::MailLimit;
pub use memberships::{Membership, Memberships, MembershipsDelta};
pub use responsible::responsible;
pub use rules::{Command, Invitation, Member, New, Organization, Organizations};
pub use tenant::tenant;
