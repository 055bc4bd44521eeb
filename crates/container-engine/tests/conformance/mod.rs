//! Tests that every implementation of the port must pass: the model that other tests run on, and
//! the real engine if one answers.

mod bench;
mod connection;
mod containers;
mod disk_use;
mod events;
mod exec;
mod fakes;
mod images;
mod isolated;
mod logs;
mod objects;
mod programs;
mod real;
mod registry;
mod safety;
mod traps;
mod usage;
mod walls;

/// Runs each test once for every engine.
macro_rules! held_to {
    ($($area:ident { $($test:ident),* $(,)? })*) => {
        mod on_fake {
            $(mod $area {
                $(#[test]
                fn $test() {
                    crate::conformance::fakes::run(|bench| Box::pin(crate::conformance::$area::$test(bench)));
                })*
            })*
        }
        mod on_docker {
            $(mod $area {
                $(#[test]
                fn $test() {
                    let name = concat!(stringify!($area), "::", stringify!($test));
                    crate::conformance::real::run(name, |bench| Box::pin(crate::conformance::$area::$test(bench)));
                })*
            })*
        }
    };
}

held_to! {
    objects {
        it_says_what_it_is,
        networks_and_volumes_are_made_once_and_gone_is_fine,
        a_volume_of_somebody_else_is_a_conflict,
        a_network_that_is_used_is_not_removed,
        a_volume_that_is_used_is_not_removed,
        an_inventory_shows_only_ours,
    }
    containers {
        made_twice_is_one,
        another_spec_takes_the_place_of_what_does_not_run,
        a_foreign_name_is_a_conflict,
        started_stopped_and_removed_twice,
        who_ignores_the_request_to_end_is_killed,
        an_exit_code_is_seen,
        what_cannot_be_started_is_refused,
        a_port_is_published_anew_with_every_start,
        health_is_what_its_command_says,
        what_happens_behind_our_back_is_seen,
        a_network_that_was_replaced_is_joined_anew,
        what_is_missing_is_said,
    }
    events {
        nothing_is_missed_between_an_inventory_and_the_events,
        health_is_told,
    }
    logs {
        lines_come_with_their_stream_and_in_order,
        the_last_lines_of_one_stream,
        only_what_came_since,
    }
    exec {
        an_exit_code_comes_last,
        what_cannot_be_run_fails,
        streams_are_told_apart,
        it_gets_its_environment,
        much_output_arrives_whole,
        input_goes_through_byte_for_byte,
        input_may_be_left_unread,
        a_container_that_ends_cuts_it_off,
        its_time_is_limited,
        dropping_it_ends_it,
    }
    usage {
        two_samples_make_a_rate,
        what_does_not_run_uses_nothing,
    }
    disk_use {
        what_is_written_is_counted_until_it_is_removed,
        without_volumes_and_containers_there_is_nothing,
    }
    images {
        a_build_says_what_it_does_and_makes_an_image,
        a_build_that_fails_says_why,
        an_image_is_found_by_label_and_removed,
        a_missing_image_is_said,
        what_is_pushed_can_be_resolved_and_pulled,
        a_registry_lets_in_who_has_a_login,
    }
}
