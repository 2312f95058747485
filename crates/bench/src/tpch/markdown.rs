//! A report as a Markdown document, which people read and paste.

use std::fmt::{self, Write};

use atoll_tools::bench::Manifest;
use atoll_topology::Bytes;

use super::report::TpchReport;
use crate::queries::EngineMeasured;
use crate::table::table;

impl TpchReport {
    /// All of it.
    pub(super) fn markdown(&self, manifest: &Manifest) -> String {
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
        f.write_str(&self.timed.to_markdown(&self.engines))?;
        f.write_str(&loads_markdown(&self.engines))?;
        writeln!(
            f,
            "\nAll load the same Parquet files ({}). Atoll's own generator puts the same tables \
             into memory in {:.0} ms.",
            self.settings.file_bytes, self.generated.load_ms
        )?;
        f.write_str(&self.timed.problems_markdown())
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
        f.write_str(&self.bandwidth.to_markdown())
    }
}

/// A section with a row for each engine: its load and its memory.
fn loads_markdown(engines: &[EngineMeasured]) -> String {
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
    let atoll = engines.first();
    let rows: Vec<Vec<String>> = engines.iter().map(|engine| load_row(engine, atoll)).collect();
    format!("\n## Load and memory\n\n{}", table(&head, &rows))
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
        let text = report().markdown(&Manifest::new(&machine, 1, 0, 1));
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
