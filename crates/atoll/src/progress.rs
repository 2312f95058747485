//! Progress bars, on stderr and only if that is a terminal.

use std::time::Duration;

use atoll_sql::ScanProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A query shorter than this shows no bar.
const DELAY: Duration = Duration::from_secs(1);
/// Time between two updates.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The bar of one query, which appears once the query takes long.
pub(crate) struct QueryBar {
    bar: Option<ProgressBar>,
    is_wanted: bool,
    ticks: u32,
}

impl QueryBar {
    /// None before the bar appears, and always if it is not wanted.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { bar: None, is_wanted, ticks: 0 }
    }

    /// Call this once each [`TICK`].
    pub(crate) fn tick(&mut self, progress: Option<&ScanProgress>) {
        self.ticks += 1;
        if !self.is_wanted || TICK * self.ticks < DELAY {
            return;
        }
        let (read, total) = progress.map_or((0, 0), ScanProgress::rows);
        let elapsed = TICK * self.ticks;
        let bar = self.bar.get_or_insert_with(|| rows_bar().with_elapsed(elapsed));
        if total > 0 {
            bar.set_style(style("{elapsed:>4} {bar:30} {percent:>3} % of rows read, {eta} left"));
            bar.set_length(total);
            bar.set_position(read.min(total));
        }
        bar.tick();
    }

    /// Hides the bar; it may come back.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Removes the bar for good, because rows are being written.
    pub(crate) fn end(&mut self) {
        self.clear();
        self.is_wanted = false;
    }
}

fn rows_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style("{elapsed:>4} {spinner} running"));
    bar
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants in this file.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The bar of a load in several parts, which appears at once.
pub(crate) struct LoadBar(ProgressBar);

impl LoadBar {
    /// A bar of `parts` parts; hidden unless wanted.
    pub(crate) fn new(parts: usize, is_wanted: bool) -> Self {
        let target = match is_wanted {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(parts as u64), target);
        bar.set_style(style("{elapsed:>4} {bar:30} {pos}/{len} {msg}"));
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Completes a part and shows `message`.
    pub(crate) fn done(&self, message: String) {
        self.0.set_message(message);
        self.0.inc(1);
    }
}

impl Drop for LoadBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
