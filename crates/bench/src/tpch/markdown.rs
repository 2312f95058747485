//! A report as a Markdown document, which people read and paste.

use std::fmt::{self, Write};

use atoll_topology::Bytes;

use super::report::{Measured, Query, Report, ScanReached};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engines = self.engines.iter().map(|engine| engine.loaded.engine.as_str());
        let engines = engines.collect::<Vec<_>>().join(", ");
        let scale_factor = self.settings.scale_factor;
        writeln!(f, "# TPC-H at scale factor {scale_factor}: {engines}\n")?;
        self.conditions(f)?;
        self.times(f)?;
        self.loads(f)?;
        if !self.problems.is_empty() {
            writeln!(f, "\n## Problems\n")?;
            self.problems.iter().try_for_each(|problem| writeln!(f, "- ERROR: {problem}"))?;
        }
        Ok(())
    }
}

impl Report {
    fn conditions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.manifest.to_markdown())?;
        let settings = &self.settings;
        let parameters = match settings.fresh_seed {
            Some(seed) => format!("fresh parameters every round (seed {seed})"),
            None => "parameters of the validation run".to_owned(),
        };
        writeln!(
            f,
            "- {} threads each, {} rounds after {} warm-up, engines in turn, {parameters}",
            settings.threads, settings.runs, settings.warmup
        )?;
        for Measured { loaded, .. } in &self.engines {
            if let Some(placement) = &loaded.placement {
                writeln!(
                    f,
                    "- placement achieved by {}: pages on the node wanted {}, on another {}, no \
                     node wanted {}; threads bound {} of {}",
                    loaded.engine,
                    placement.pages_at_home,
                    placement.pages_elsewhere,
                    placement.pages_free,
                    placement.workers_bound,
                    placement.workers
                )?;
            }
        }
        writeln!(
            f,
            "- memory read with {} threads at {:.1} GB/s (fastest of {} passes over {})",
            self.bandwidth.threads,
            self.bandwidth.bytes_per_second / 1e9,
            self.bandwidth.passes,
            self.bandwidth.buffer_bytes
        )
    }

    /// The names of the rivals.
    fn rivals(&self) -> impl Iterator<Item = &str> {
        self.engines.iter().skip(1).map(|engine| engine.loaded.engine.as_str())
    }

    fn times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## Queries: median ms (half the spread between the quartiles)\n")?;
        let mut head = vec!["query".to_owned()];
        head.extend(self.engines.iter().map(|engine| format!("{} ms", engine.loaded.engine)));
        head.extend(self.rivals().map(|rival| format!("atoll / {rival}")));
        head.extend(["rows", "scan GB/s", "of bandwidth"].map(str::to_owned));
        let mut rows: Vec<Vec<String>> = self.queries.iter().map(|it| self.query(it)).collect();
        if let Some(all) = self.sums("all", |total| (total.total_ms, total.atoll_ratio)) {
            rows.push(all);
        }
        let means = self.sums("geometric mean", |total| {
            (total.geometric_mean_ms, total.atoll_ratio_geometric_mean)
        });
        rows.extend(means);
        f.write_str(&table(&head, &rows))?;
        if self.totals_queries < self.queries.len() {
            let (some, all) = (self.totals_queries, self.queries.len());
            writeln!(f, "\nThe last two rows are over {some} of {all} queries; see the problems.")?;
        }
        Ok(())
    }

    fn query(&self, query: &Query) -> Vec<String> {
        let mut row = vec![format!("Q{}", query.query)];
        if query.times.is_empty() {
            row.extend(self.engines.iter().map(|_| "FAILED".to_owned()));
            row.extend(self.rivals().map(|_| "-".to_owned()));
        } else {
            row.extend(query.times.iter().map(|times| {
                let half = (times.ms.quartile_high - times.ms.quartile_low) / 2.0;
                format!("{:.1} (±{half:.1})", times.ms.median)
            }));
            row.extend(query.times.iter().skip(1).map(|it| format!("{:.2}", it.atoll_ratio)));
        }
        row.push(query.rows.to_string());
        row.extend(match query.scan {
            Some(ScanReached { bytes_per_second, bandwidth_share, .. }) => [
                format!("{:.1}", bytes_per_second / 1e9),
                format!("{:.0} %", bandwidth_share * 100.0),
            ],
            None => ["-", "-"].map(str::to_owned),
        });
        row
    }

    /// A row of sums; none where no query was answered.
    fn sums(
        &self,
        name: &str,
        of: impl Fn(&super::report::Total) -> (f64, f64),
    ) -> Option<Vec<String>> {
        if self.totals.is_empty() {
            return None;
        }
        let mut row = vec![name.to_owned()];
        row.extend(self.totals.iter().map(|total| format!("{:.1}", of(total).0)));
        row.extend(self.totals.iter().skip(1).map(|total| format!("{:.2}", of(total).1)));
        row.extend(["", "", ""].map(str::to_owned));
        Some(row)
    }

    fn loads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## Load and memory\n")?;
        let head = [
            "engine",
            "version",
            "load ms",
            "atoll / engine",
            "tables' memory",
            "atoll / engine",
            "peak memory",
        ]
        .map(str::to_owned);
        let atoll = self.engines.first();
        let rows: Vec<Vec<String>> = self.engines.iter().map(|it| load_row(it, atoll)).collect();
        f.write_str(&table(&head, &rows))?;
        writeln!(
            f,
            "\nAll load the same Parquet files ({}). Atoll's own generator puts the same tables \
             into memory in {:.0} ms.",
            self.settings.file_bytes, self.generated.load_ms
        )
    }
}

fn load_row(engine: &Measured, atoll: Option<&Measured>) -> Vec<String> {
    let ratio = |of: fn(&Measured) -> f64| {
        atoll.map_or(String::new(), |atoll| format!("{:.2}", of(atoll) / of(engine)))
    };
    vec![
        engine.loaded.engine.clone(),
        engine.loaded.version.clone(),
        format!("{:.0}", engine.loaded.load_ms),
        ratio(|it| it.loaded.load_ms),
        Bytes(engine.tables_bytes()).to_string(),
        ratio(|it| it.tables_bytes() as f64),
        Bytes(engine.peak_rss_bytes).to_string(),
    ]
}

/// A table whose columns are also in line for those who read the source; the first is text, the
/// others are numbers.
fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row[column]).chain([&head[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match column {
                0 => write!(text, "| {cell:<width$} |"),
                _ => write!(text, " {cell:>width$} |"),
            };
        }
        text.push('\n');
    };
    line(head);
    let rule = widths.iter().enumerate().map(|(column, width)| match column {
        0 => "-".repeat(*width),
        _ => format!("{}:", "-".repeat(width.saturating_sub(1))),
    });
    line(&rule.collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
    text
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;

    #[test]
    fn a_report_is_complete_and_its_tables_are_in_line() {
        let text = report().to_string();
        for part in [
            "# TPC-H at scale factor 1: atoll, rival",
            "2 threads each, 1 rounds after 0 warm-up",
            "20.0 GB/s",
            "| Q6             | 10.0 (±0.0) | 40.0 (±0.0) |          0.25 |",
            "25 %",
            "| all            |        20.0 |        50.0 |          0.40 |",
            "over 2 of 3 queries",
            "| rival  |     1.2 |    1000 |           0.50 |        1.0 GiB |           2.00 |",
            "in 2000 ms",
            "- ERROR: Q9: atoll and rival differ",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
