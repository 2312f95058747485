//! What tuning gave, as text and as JSON.

use std::fmt::Write;

use atoll_primitives::Tuning;
use serde_json::{Value, json};

use super::work::{Gain, overall};
use crate::bench;
use crate::exit::CommandError;
use crate::workload::shown;

/// All of it.
#[derive(Debug)]
pub(super) struct TuneReport {
    pub(super) rows: u64,
    pub(super) threads: usize,
    pub(super) untuned: Tuning,
    pub(super) tuned: Tuning,
    pub(super) gains: Vec<Gain>,
    /// The file in which it is kept.
    pub(super) kept: Option<String>,
}

/// Sizes by name, in the order of the fields.
fn sizes(tuning: &Tuning) -> [(&'static str, usize); 5] {
    [
        ("block_rows", tuning.block_rows),
        ("fan_out_bits_max", tuning.fan_out_bits_max as usize),
        ("buffer_rows", tuning.buffer_rows),
        ("prefetch_rows", tuning.prefetch_rows),
        ("table_bytes", tuning.table_bytes),
    ]
}

impl TuneReport {
    /// In the requested form.
    pub(super) fn written(&self, json: bool) -> Result<String, CommandError> {
        match json {
            true => bench::json(&self.json()),
            false => Ok(self.text()),
        }
    }

    fn json(&self) -> Value {
        let by_name = |tuning: &Tuning| -> Value {
            sizes(tuning).into_iter().map(|(name, size)| (name.to_owned(), json!(size))).collect()
        };
        let works = self.gains.iter().map(|gain| {
            json!({
                "work": gain.work.name(),
                "untuned_seconds": gain.before,
                "tuned_seconds": gain.after,
                "ratio": gain.ratio,
            })
        });
        json!({
            "rows": self.rows,
            "threads": self.threads,
            "untuned": by_name(&self.untuned),
            "tuned": by_name(&self.tuned),
            "works": works.collect::<Vec<_>>(),
            "ratio": overall(&self.gains),
            "kept": self.kept,
        })
    }

    fn text(&self) -> String {
        let mut text = format!("{:<24}{:>12}{:>12}\n", "Size", "untuned", "tuned");
        for ((name, before), (_, after)) in sizes(&self.untuned).into_iter().zip(sizes(&self.tuned))
        {
            _ = writeln!(text, "{name:<24}{before:>12}{after:>12}");
        }
        let rows = shown(self.rows);
        _ = writeln!(
            text,
            "\n{:<24}{:>12}{:>12}  times faster",
            format!("{rows} rows, s"),
            "untuned",
            "tuned"
        );
        for Gain { work, before, after, ratio } in &self.gains {
            _ = writeln!(
                text,
                "{:<24}{:>12.4}{:>12.4}  {ratio:.3}",
                work.name(),
                before.median,
                after.median,
            );
        }
        text.push_str(&match self.tuned == self.untuned {
            true => "\nNo other value is faster: the sizes are kept, and the ratios are \
                 noise.\n"
                .to_owned(),
            false => format!("\nAll together {:.3} times faster.\n", overall(&self.gains)),
        });
        _ = writeln!(text, "Measured with {} workers.", self.threads);
        text.push_str(&match &self.kept {
            Some(file) => format!("Kept in {file}; later commands use it.\n"),
            None => "Not kept.\n".to_owned(),
        });
        text
    }
}
