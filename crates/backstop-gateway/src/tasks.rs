//! Tasks of one thread's way to a dependency or a cache, which outlive whoever begins them.

use std::pin::Pin;

use tokio::sync::mpsc;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Hands tasks to the thread that drives them.
#[derive(Debug)]
pub(crate) struct Tasks(mpsc::UnboundedSender<Task>);

impl Tasks {
    /// Those of the present thread, which drives them for as long as its local set runs.
    ///
    /// # Panics
    /// Outside a [`LocalSet`](tokio::task::LocalSet) or a local runtime, as [`tokio::task::spawn_local`] does.
    pub(crate) fn of_this_thread() -> Self {
        let (tasks, mut received) = mpsc::unbounded_channel::<Task>();
        tokio::task::spawn_local(async move {
            while let Some(task) = received.recv().await {
                tokio::task::spawn_local(task);
            }
        });
        Self(tasks)
    }

    /// Has a task driven. Once the thread drives nothing any more, the task is dropped; so this may be called from a
    /// destructor, where [`tokio::task::spawn_local`] might panic.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let _dropped_if_stopped = self.0.send(Box::pin(task));
    }
}
