//! Everything that tenants can make grow has a limit, and a test that drives it there.

use std::{collections::BTreeSet, fs, path::Path};

/// The rows of the tables in docs/OPERATING.md, and the test that drives each of them to its limit.
const DRIVEN: &[(&str, &str, &str)] = &[
    ("organizations", "tests/quotas.rs", HOLDS),
    ("projects", "tests/quotas.rs", HOLDS),
    ("apps", "tests/quotas.rs", HOLDS),
    ("members", "tests/quotas.rs", HOLDS),
    ("mails", "tests/quotas.rs", HOLDS),
    ("webhooks", "tests/limits.rs", AT_MOST),
    ("domains", "tests/build_quotas.rs", "domains_and_builds_under_way_are_limited"),
    ("instances", "tests/quotas.rs", COUNT),
    ("instanceMemory", "tests/quotas.rs", MEMORY),
    ("instanceCpus", "tests/quotas.rs", MEMORY),
    (
        "instanceDisk",
        "tests/quotas.rs",
        "an_instance_that_holds_too_much_on_the_disk_is_stopped_and_loses_nothing",
    ),
    ("builds", "tests/build_quotas.rs", "domains_and_builds_under_way_are_limited"),
    (
        "buildMinutes",
        "tests/build_quotas.rs",
        "a_build_begins_only_where_minutes_and_room_for_its_image_are_left",
    ),
    (
        "imageBytes",
        "tests/build_quotas.rs",
        "a_build_begins_only_where_minutes_and_room_for_its_image_are_left",
    ),
    (
        "logBytes",
        "tests/build_quotas.rs",
        "a_build_goes_on_where_the_organization_has_no_room_for_its_log",
    ),
    ("openUploads", "tests/quotas.rs", UPLOADS),
    ("artifactBytes", "tests/quotas.rs", UPLOADS),
    ("backups", "tests/quotas.rs", COUNT),
    ("backupBytes", "tests/quotas.rs", COUNT),
    (
        "calls of an account",
        "tests/limits.rs",
        "a_free_account_makes_sixty_calls_a_minute_however_it_signs_in",
    ),
    (
        "calls without an account, also registrations",
        "tests/limits.rs",
        "callers_without_an_account_are_counted_by_their_address",
    ),
    (
        "sessions of a user",
        "tests/limits.rs",
        "a_user_makes_three_organizations_and_keeps_a_hundred_sessions",
    ),
    (
        "failed sign-ins for one e-mail",
        "tests/accounts.rs",
        "ten_failures_lock_an_address_out_and_ten_more_all_that_are_new",
    ),
    ("organizations that a user is a member of", "tests/limits.rs", MEMBERSHIPS),
    ("uploads of one app that are open", "tests/limits.rs", MEMBERSHIPS),
    (
        "log of a build of an app",
        "actors/tests/builds/mod.rs",
        "a_log_of_an_attempt_has_sixteen_mebibytes",
    ),
    (
        "log of a deployment, or of a build of an image",
        "actors/src/kinds/hosting/image_builds/from_source.rs",
        "a_log_has_ten_thousand_lines_and_four_mebibytes_and_says_that_it_was_cut",
    ),
    (
        "disks that builds leave, and copies of the images that they stand on",
        "crates/container-engine/tests/conformance/isolated.rs",
        "the_newest_disks_and_base_images_of_earlier_builds_are_kept",
    ),
    (
        "logs of a container",
        "crates/container-engine/tests/conformance/safety.rs",
        "a_container_that_logs_without_end_keeps_thirty_megabytes",
    ),
    (
        "metrics of an instance",
        "actors/src/kinds/hosting/instances/metrics.rs",
        "samples_stay_for_a_day_and_the_hour_in_which_they_were_taken",
    ),
    (
        "invitations to one e-mail",
        "tests/invitations.rs",
        "a_recipient_is_invited_three_times_an_hour",
    ),
    (
        "invitations of an organization that are pending",
        "actors/src/kinds/people/organizations/rules.rs",
        "an_organization_has_at_most_200_pending_invitations",
    ),
    (
        "mails to one recipient",
        "src/adapters/mail.rs",
        "a_recipient_gets_twenty_mails_an_hour_and_others_get_theirs",
    ),
    (
        "password resets of an account",
        "tests/passwords.rs",
        "at_most_three_mails_an_hour_and_each_token_holds",
    ),
    (
        "deploy tokens that can be used",
        "tests/tokens.rs",
        "a_hundred_tokens_of_a_person_and_of_an_app_can_be_used",
    ),
    ("credentials of an app", "tests/limits.rs", AT_MOST),
    ("trusted publishers of an app", "tests/limits.rs", AT_MOST),
    (
        "channels with releases, and drafts, of an app",
        "tests/releases.rs",
        "an_app_has_releases_in_a_hundred_channels_and_a_hundred_drafts",
    ),
    (
        "notes of a release, in all languages",
        "actors/src/kinds/delivery/releases/notes.rs",
        "the_notes_of_all_languages_have_at_most_64_kib_together",
    ),
    (
        "releases that hold one artifact",
        "actors/src/kinds/delivery/artifacts/artifact_refs.rs",
        "a_hundred_releases_hold_an_artifact_and_each_can_let_it_go",
    ),
    (
        "subscriptions that no provider confirmed",
        "actors/src/kinds/commerce/subscriptions/rules.rs",
        "a_subscription_that_the_provider_never_confirmed_goes_after_a_day",
    ),
    (
        "deliveries of an organization to webhooks that have not ended",
        "actors/tests/webhooks/fairness.rs",
        "an_organization_with_too_many_waiting_deliveries_loses_its_newest",
    ),
    (
        "notices of payment providers for one app",
        "tests/checkouts.rs",
        "six_hundred_notices_a_minute_are_taken_and_a_later_one_again",
    ),
    (
        "command of a build",
        "crates/repository/tests/checks.rs",
        "a_command_has_at_most_10_000_characters_and_a_path_1_000",
    ),
    (
        "variables of one service of an instance",
        "crates/contract/src/env.rs",
        "the_variables_of_a_service_have_at_most_128_kib_together",
    ),
    ("bytes of an upload without a declared size", "tests/quotas.rs", UPLOADS),
    (
        "archives of folders of an app",
        "src/adapters/folders.rs",
        "an_archive_is_kept_for_a_day_and_the_last_ones_of_an_app",
    ),
    ("a dump that is being written", "src/adapters/dumps/tests.rs", DUMP),
    (
        "backups of an app that failed, without those of schedules",
        "tests/backups.rs",
        "a_database_without_its_tools_makes_no_backup",
    ),
    ("schedules of a database", "tests/backups.rs", "a_database_has_one_schedule"),
    (
        "images that deployments built, where `imageBytes` is used up",
        "actors/tests/owners/image_gc.rs",
        "images_that_serve_no_longer_go_where_there_is_no_room_for_more",
    ),
    (
        "networks of containers",
        "actors/tests/owners/instances.rs",
        "an_instance_without_room_for_its_network_says_so_and_starts_when_there_is_room",
    ),
    ("a JSON body", "tests/wire.rs", "a_body_is_json_of_a_bounded_size_and_depth"),
    (
        "memory for what arrives",
        "tests/connections.rs",
        "who_announces_bodies_and_sends_none_keeps_nobody_out",
    ),
    (
        "connections of one address",
        "tests/connections.rs",
        "one_address_does_not_take_all_connections",
    ),
];

