//! Streams that a task fills.

use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use std::future::Future;
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::AbortHandle,
};

/// A stream of the items that `work` sends. Dropping the stream aborts `work`, which waits while an
/// item is not taken.
pub(super) fn produce<T, F>(work: impl FnOnce(Sender<T>) -> F) -> BoxStream<'static, T>
where
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = channel(1);
    let task = Task(tokio::spawn(work(sender)).abort_handle());
    stream::unfold((receiver, task), |(mut receiver, task): (Receiver<T>, Task)| async {
        receiver.recv().await.map(|item| (item, (receiver, task)))
    })
    .boxed()
}

struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
