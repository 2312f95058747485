//! What placement was worth in two papers, arm by arm (`data/placement-worth.toml`; the loads of
//! `data/symas-2014.toml`).

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::kv::published_load_ratios;

/// A finding about an arm.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedWorth {
    /// The strategy, without its number.
    pub(super) arm: String,
    /// Throughput by that of default, in words.
    pub(super) worth: String,
    pub(super) what: String,
    pub(super) origin: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedFile {
    finding: Vec<PublishedWorth>,
}

/// All findings.
///
/// # Errors
/// When the data that are part of this program are damaged.
pub(super) fn published() -> Result<Vec<PublishedWorth>> {
    let text = include_str!("../../data/placement-worth.toml");
    let file: PublishedFile = toml::from_str(text).context("the published figures")?;
    let mut findings = file.finding;
    let loads = published_load_ratios()?;
    let ratios = loads.iter().map(|(_, ratio)| *ratio);
    let (least, most) = (ratios.clone().fold(f64::INFINITY, f64::min), ratios.fold(0.0, f64::max));
    let lmdb = loads.iter().find(|(engine, _)| engine == "LMDB").map(|(_, ratio)| *ratio);
    findings.push(PublishedWorth {
        arm: "interleave".to_owned(),
        worth: format!("{least:.2} to {most:.2}; LMDB {:.2}", lmdb.unwrap_or_default()),
        what: format!("load of {} key-value engines by one thread, 8 nodes of AMD", loads.len()),
        origin: "Symas 2014".to_owned(),
    });
    Ok(findings)
}

impl PublishedWorth {
    /// Whether it is about this arm; `spread` and `interleave` are the same for one program.
    pub(super) fn is_about(&self, arm: &str) -> bool {
        let name = arm.split('(').next().unwrap_or_default();
        self.arm == if name == "spread" { "interleave" } else { name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_papers_have_findings_and_lmdb_loads_6_percent_slower_interleaved() {
        let found = published().unwrap();
        let of = |arm: &str| found.iter().filter(|it| it.is_about(arm)).count();
        assert_eq!((of("aligned"), of("ahead(1)"), of("spread"), of("default")), (2, 1, 3, 0));
        let symas = found.iter().find(|it| it.origin.starts_with("Symas")).unwrap();
        assert!(symas.worth.ends_with("LMDB 0.94"), "{symas:?}");
    }
}
