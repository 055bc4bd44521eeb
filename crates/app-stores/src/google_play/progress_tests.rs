use super::{
    super::{restoral, withdrawal},
    *,
};
use crate::Action;
use serde_json::json;

fn percent(percent: u16) -> Percent {
    Percent::of_hundredths(percent * 100).unwrap()
}

fn wish(wanted: DesiredState) -> Wish {
    Wish { wanted, draft: false }
}

fn shown(status: Status, share: Option<u16>) -> Option<Shown> {
    Some(Shown { status, share: share.map(percent) })
}

fn found(has_file: bool) -> EditFindings {
    EditFindings { has_file, language: None, replaces: None, shown: None }
}

fn editing(found: Option<EditFindings>, upload: bool, changed: Option<Goal>) -> PlayProgress {
    let upload = upload
        .then(|| ResumableUpload { session: UploadAddress("https://secret".into()), sent: 0 });
    let edit = Edit { id: "1".into(), found, upload, changed };
    PlayProgress { edit: Some(edit), ..PlayProgress::default() }
}

/// Every combination of what a track and a review can show.
fn all_shown() -> Vec<PlayProgress> {
    use Status::{Completed, Draft, Halted, InProgress, Unspecified};
    let mut all = vec![
        PlayProgress::default(),
        PlayProgress { is_superseded: true, ..PlayProgress::default() },
    ];
    let replaced: TrackRelease =
        serde_json::from_value(json!({"versionCodes": ["41"], "status": "completed"})).unwrap();
    for status in [Draft, InProgress, Halted, Completed, Unspecified] {
        for lifecycle in [
            None,
            Some(Lifecycle::NotSent),
            Some(Lifecycle::InReview),
            Some(Lifecycle::Approved),
            Some(Lifecycle::NotApproved),
            Some(Lifecycle::Published),
        ] {
            for (was_published, replaced) in
                [(false, None), (true, None), (true, Some(replaced.clone()))]
            {
                let share = (status == InProgress).then_some(10);
                let mut p =
                    PlayProgress { lifecycle, was_published, replaced, ..PlayProgress::default() };
                p.show(shown(status, share));
                all.push(p);
            }
        }
    }
    all
}

#[test]
fn each_step_follows_from_what_is_there() {
    let staged = Goal::Staged(percent(10));
    let released = wish(DesiredState::Released(Some(percent(10))));
    let done = PlayProgress { done: Some(released), ..PlayProgress::default() };
    let table = [
        (PlayProgress::default(), PlayStep::Open),
        (editing(None, false, None), PlayStep::Check),
        (editing(Some(found(false)), false, None), PlayStep::Begin),
        (editing(Some(found(false)), true, None), PlayStep::Send),
        (editing(Some(found(true)), false, None), PlayStep::Change(staged)),
        (editing(Some(found(true)), false, Some(Goal::Completed)), PlayStep::Change(staged)),
        (editing(Some(found(true)), false, Some(staged)), PlayStep::Commit(staged)),
        (done.clone(), PlayStep::Follow),
        (PlayProgress { is_in_doubt: true, ..done }, PlayStep::Open),
    ];
    for (progress, step) in table {
        assert_eq!(next(released, &progress), step, "{progress:?}");
    }
}

/// What was not sent is undone without Google, and what Google shows already is not done again.
#[test]
fn what_needs_no_change_changes_nothing() {
    for wanted in [DesiredState::Halted, DesiredState::Withdrawn, DesiredState::Restored] {
        assert_eq!(next(wish(wanted), &PlayProgress::default()), PlayStep::Finish, "{wanted:?}");
        let open = editing(Some(found(true)), false, Some(Goal::Completed));
        assert_eq!(next(wish(wanted), &open), PlayStep::Close, "{wanted:?}");
    }
    let mut there = editing(Some(found(true)), false, None);
    there.show(shown(Status::Completed, None));
    assert_eq!(next(wish(DesiredState::Released(None)), &there), PlayStep::Close);
}

