//! Ctrl-C.

use std::future::{Future, ready};
use std::io;
use std::pin::pin;

use atoll_sql::ScanProgress;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, interval_at};

use super::stop::Stop;
use crate::progress::{QueryBar, TICK};

/// Interrupts from the terminal. From its creation on, Ctrl-C no longer ends the process.
pub(super) struct Interrupts(Signal);

impl Interrupts {
    #[doc(alias = "SIGINT")]
    pub(super) fn listen() -> io::Result<Self> {
        signal(SignalKind::interrupt()).map(Self)
    }

    /// Waits for the next interrupt.
    pub(super) async fn next(&mut self) {
        // The signal stream never ends.
        self.0.recv().await;
    }

    /// Discards interrupts that came while nothing was running.
    pub(super) async fn forget(&mut self) {
        tokio::select! {
            biased;
            _ = self.0.recv() => {}
            () = ready(()) => {}
        }
    }

    /// Waits for `work` and updates the bar. Ctrl-C drops the work, which cancels a query.
    pub(super) async fn unless<T>(
        &mut self,
        bar: &mut QueryBar,
        progress: Option<&ScanProgress>,
        work: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let mut work = pin!(work);
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        // Work that is always ready would starve the signals.
        tokio::task::yield_now().await;
        loop {
            tokio::select! {
                biased;
                () = self.next() => return Err(Stop::Interrupted),
                done = &mut work => return Ok(done),
                _ = ticks.tick() => bar.tick(progress),
            }
        }
    }
}