const HOLDS: &str = "what_an_organization_may_have_holds_for_sixteen_callers_and_after_a_crash";
const AT_MOST: &str =
    "what_an_app_or_an_organization_may_have_at_most_holds_for_sixteen_callers_at_once";
const MEMBERSHIPS: &str =
    "five_hundred_memberships_and_a_hundred_open_uploads_hold_for_sixteen_callers_at_once";
const MEMORY: &str = "memory_and_processors_of_instances_hold_for_sixteen_callers";
const COUNT: &str = "instances_count_their_services_and_backups_their_bytes";
const UPLOADS: &str = "uploads_count_what_they_declare_or_what_arrives";
const DUMP: &str = "a_dump_is_there_once_it_is_kept_and_read_back_as_it_was";

/// The first cells of the rows of a table.
fn rows(section: &str) -> impl Iterator<Item = String> {
    let page = include_str!("../docs/OPERATING.md");
    let part = page.split(section).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = part.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let what = |row: &str| row.trim_matches('|').split(" | ").next().unwrap().trim().to_owned();
    rows.map(what).collect::<Vec<_>>().into_iter()
}

#[test]
fn a_test_drives_each_row_of_what_tenants_can_make_grow_to_its_limit() {
    let quotas = rows("\n## Quotas\n").map(|quota| quota.trim_matches('`').to_owned());
    let grow: BTreeSet<String> = quotas.chain(rows("\n## What tenants can make grow\n")).collect();
    let driven: BTreeSet<String> = DRIVEN.iter().map(|(what, ..)| (*what).to_owned()).collect();
    assert_eq!(grow, driven, "left: the rows of docs/OPERATING.md; right: those that tests drive");
    for (what, file, test) in DRIVEN {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let code = fs::read_to_string(&path).unwrap();
        let is_there = code.split("test]\n").skip(1).any(|after| {
            let signature = after.trim_start().trim_start_matches("async ");
            signature.starts_with(&format!("fn {test}("))
        });
        assert!(is_there, "{what}: {file} has no test {test}");
    }
}
