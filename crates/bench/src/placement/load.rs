//! The load, and the figure in its output.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;

use super::PlacementArgs;
use super::server::PlacedServer;
use super::shell::{self, ShellEnd, last_lines};
use crate::trials::{RunStop, ServerLooks, ServerPlacement};

/// A regular expression whose group is the figure.
#[derive(Clone, Debug)]
pub(super) struct Metric(Regex);

impl Metric {
    /// Reads it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expression = Regex::new(text).map_err(|error| error.to_string())?;
        // The whole match counts as one.
        match expression.captures_len() - 1 {
            1 => Ok(Self(expression)),
            groups => Err(format!("it has {groups} groups; expected one, as in 'tps = ([0-9.]+)'")),
        }
    }

    /// The figure of the last match; `1,234.5` is a number too.
    fn of(&self, output: &str) -> Result<f64> {
        let last = self.0.captures_iter(output).last().and_then(|found| found.get(1));
        let Some(found) = last else { bail!("--metric matches nothing in the load's output") };
        let figure = found.as_str().trim().replace(',', "");
        let value: f64 = figure.parse().with_context(|| {
            format!("--metric found '{:.40}', which is not a number", found.as_str())
        })?;
        ensure!(value > 0.0 && value.is_finite(), "the metric is {value}; expected more than 0");
        Ok(value)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a load came to.
pub(super) struct LoadDone {
    /// The metric, or the seconds.
    pub(super) value: f64,
    pub(super) seconds: f64,
    pub(super) placement: ServerPlacement,
}

/// Runs the load on a server, and looks meanwhile where the server is.
///
/// # Errors
/// When the load fails, takes too long or has no metric, or the server ends.
pub(super) fn run(
    args: &PlacementArgs,
    server: &mut PlacedServer<'_>,
    home: &Path,
    stop: &RunStop,
) -> Result<LoadDone> {
    let (out, err) = (home.join("load.out"), home.join("load.err"));
    let mut looks = ServerLooks::new(server.machine, server.pid())?;
    let longest = Duration::from_secs_f64(args.timeout);
    let mut is_gone = false;
    let is_needless = || {
        is_gone = server.has_ended();
        looks.look_when_due();
        is_gone
    };
    let end = shell::run(&args.load, (&out, &err), longest, stop, is_needless)?;
    if is_gone || server.has_ended() {
        return Err(server.ended_early("under the load"));
    }
    match end {
        ShellEnd::Ended(status, seconds) => {
            ensure!(status.success(), "the load ended with {status}:\n{}", last_lines(&err));
            let placement = looks.finish();
            let value = match &args.metric {
                None => seconds,
                Some(metric) => metric
                    .of(&text(&out, &err))
                    .with_context(|| format!("the load wrote:\n{}", last_lines(&out)))?,
            };
            Ok(LoadDone { value, seconds, placement })
        }
        ShellEnd::TooLong => bail!("the load took more than {} s (--timeout)", args.timeout),
        ShellEnd::Needless => bail!("the load was stopped"),
    }
}

/// What it wrote to both.
fn text(out: &Path, err: &Path) -> String {
    let read = |file| std::fs::read(file).unwrap_or_default();
    let bytes = [read(out), read(err)].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_the_group_of_the_last_match() {
        let metric = Metric::parse(r"tps = ([\d.,]+)").unwrap();
        assert_eq!(metric.of("tps = 1\ntps = 1,234.5 (without)").unwrap(), 1234.5);
        let error = |text: &str| metric.of(text).unwrap_err().to_string();
        assert!(error("latency").contains("matches nothing"));
        assert!(error("tps = .").contains("not a number"));
        assert!(error("tps = 0").contains("more than 0"));
    }

    #[test]
    fn a_metric_has_one_group() {
        for (text, message) in [("tps", "0 groups"), ("(a)(b)", "2 groups"), ("(", "unclosed")] {
            let error = Metric::parse(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
