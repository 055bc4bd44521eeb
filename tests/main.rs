//! Tests from the view of users: they start the real program and use it over HTTP and the command
//! line.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

mod accounts;
mod admin;
mod announcements;
mod attestations;
mod backups;
mod browsers;
mod buckets;
mod build_quotas;
mod builds;
mod cascades;
mod catalogue;
mod certificates;
mod checkouts;
mod ci_jobs;
mod ci_scripts;
mod clients;
mod clock;
mod command_line;
mod commands;
mod commerce;
mod connections;
mod crashes;
mod credential_uses;
mod credentials;
mod daemons;
mod dashboard;
mod databases;
mod deployments;
mod domains;
mod egress;
mod engines;
mod engines_over_ssh;
mod every_function;
mod examples;
mod fairness;
mod faults;
mod folders;
mod full_disk;
mod full_engine_disk;
mod github;
mod growth;
mod headers;
mod home;
mod host_names;
mod hostile_calls;
mod idempotency;
mod identity;
mod instance_traffic;
mod instances;
mod invitations;
mod journey;
mod killed_nodes;
mod library;
mod limits;
mod lists;
mod mail;
mod market;
mod nodes;
mod openapi;
mod operators;
mod operators_ci;
mod panics;
mod passwords;
mod public_pages;
mod python_client;
mod quotas;
mod readme;
mod registration;
mod rekey;
mod releases;
mod repositories;
mod restores;
mod retention;
mod rollbacks;
mod runners;
mod sessions;
mod ssh;
mod starts;
mod storefront;
mod storefronts;
mod stores;
mod subscriptions;
mod support;
mod tokens;
mod trials;
mod trusted_publishers;
mod upload_access;
mod upload_streams;
mod uploads;
mod webhook_failures;
mod webhooks;
mod wire;
mod wire_credentials;

/// Without its line, the compiler passes a file over, and its tests with it.
#[test]
fn every_file_of_tests_has_its_line_here() {
    let here = include_str!("main.rs");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_module = path.extension().is_some_and(|e| e == "rs") || path.join("mod.rs").exists();
        let line = format!("\nmod {name};\n");
        assert!(!is_module || name == "main" || here.contains(&line), "{name} has no line");
    }
}
