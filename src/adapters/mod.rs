//! Implementations of the platform's ports.

pub mod acme;
pub mod archive;
pub mod attestations;
pub mod audit_archive;
pub mod binaries;
pub mod clock;
pub mod credential_files;
pub mod domain_records;
pub mod dumps;
pub mod egress;
pub mod engines;
pub mod folders;
pub mod git;
pub mod github;
pub mod machine;
pub mod mail;
pub mod objects;
pub mod oidc;
pub mod parse;
pub mod passwords;
pub mod receivers;
pub mod recipes;
pub mod registries;
pub mod scratch;
pub mod servers;
