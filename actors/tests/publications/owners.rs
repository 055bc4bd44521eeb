//! Publications and their releases on a store that fails, and in a process that ends.

use super::{
    shop::{Fault, STEPS, Shop, Shown, Step},
    world::{Scene, a_moment, app, clock, life, publication, release, until},
};
use actors::{
    background::retention::apply,
    kinds::{
        delivery::{
            credentials::{self, Credentials},
            publications::Command,
            releases::{self, Current, Releases},
        },
        people::apps::{self, Apps},
    },
};
use contract::{
    publishing::Percent,
    releases::{PublicationState, ReleaseState},
};
use futures_util::future::join_all;
use std::{path::Path, time::Duration};

/// Runs a test in one life, with an app.
fn run<F: Future<Output = ()>>(test: impl FnOnce(Scene, Shop) -> F) {
    let (folder, clock, shop) = (tempfile::tempdir().unwrap(), clock(), Shop::default());
    life(folder.path(), (&clock, &shop), async |scene| {
        scene.app().await;
        test(scene, shop.clone()).await;
    });
}

/// The store got the n-th file once, and shows it to all users.
fn is_out_once(scene: &Scene, shop: &Shop, n: u128, told: &str) {
    let file = shop.file(&n.to_string());
    assert_eq!((file.uploads, file.submissions), (1, 1), "{told}");
    assert_eq!(file.shown, Shown::Live(None), "{told}");
    let used = scene.uses().into_iter().filter(|(_, by)| *by == publication(n).to_string());
    assert_eq!(used.count(), 1, "{told}: the use of the credential is told once");
}

#[test]
fn a_publication_stands_each_failure_of_its_store() {
    run(|scene, shop| async move {
        let faults = [Fault::UnclearBefore, Fault::UnclearAfter, Fault::Busy];
        let faults = faults.into_iter().chain([Fault::PanicsBefore, Fault::PanicsAfter]);
        let pairs = faults.flat_map(|fault| STEPS.map(|step| (step, fault)));
        let pairs = pairs.filter(|(step, _)| *step != Step::Change);
        for (n, (step, fault)) in (1..).zip(pairs) {
            let told = format!("{step:?} {fault:?}");
            shop.inject(step, fault);
            scene.draft(n).await;
            scene.publish(n, None).await.unwrap();
            scene.comes_to(n, ReleaseState::Published, &told).await;
            assert!(shop.has_failed(), "{told}");
            is_out_once(&scene, &shop, n, &told);
        }
    });
}

#[test]
fn a_publication_may_do_each_step_twice() {
    run(|scene, shop| async move {
        let faults = [Fault::HangsBefore, Fault::HangsAfter];
        let pairs = faults.into_iter().flat_map(|fault| STEPS.map(|step| (step, fault)));
        let pairs = pairs.filter(|(step, _)| *step != Step::Change);
        for (n, (step, fault)) in (1..).zip(pairs) {
            let told = format!("{step:?} {fault:?}");
            shop.inject(step, fault);
            scene.draft(n).await;
            scene.publish(n, None).await.unwrap();
            until(&told, || shop.has_failed()).await;
            a_moment().await;
            scene.restart(n).await;
            scene.comes_to(n, ReleaseState::Published, &told).await;
            is_out_once(&scene, &shop, n, &told);
        }
    });
}

/// The owners are restarted after each of their writes: a different one each time.
#[test]
fn a_restart_after_any_write_changes_nothing() {
    run(|scene, shop| async move {
        for n in 1.. {
            let told = format!("a restart after {n} writes");
            scene.draft(n).await;
            scene.publish(n, None).await.unwrap();
            let is_over = reaches(&scene, n, n).await;
            scene.restart(n).await;
            scene.comes_to(n, ReleaseState::Published, &told).await;
            is_out_once(&scene, &shop, n, &told);
            if is_over {
                assert!(n > 10, "a publication takes more writes");
                return;
            }
        }
    });
}

/// Waits until the records of the n-th release were written so often. True: it was over before.
async fn reaches(scene: &Scene, n: u128, writes: u128) -> bool {
    let mut is_over = false;
    until("it goes on", || {
        let is_out = scene.release(n).is_some_and(|r| r.release.state == ReleaseState::Published);
        is_over = is_out && u128::from(scene.writes(n)) < writes;
        is_over || u128::from(scene.writes(n)) >= writes
    })
    .await;
    is_over
}

#[test]
fn an_end_of_the_process_after_any_write_changes_nothing() {
    for writes in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let is_over = ends_after(folder.path(), writes);
        if is_over {
            assert!(writes > 10, "a publication takes more writes");
            return;
        }
    }
}

fn ends_after(folder: &Path, writes: u128) -> bool {
    let (clock, shop) = (clock(), Shop::default());
    let is_over = life(folder, (&clock, &shop), async |scene| {
        scene.app().await;
        scene.draft(1).await;
        scene.publish(1, None).await.unwrap();
        reaches(&scene, 1, writes).await
    });
    life(folder, (&clock, &shop), async |scene| {
        let told = format!("an end after {writes} writes");
        scene.comes_to(1, ReleaseState::Published, &told).await;
        is_out_once(&scene, &shop, 1, &told);
    });
    is_over
}