/// The plan says what the step does, whatever Google shows.
#[test]
fn plans_and_goals_agree() {
    for p in all_shown() {
        let goal_of = |wanted| goal(wish(wanted), &p);
        let plan = withdrawal(&p);
        match goal_of(DesiredState::Withdrawn) {
            Some(Goal::Halted) => assert_eq!(plan.action, Action::Halt, "{p:?}"),
            Some(Goal::Removed) => {
                assert!(matches!(plan.action, Action::CancelReview | Action::Delete), "{p:?}");
            }
            Some(goal) => panic!("{goal:?} for {p:?}"),
            None => assert!(matches!(plan.action, Action::Nothing | Action::Abandon), "{p:?}"),
        }
        let plan = restoral(&p);
        match goal_of(DesiredState::Restored) {
            Some(goal) => {
                assert_eq!(Some(goal), p.released, "{p:?}");
                assert_eq!(plan.action, Action::Redistribute, "{p:?}");
            }
            None => assert_eq!(plan.action, Action::Nothing, "{p:?}"),
        }
    }
}

/// After each change, nothing is left of the goal that led to it.
#[test]
fn a_change_reaches_its_goal() {
    let wishes = [
        DesiredState::Released(None),
        DesiredState::Released(Some(percent(10))),
        DesiredState::Halted,
        DesiredState::Withdrawn,
        DesiredState::Restored,
    ];
    for p in all_shown() {
        for wanted in wishes {
            let Some(reached) = goal(wish(wanted), &p) else { continue };
            let mut after = p.clone();
            after.committed(reached, wish(wanted));
            assert_eq!(goal(wish(wanted), &after), None, "{wanted:?} {p:?}");
            assert_eq!(next(wish(wanted), &after), PlayStep::Follow, "{wanted:?} {p:?}");
        }
    }
}

/// An edit that ended while it held a change may have been committed: the track is looked at before
/// anything else, even if the publication is withdrawn meanwhile.
#[test]
fn a_doubt_is_ended_first() {
    for wanted in [
        DesiredState::Released(None),
        DesiredState::Halted,
        DesiredState::Withdrawn,
        DesiredState::Restored,
    ] {
        let mut p = editing(Some(found(true)), false, Some(Goal::Completed));
        p.edit_is_gone();
        assert_eq!(next(wish(wanted), &p), PlayStep::Open, "{wanted:?}");
        p.edit = editing(None, false, None).edit;
        assert_eq!(next(wish(wanted), &p), PlayStep::Check, "{wanted:?}");
        p.checked(EditFindings { shown: shown(Status::Completed, None), ..found(true) });
        assert!(!p.is_in_doubt);
        let mut p = editing(Some(found(true)), true, None);
        p.edit_is_gone();
        assert!(!p.is_in_doubt, "nothing can have been committed");
    }
}

#[test]
fn states_and_pauses_follow_the_review() {
    use PublicationState as State;
    let released = DesiredState::Released(None);
    let mut p = PlayProgress::default();
    assert_eq!(p.state(released), State::Uploading);
    p.show(shown(Status::Completed, None));
    assert_eq!(p.state(released), State::Processing);
    let table = [
        (Lifecycle::InReview, State::InReview, Some(30)),
        (Lifecycle::InReview, State::InReview, Some(60)),
        (Lifecycle::Approved, State::InReview, Some(30)),
        (Lifecycle::NotSent, State::Processing, Some(1800)),
        (Lifecycle::NotApproved, State::Failed, None),
        (Lifecycle::Published, State::Live, None),
    ];
    for (lifecycle, state, pause) in table {
        p.listed(Some(lifecycle));
        assert_eq!(p.state(released), state, "{lifecycle:?}");
        assert_eq!(p.pause(), pause.map(Duration::from_secs), "{lifecycle:?}");
    }
    p.show(None);
    assert!(p.is_superseded);
    assert_eq!(p.state(released), State::Live);
    assert_eq!(growing(100), Duration::from_secs(600));
}

#[test]
fn debug_output_does_not_tell_where_to_upload() {
    let progress = editing(None, true, None);
    assert!(!format!("{progress:?}").contains("secret"));
}
