//! The directory of results: the plan, and a file for each case as soon as it is done, so that what was measured
//! stays when a run is stopped.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use atoll_sys::write_whole;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::case::{KvAnswer, KvCase};
use super::plan::KvPlan;

const PLAN: &str = "plan.json";

/// What came of a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KvResult {
    pub(super) case: KvCase,
    /// What it found.
    pub(super) answer: Option<KvAnswer>,
    /// Why it failed.
    pub(super) error: Option<String>,
}

/// The directory.
#[derive(Debug)]
pub(super) struct KvResults(PathBuf);

impl KvResults {
    /// Opens it: a new one for this plan, or, to resume, one with the same plan.
    ///
    /// # Errors
    /// When it holds another run, or none that can be resumed.
    pub(super) fn open(directory: &Path, plan: &KvPlan, is_resumed: bool) -> Result<Self> {
        let (name, file) = (directory.display(), directory.join(PLAN));
        match (file.exists(), is_resumed) {
            (true, false) => bail!(
                "{name} holds the results of another run; --resume goes on with it, --results names another"
            ),
            (false, true) => bail!("{name} holds no results to go on with; leave --resume out"),
            (true, true) => {
                let found: KvPlan = read(&file)?;
                let differing = difference(&found, plan);
                if let Some(setting) = differing {
                    bail!(
                        "{name} was measured with other {setting}; repeat its flags, or name another"
                    );
                }
            }
            (false, false) => {
                fs::create_dir_all(directory).with_context(|| format!("cannot make {name}"))?;
                write(&file, plan)?;
            }
        }
        Ok(Self(directory.to_owned()))
    }

    /// The result of a case; `None` if it was not measured or failed.
    pub(super) fn get(&self, case: &KvCase) -> Result<Option<KvResult>> {
        let file = self.file(case);
        if !file.exists() {
            return Ok(None);
        }
        let found: KvResult = read(&file)?;
        Ok(Some(found).filter(|result| result.case == *case && result.error.is_none()))
    }

    /// Keeps a result.
    pub(super) fn put(&self, result: &KvResult) -> Result<()> {
        write(&self.file(&result.case), result)
    }

    fn file(&self, case: &KvCase) -> PathBuf {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let KvCase { engine, arm, run, work } = case;
        let name: String =
            format!("{} {arm} {run} {work}", engine.name()).chars().map(plain).collect();
        self.0.join(format!("{name}.json"))
    }
}

/// The first setting in which two plans differ.
fn difference(found: &KvPlan, wanted: &KvPlan) -> Option<String> {
    let fields = |plan: &KvPlan| serde_json::to_value(plan).unwrap_or_default();
    let (found, wanted) = (fields(found), fields(wanted));
    let names = wanted.as_object().into_iter().flat_map(|fields| fields.keys());
    names.into_iter().find(|name| found[name.as_str()] != wanted[name.as_str()]).cloned()
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged; remove it", file.display()))
}

fn write(file: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    write_whole(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::case::KvWork;
    use crate::kv::engine::EngineName;

    fn plan(seconds: f64) -> KvPlan {
        KvPlan { seconds, ..KvPlan::small() }
    }

    #[test]
    fn a_run_is_resumed_with_its_own_settings_only() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("results");
        let open = |seconds, is_resumed| KvResults::open(&directory, &plan(seconds), is_resumed);
        assert!(open(1.0, true).unwrap_err().to_string().contains("no results to go on with"));
        let results = open(1.0, false).unwrap();
        assert!(open(1.0, false).unwrap_err().to_string().contains("--resume"));
        assert!(open(2.0, true).unwrap_err().to_string().contains("other seconds"));
        assert!(open(1.0, true).is_ok());
        let work = KvWork::ReadWhileWriting { readers: 1 };
        let case = KvCase { engine: EngineName::Sqlite, arm: "subset(1)".to_owned(), run: 0, work };
        assert!(results.get(&case).unwrap().is_none());
        let answer = Some(KvAnswer::default());
        results.put(&KvResult { case: case.clone(), answer, error: None }).unwrap();
        assert!(results.get(&case).unwrap().is_some());
        let failed = KvResult { case: case.clone(), answer: None, error: Some("no".to_owned()) };
        results.put(&failed).unwrap();
        assert!(results.get(&case).unwrap().is_none(), "what failed is measured again");
    }
}
