//! The model's streams.

use super::{
    Fake,
    model::connection_refused,
    script::{Ending, ProgramStep, Script},
};
use crate::{EngineError, Event, Output};
use bytes::Bytes;
use futures_core::stream::BoxStream;
use futures_util::{
    StreamExt,
    future::{self, Either, select},
    stream,
};
use std::{collections::VecDeque, pin::pin};
use tokio::sync::{mpsc::UnboundedReceiver, watch};

type Out = Result<Output, EngineError>;

/// The earlier events, then new ones as they happen.
pub(super) fn events(
    before: Vec<Event>,
    from_now: UnboundedReceiver<Result<Event, EngineError>>,
) -> BoxStream<'static, Result<Event, EngineError>> {
    let from_now = stream::unfold(from_now, |mut events| async {
        events.recv().await.map(|event| (event, events))
    });
    stream::iter(before.into_iter().map(Ok)).chain(from_now).boxed()
}

pub(super) struct Play {
    pub fake: Fake,
    /// The index of its execution.
    pub at: usize,
    pub steps: VecDeque<ProgramStep>,
    pub input: Option<BoxStream<'static, Bytes>>,
    pub endings: watch::Receiver<u64>,
    pub is_over: bool,
}

impl Play {
    pub fn new(
        fake: Fake,
        at: usize,
        script: Script,
        input: Option<BoxStream<'static, Bytes>>,
        mut endings: watch::Receiver<u64>,
    ) -> Play {
        endings.mark_unchanged();
        Play { fake, at, steps: script.into(), input, endings, is_over: false }
    }

    pub fn output(self) -> BoxStream<'static, Out> {
        stream::unfold(self, |mut play| async {
            let item = play.next().await?;
            Some((item, play))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Out> {
        if self.is_over {
            return None;
        }
        loop {
            if self.endings.has_changed().unwrap_or(true) {
                return Some(self.cut_off());
            }
            match self.steps.pop_front().unwrap_or(ProgramStep::Exit(0)) {
                ProgramStep::Out(bytes) => return Some(Ok(Output::Out(bytes))),
                ProgramStep::Err(bytes) => return Some(Ok(Output::Err(bytes))),
                ProgramStep::Read => while self.read().await.is_some() {},
                ProgramStep::Echo => {
                    if let Some(bytes) = self.read().await {
                        self.steps.push_front(ProgramStep::Echo);
                        return Some(Ok(Output::Out(bytes)));
                    }
                }
                ProgramStep::Wait => {
                    let _ = self.endings.changed().await;
                    return Some(self.cut_off());
                }
                ProgramStep::Exit(code) => {
                    self.end(Ending::Exit(code));
                    return Some(Ok(Output::Exit(code)));
                }
                ProgramStep::CutOff => return Some(self.cut_off()),
            }
        }
    }

    /// The next input. `None`: the input or the container has ended.
    async fn read(&mut self) -> Option<Bytes> {
        let input = self.input.as_mut()?;
        let mut endings = self.endings.clone();
        let bytes = match select(input.next(), pin!(endings.changed())).await {
            Either::Left((bytes, _)) => bytes?,
            Either::Right(_) => return None,
        };
        self.fake.with(|model| {
            if let Some(execution) = model.executions.get_mut(self.at) {
                execution.input.extend_from_slice(&bytes);
            }
        });
        Some(bytes)
    }

    fn cut_off(&mut self) -> Out {
        self.end(Ending::CutOff);
        Err(match self.fake.with(|model| model.is_unreachable) {
            true => connection_refused(),
            false => EngineError::Unreachable("the program was cut off".to_owned()),
        })
    }

    fn end(&mut self, ending: Ending) {
        self.is_over = true;
        self.fake.with(|model| {
            if let Some(execution) = model.executions.get_mut(self.at) {
                execution.ending = Some(ending);
            }
        });
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Ending::Dropped);
        }
    }
}

pub(super) fn at_once<T: Send + 'static>(items: Vec<T>) -> BoxStream<'static, T> {
    stream::iter(items).boxed()
}

pub(super) async fn never<T>() -> T {
    future::pending().await
}
