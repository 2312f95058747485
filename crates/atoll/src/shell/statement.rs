//! Runs one statement, and shows its result.

use std::time::{Duration, Instant};

use atoll_sql::{Notification, QueryResult, TransactionState};

use super::Shell;
use super::copied::{CopiedRows, CopyThrough};
use super::stop::Stop;
use crate::progress::QueryBar;
use atoll_tools::terminal;

impl Shell {
    /// Runs a statement that starts on `line` of its source.
    pub(super) async fn run_statement(&mut self, text: &str, line: u64) -> Result<(), Stop> {
        if self.settings.echo {
            terminal::say(text);
        }
        self.run_told(text, line).await
    }

    /// Runs a `COPY … FROM STDIN` with its rows.
    pub(super) async fn copy_in(
        &mut self,
        text: &str,
        line: u64,
        rows: &CopiedRows,
    ) -> Result<(), Stop> {
        if self.settings.echo {
            terminal::say(text);
        }
        let copied = atoll_sql::copy_from_file(text, rows.file());
        let done = self.run_told(copied.as_deref().unwrap_or(text), line).await;
        done.map_err(|stop| stop.naming(&rows.file().display().to_string(), "STDIN"))
    }

    async fn run_told(&mut self, text: &str, line: u64) -> Result<(), Stop> {
        let started = Instant::now();
        let through = CopyThrough::parse(text)?;
        let text = through.as_ref().map_or(text, |through| through.text.as_str());
        let (text, above) = self.settings.explained(text);
        let mut bar = QueryBar::new(self.settings.progress);
        let running = self.session.run(&text);
        let result = self.interrupts.unless(&mut bar, None, running).await;
        let done = match result {
            Ok(Ok(result)) => self.show(result, &mut bar, line, above).await,
            Ok(Err(error)) => Err(Stop::sql(error, line, above)),
            Err(stop) => Err(stop),
        };
        bar.end();
        if let (Some(through), Ok(_)) = (through, &done) {
            through.finish(&mut self.target)?;
        }
        // Rows written before a failure were still returned by the statement.
        self.target.writer().flush()?;
        if let Some(before) = self.target_before.take() {
            self.target = before;
        }
        self.tell(done?, started.elapsed());
        self.tell_notifications();
        Ok(())
    }

    /// Shows the notifications that have arrived, as psql does, outside of transactions.
    fn tell_notifications(&self) {
        if self.session.transaction_state() != TransactionState::Idle {
            return;
        }
        for Notification { process, channel, payload } in self.session.take_notifications() {
            let with = match payload.is_empty() {
                true => String::new(),
                false => format!(" with payload \"{payload}\""),
            };
            terminal::say(format_args!(
                "Asynchronous notification \"{channel}\"{with} received from server process with PID {process}."
            ));
        }
        if self.session.take_lost_notifications() {
            terminal::say_error("too many notifications waited for the session and were lost");
        }
    }

    /// Writes a result to the target. Returns the footer; None if it would disturb.
    async fn show(
        &mut self,
        mut result: QueryResult,
        bar: &mut QueryBar,
        line: u64,
        above: u64,
    ) -> Result<Option<String>, Stop> {
        let progress = result.progress().clone();
        if result.is_told_by_tag() {
            while let Some(_count) = self
                .interrupts
                .unless(bar, Some(&progress), result.next())
                .await?
                .map_err(|error| Stop::sql(error, line, above))?
            {}
            return Ok(Some(result.tag()));
        }
        let layout = self.target.layout(&self.settings, self.session.temporal_style());
        let mut rows = self.settings.mode.rows(layout);
        let mut count = 0;
        rows.start(&result.schema().clone(), self.target.writer())?;
        loop {
            let next = self.interrupts.unless(bar, Some(&progress), result.next()).await?;
            let Some(batch) = next.map_err(|error| Stop::sql(error, line, above))? else { break };
            bar.end();
            count += batch.num_rows();
            rows.batch(&batch, self.target.writer())?;
        }
        bar.end();
        let notes = rows.finish(self.target.writer())?;
        let is_footed = self.settings.mode.is_drawn() && self.target.is_terminal();
        Ok(is_footed.then(|| footer(count, &notes)))
    }

    fn tell(&self, what: Option<String>, time: Duration) {
        let time = self.settings.timer.then(|| duration(time));
        let parts: Vec<String> = what.into_iter().chain(time).collect();
        if !parts.is_empty() {
            terminal::say(parts.join(" · "));
        }
    }
}

fn footer(rows: usize, notes: &[String]) -> String {
    let rows = match rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    };
    if notes.is_empty() { rows } else { format!("{rows} ({})", notes.join("; ")) }
}

/// `12.3 ms`, `4.56 s`, `2 min 05 s`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.2} s"),
        s => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_fitting_unit() {
        assert_eq!(duration(Duration::from_micros(12_340)), "12.3 ms");
        assert_eq!(duration(Duration::from_millis(4_560)), "4.56 s");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
    }

    #[test]
    fn a_footer_counts_all_rows_and_shows_notes() {
        assert_eq!(footer(1, &[]), "1 row");
        assert_eq!(footer(90, &["40 shown".into(), "x".into()]), "90 rows (40 shown; x)");
    }
}
