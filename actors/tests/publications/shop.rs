//! A model of a store of apps. Its client looks before it does what must not be done twice, as the
//! real ones do.

use app_stores::{
    Advanced, AnyStore, DesiredState, NextStep, Options, Progress, PublicationOrder, ReadAt,
    RemoteError, StoreKey,
};
use async_trait::async_trait;
use contract::{PublicationId, publishing::Percent, releases::PublicationState as S};
use serde_json::json;
use std::{
    collections::{HashMap, HashSet},
    future::pending,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Check,
    Upload,
    /// The store processes the file.
    Process,
    Submit,
    /// People review the file.
    Review,
    /// The share grows, or users get no more, or get it again.
    Change,
}

pub const STEPS: [Step; 6] =
    [Step::Check, Step::Upload, Step::Process, Step::Submit, Step::Review, Step::Change];

/// How a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    UnclearBefore,
    UnclearAfter,
    Busy,
    PanicsBefore,
    PanicsAfter,
    HangsBefore,
    HangsAfter,
}

/// What users of the store see of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    Live(Option<Percent>),
    Halted,
    Withdrawn,
}

/// A file in the store.
#[derive(Debug, Clone)]
pub struct File {
    pub uploads: u32,
    pub submissions: u32,
    pub shown: Shown,
}

const NEW: File = File { uploads: 0, submissions: 0, shown: Shown::Nothing };

/// A store of apps. Clones are the same one.
#[derive(Clone, Default)]
pub struct Shop(Arc<Mutex<Model>>);

#[derive(Default)]
struct Model {
    /// By build number.
    files: HashMap<String, File>,
    faults: Vec<(Step, Fault)>,
    /// Steps that do not end yet.
    closed: HashSet<Step>,
    under_way: HashSet<PublicationId>,
}

impl Shop {
    /// Lets the next step of this sort fail.
    pub fn inject(&self, step: Step, fault: Fault) {
        self.model().faults.push((step, fault));
    }

    /// Whether every injected fault has happened.
    pub fn has_failed(&self) -> bool {
        self.model().faults.is_empty()
    }

    /// Nothing gets past this step until it is opened.
    pub fn close(&self, step: Step) {
        self.model().closed.insert(step);
    }

    pub fn open(&self, step: Step) {
        self.model().closed.remove(&step);
    }

    /// The file with this build number.
    pub fn file(&self, build: &str) -> File {
        self.model().files.get(build).cloned().unwrap_or(NEW)
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn change(&self, order: &PublicationOrder, change: impl FnOnce(&mut File)) {
        let mut model = self.model();
        change(model.files.entry(order.file.build_number.clone()).or_insert(NEW));
    }

    /// Looks, and then does a step if it is not done.
    async fn perform(&self, step: Step, order: &PublicationOrder) {
        let seen = self.file(&order.file.build_number);
        // Another step of the same publication would see the same here.
        tokio::task::yield_now().await;
        match step {
            Step::Upload if seen.uploads == 0 => self.change(order, |file| file.uploads += 1),
            Step::Submit if seen.submissions == 0 => {
                self.change(order, |file| file.submissions += 1);
            }
            Step::Review => {
                let DesiredState::Released(share) = order.wanted else { return };
                self.change(order, |file| file.shown = Shown::Live(share));
            }
            Step::Change => self.change(order, |file| {
                file.shown = match order.wanted {
                    DesiredState::Released(share) => Shown::Live(share),
                    DesiredState::Halted => Shown::Halted,
                    DesiredState::Withdrawn => Shown::Withdrawn,
                    DesiredState::Restored => Shown::Live(None),
                }
            }),
            _ => {}
        }
    }
}

/// A step that is under way at the store.
struct UnderWay(Shop, PublicationId);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.model().under_way.remove(&self.1);
    }
}

#[async_trait]
impl AnyStore for Shop {
    async fn advance(
        &self,
        key: &StoreKey,
        order: &PublicationOrder,
        content: &dyn ReadAt,
        progress: &Progress,
    ) -> Result<Advanced, RemoteError> {
        assert!(matches!((key, &order.options), (StoreKey::Google(_), Options::GooglePlay(_))));
        assert!(self.model().under_way.insert(order.id), "one step at a time");
        let _under_way = UnderWay(self.clone(), order.id);
        let done = done(progress);
        let step = match order.wanted {
            DesiredState::Released(_) if done < 5 => STEPS[done],
            _ => Step::Change,
        };
        let fault = {
            let mut model = self.model();
            let found = model.faults.iter().position(|(of, _)| *of == step);
            found.map(|at| model.faults.remove(at).1)
        };
        match fault {
            Some(Fault::UnclearBefore) => return Err(RemoteError::Unclear("no answer".into())),
            Some(Fault::Busy) => {
                let after = Duration::from_secs(1);
                return Err(RemoteError::Busy { why: "too many requests".into(), after });
            }
            Some(Fault::PanicsBefore) => panic!("the client of the store has a fault"),
            Some(Fault::HangsBefore) => pending().await,
            _ => {}
        }
        if step == Step::Upload {
            content.read(0, order.file.size).await.unwrap();
        }
        let is_closed = self.model().closed.contains(&step);
        if !is_closed {
            self.perform(step, order).await;
        }
        match fault {
            Some(Fault::UnclearAfter) => return Err(RemoteError::Unclear("no answer".into())),
            Some(Fault::PanicsAfter) => panic!("the client of the store has a fault"),
            Some(Fault::HangsAfter) => pending().await,
            _ => {}
        }
        Ok(advanced(if is_closed { done } else { done + 1 }, order))
    }

    async fn check_access(&self, _: &StoreKey, _: &str) -> Result<String, RemoteError> {
        Ok("The key opens the app.".into())
    }
}

/// How many steps are done.
fn done(progress: &Progress) -> usize {
    let json = serde_json::to_value(progress).unwrap();
    json["googlePlay"]["polls"].as_u64().unwrap_or(0).try_into().unwrap()
}

fn advanced(done: usize, order: &PublicationOrder) -> Advanced {
    let progress = json!({"googlePlay": {"polls": done.min(5)}});
    let (state, next) = match order.wanted {
        DesiredState::Halted | DesiredState::Withdrawn => (S::Halted, NextStep::Done),
        DesiredState::Released(_) | DesiredState::Restored => match done {
            0 => (S::Queued, NextStep::After(Duration::from_millis(200))),
            1 => (S::Uploading, NextStep::Now),
            2 | 3 => (S::Processing, NextStep::After(Duration::from_millis(200))),
            4 => (S::InReview, NextStep::After(Duration::from_millis(200))),
            _ => (S::Live, NextStep::Done),
        },
    };
    Advanced {
        progress: serde_json::from_value(progress).unwrap(),
        state,
        words: None,
        remote_id: None,
        url: None,
        log: vec![],
        error: None,
        next,
    }
}