#[test]
fn a_staged_rollout_is_halted_rolled_back_and_the_earlier_one_restored() {
    for fault in [None, Some(Fault::UnclearBefore), Some(Fault::UnclearAfter)] {
        run(|scene, shop| async move {
            let told = format!("{fault:?}");
            let inject = || fault.into_iter().for_each(|fault| shop.inject(Step::Change, fault));
            for n in [1, 2] {
                scene.draft(n).await;
                scene.publish(n, (n == 2).then_some(10.0)).await.unwrap();
                scene.comes_to(n, ReleaseState::Published, &told).await;
            }
            scene.comes_to(1, ReleaseState::Superseded, &told).await;
            inject();
            scene.ask(2, Command::Halt).await.unwrap();
            until("it is halted", || shop.file("2").shown == Shown::Halted).await;
            inject();
            roll_back(&scene, 2, 1).await.unwrap();
            scene.comes_to(2, ReleaseState::RolledBack, &told).await;
            scene.comes_to(1, ReleaseState::Published, &told).await;
            assert_eq!(shop.file("2").shown, Shown::Withdrawn, "{told}");
            assert_eq!(shop.file("1").shown, Shown::Live(None), "{told}");
            assert!(shop.has_failed(), "{told}");
        });
    }
}

#[test]
fn what_is_no_longer_among_the_latest_of_its_channel_goes_a_year_after_it_was_published() {
    let (folder, clock, shop) = (tempfile::tempdir().unwrap(), clock(), Shop::default());
    life(folder.path(), (&clock, &shop), async |scene| {
        scene.app().await;
        for n in 1..=22 {
            scene.draft(n).await;
            scene.publish(n, None).await.unwrap();
            scene.comes_to(n, ReleaseState::Published, "at first").await;
        }
        scene.comes_to(21, ReleaseState::Superseded, "at first").await;
        // No user got these, so nobody goes back to them.
        for n in 23..=50 {
            scene.draft(n).await;
        }
        let left = || (1..=22).map(|n| scene.release(n).is_some()).collect::<Vec<_>>();
        for (days, goes) in [(360, false), (10, true)] {
            clock.advance(Duration::from_secs(24 * 3600) * days);
            // A publication goes after its release. The audit log has no archive here, so it stays.
            for _ in 0..2 {
                drop(apply(&scene.0).await);
            }
            assert_eq!(left(), (1..=22).map(|n| n > 2 || !goes).collect::<Vec<_>>());
        }
        until("their publications go", || {
            (1..=22).all(|n| scene.publication(n).is_some() == (n > 2))
        })
        .await;
        roll_back(&scene, 22, 21).await.unwrap();
        scene.comes_to(21, ReleaseState::Published, "it goes back").await;
    });
}

/// Goes back from the n-th release to another.
async fn roll_back(scene: &Scene, n: u128, to: u128) -> Result<(), contract::Fault> {
    let key = Current::key(app(), &"production".parse().unwrap());
    let current = scene.0.store.get::<Current>(&key).unwrap().unwrap();
    let restore = vec![publication(to)];
    let to = scene.0.store.get::<Releases>(&release(to)).unwrap().unwrap();
    let command = releases::Command::RollBack { to, current, restore };
    scene.0.to::<Releases>(release(n)).ask(command).await.map(drop)
}

#[test]
fn sixteen_callers_at_once_lose_no_wish() {
    run(|scene, shop| async move {
        for n in [1, 2] {
            scene.draft(n).await;
            scene.publish(n, (n == 2).then_some(10.0)).await.unwrap();
            scene.comes_to(n, ReleaseState::Published, "at first").await;
        }
        let share = |percent: f64| Command::SetRollout(Percent::try_from(percent).unwrap());
        for round in 0..10 {
            let told = format!("round {round}");
            let callers = (0..16).map(async |caller| match (caller + round) % 4 {
                0 => scene.ask(2, Command::Halt).await,
                1 => scene.ask(2, Command::Resume).await,
                2 => scene.ask(2, share(f64::from(10 + round))).await,
                _ => scene.publish(2, Some(10.0)).await,
            });
            let answers = join_all(callers).await;
            assert!(answers.iter().any(Result::is_ok), "{told}: {answers:?}");
            scene.comes_to(2, ReleaseState::Published, &told).await;
            shows_what_is_wanted(&scene, &shop, &told);
        }
        let callers = (0..16).map(async |caller| match caller % 4 {
            0 => roll_back(&scene, 2, 1).await,
            1 => scene.ask(2, Command::Halt).await,
            2 => scene.ask(2, Command::Resume).await,
            _ => scene.publish(2, None).await,
        });
        let answers = join_all(callers).await;
        let rolled_back = answers.iter().step_by(4).filter(|answer| answer.is_ok()).count();
        assert_eq!(rolled_back, 1, "{answers:?}");
        scene.comes_to(2, ReleaseState::RolledBack, "rolled back").await;
        scene.comes_to(1, ReleaseState::Published, "rolled back").await;
        assert_eq!(shop.file("2").shown, Shown::Withdrawn);
        assert_eq!((shop.file("2").uploads, shop.file("2").submissions), (1, 1));
    });
}

