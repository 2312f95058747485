//! Cancellation: requested once, honoured by every task at its next block.

use tokio_util::sync::CancellationToken;

/// Work ended early because it was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// A flag that is raised once and never lowered. Clones share it; raising a parent raises its children,
/// but not the other way round.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(CancellationToken);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag, here and in every child. Raising it again has no effect.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether the flag is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// `Err` once the flag is raised: `token.check()?` before each block.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// A token that is raised with this one and can be raised alone.
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Raises the flag when it is dropped.
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    /// Waits until the flag is raised: a task that may wait forever waits for this as well.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}

/// Held while something waits for some work: the work's token is raised when this is dropped, also while a
/// step of the work is under way on another thread.
#[derive(Debug)]
pub struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
