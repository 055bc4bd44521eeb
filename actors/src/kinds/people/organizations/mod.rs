//! Organizations, their members and invitations.

mod effects;
mod invitations;
mod memberships;
pub(crate) mod rules;

pub use invitations::{INVITATION_LIFETIME, Invitation};
pub use memberships::{Membership, Memberships, MembershipsDelta};
pub use rules::{Command, Member, New, Organization, Organizations};