/// The store shows what the publication of the second release was asked for last.
fn shows_what_is_wanted(scene: &Scene, shop: &Shop, told: &str) {
    use app_stores::DesiredState as W;
    let state = scene.publication(2).unwrap();
    let shown = match state.wanted {
        W::Released(share) => Shown::Live(share),
        W::Halted => Shown::Halted,
        W::Withdrawn | W::Restored => panic!("{told}: nobody wanted {:?}", state.wanted),
    };
    assert_eq!(shop.file("2").shown, shown, "{told}");
    assert!(state.at_rest, "{told}");
}

#[test]
fn a_publication_without_its_credential_fails_and_goes_on_with_another() {
    run(|scene, shop| async move {
        let first = owners_credential(&scene);
        shop.close(Step::Process);
        scene.draft(1).await;
        scene.publish(1, None).await.unwrap();
        until("it is sent", || shop.file("1").uploads == 1).await;
        scene.0.to::<Credentials>(first).ask(credentials::Command::Remove).await.unwrap();
        scene.comes_to(1, ReleaseState::Failed, "without a credential").await;
        let error = scene.publication(1).unwrap().publication.error.unwrap();
        assert!(error.contains("svc_setCredential"), "{error}");

        // Another credential, and then another version of it.
        let second = scene.credential().await;
        scene.publish(1, None).await.unwrap();
        let is_used = |times| {
            let uses = scene.uses();
            uses.iter().filter(|(of, _)| *of == second.to_string()).count() == times
        };
        until("the second is used", || is_used(1)).await;
        let replaced = credentials::Command::Replace(Box::new(scene.version(second)));
        scene.0.to::<Credentials>(second).ask(replaced).await.unwrap();
        until("its second version is used", || is_used(2)).await;
        shop.open(Step::Process);
        scene.comes_to(1, ReleaseState::Published, "with another credential").await;
        let file = shop.file("1");
        assert_eq!((file.uploads, file.submissions), (1, 1));
        let by = publication(1).to_string();
        let mut uses = scene.uses();
        uses.sort();
        let mut expected = vec![first, second, second].into_iter().map(|of| of.to_string());
        let mut expected: Vec<_> = expected.by_ref().map(|of| (of, by.clone())).collect();
        expected.sort();
        assert_eq!(uses, expected, "each version is told once");
    });
}

/// Its owner may have an answer before the release knows that the publication has an owner.
#[test]
fn no_report_is_lost_however_fast_the_answer() {
    run(|scene, _| async move {
        let credential = owners_credential(&scene);
        scene.0.to::<Credentials>(credential).ask(credentials::Command::Remove).await.unwrap();
        let all = 1..=60;
        for n in all.clone() {
            scene.draft(n).await;
        }
        join_all(all.clone().map(|n| scene.publish(n, None))).await;
        for n in all {
            scene.comes_to(n, ReleaseState::Failed, &format!("release {n}")).await;
        }
    });
}

fn owners_credential(scene: &Scene) -> contract::CredentialId {
    let under = actors::runtime::entries::Under::<apps::Apps>(app());
    scene.0.store.newest::<credentials::Credentials>(&under, None).next().unwrap().unwrap().0
}

#[test]
fn the_end_of_an_app_ends_its_publications() {
    for step in STEPS.into_iter().filter(|step| *step != Step::Change) {
        run(|scene, shop| async move {
            shop.close(step);
            scene.draft(1).await;
            scene.publish(1, None).await.unwrap();
            until("it is under way", || scene.publication(1).is_some()).await;
            let delete = apps::Command::Delete;
            scene.0.to::<Apps>(app()).ask(delete).await.unwrap();
            let is_gone = || scene.0.store.get::<apps::Apps>(&app()).unwrap().is_none();
            until(&format!("{step:?}: the app goes"), is_gone).await;
            assert_eq!(scene.left(), (0, 0), "{step:?}");
            assert!(scene.release(1).is_none(), "{step:?}");
        });
    }
}

/// The service ended between the end of the release and that of its publications.
#[test]
fn a_publication_whose_release_is_gone_goes_too() {
    run(|scene, shop| async move {
        shop.close(Step::Process);
        scene.draft(1).await;
        scene.publish(1, None).await.unwrap();
        let state = || scene.publication(1).map(|state| state.publication.state);
        until("it is sent", || state() == Some(PublicationState::Processing)).await;
        scene.0.to::<Releases>(release(1)).ask(releases::Command::Remove).await.unwrap();
        shop.open(Step::Process);
        until("it goes", || scene.publication(1).is_none()).await;
    });
}
