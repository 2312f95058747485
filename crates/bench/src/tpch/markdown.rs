//! A report as a Markdown document, which people read and paste.

use std::fmt::{self, Write};

use atoll_tools::bench::Manifest;
use atoll_topology::Bytes;

use super::report::{EngineMeasured, QueryTimes, ScanReached, TpchReport};
use crate::table::table;

impl TpchReport {
    /// All of it.
    pub(super) fn to_markdown(&self, manifest: &Manifest) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text, manifest);
        text
    }

    fn write(&self, f: &mut String, manifest: &Manifest) -> fmt::Result {
        let engines = self.engines.iter().map(|engine| engine.loaded.engine.as_str());
        let engines = engines.collect::<Vec<_>>().join(", ");
        let scale_factor = self.settings.scale_factor;
        writeln!(f, "# TPC-H at scale factor {scale_factor}: {engines}\n")?;
        write!(f, "{manifest}")?;
        self.conditions(f)?;
        self.times(f)?;
        self.loads(f)?;
        if !self.problems.is_empty() {
            writeln!(f, "\n## Problems\n")?;
            self.problems.iter().try_for_each(|problem| writeln!(f, "- ERROR: {problem}"))?;
        }
        Ok(())
    }

    fn conditions(&self, f: &mut String) -> fmt::Result {
        let parameters = match self.settings.fresh_parameters {
            true => "fresh parameters every round",
            false => "parameters of the validation run",
        };
        writeln!(f, "- {} threads each, {parameters}", self.settings.threads)?;
        for EngineMeasured { loaded, .. } in &self.engines {
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

    fn times(&self, f: &mut String) -> fmt::Result {
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

    fn query(&self, query: &QueryTimes) -> Vec<String> {
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

    /// A row of sums; None if no query was answered.
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

    fn loads(&self, f: &mut String) -> fmt::Result {
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

fn load_row(engine: &EngineMeasured, atoll: Option<&EngineMeasured>) -> Vec<String> {
    let ratio = |of: fn(&EngineMeasured) -> f64| {
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

#[cfg(test)]
mod tests {
    use atoll_tools::bench::Manifest;
    use atoll_topology::Machine;

    use super::super::report::tests::report;

    #[test]
    fn a_report_is_complete_and_its_tables_are_in_line() {
        let machine = Machine::synthetic("node:1 core:2 pu:1").expect("a machine");
        let text = report().to_markdown(&Manifest::new(&machine, 1, 0, 1));
        for part in [
            "# TPC-H at scale factor 1: atoll, rival",
            "- runs: 1 after 0 to warm up",
            "2 threads each, parameters of the validation run",
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
