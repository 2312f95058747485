//! The directory of results: the plan, and a file for each case as soon as it is done, so that what was measured
//! stays when a run is stopped.

use std::fmt::Display;
use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use atoll_sys::write_whole;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::flags::ResultArgs;

const PLAN: &str = "plan.json";

/// A case by its settings; displayed as in messages.
pub(crate) trait TrialCase:
    Clone + Display + PartialEq + Serialize + DeserializeOwned
{
    /// Words that no other case of a run has; the name of its file is made of them.
    fn key(&self) -> String;
}

/// What came of a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CaseResult<C, A> {
    pub(crate) case: C,
    /// What it found.
    pub(crate) answer: Option<A>,
    /// Why it failed.
    pub(crate) error: Option<String>,
}

impl<C, A> CaseResult<C, A> {
    /// Of what was measured.
    pub(crate) fn new(case: C, measured: Result<A>) -> Self {
        match measured {
            Ok(answer) => Self { case, answer: Some(answer), error: None },
            Err(error) => Self { case, answer: None, error: Some(format!("{error:#}")) },
        }
    }
}

/// The directory, of a run with a plan `P`: the settings that all its cases share.
#[derive(Debug)]
pub(crate) struct TrialResults<P> {
    /// `None` keeps nothing.
    directory: Option<PathBuf>,
    plan: PhantomData<P>,
}

impl<P: PartialEq + Serialize + DeserializeOwned> TrialResults<P> {
    /// Opens it: a new one for this plan, or, to resume, one with the same plan.
    ///
    /// # Errors
    /// When it holds another run, or none that can be resumed.
    pub(crate) fn open(directory: &Path, plan: &P, is_resumed: bool) -> Result<Self> {
        let (name, file) = (directory.display(), directory.join(PLAN));
        match (file.exists(), is_resumed) {
            (true, false) => bail!(
                "{name} holds the results of another run; --resume goes on with it, --results names another"
            ),
            (false, true) => bail!("{name} holds no results to go on with; leave --resume out"),
            (true, true) => {
                let found: P = read(&file)?;
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
        Ok(Self { directory: Some(directory.to_owned()), plan: PhantomData })
    }

    /// The directory of a command; without one nothing is kept.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn of(args: &ResultArgs, plan: &P) -> Result<Self> {
        match &args.results {
            Some(directory) => Self::open(directory, plan, args.resume),
            None => Ok(Self { directory: None, plan: PhantomData }),
        }
    }
}

impl<P> TrialResults<P> {
    /// The result of a case; `None` if it was not measured or failed.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub(crate) fn get<C: TrialCase, A: DeserializeOwned>(
        &self,
        case: &C,
    ) -> Result<Option<CaseResult<C, A>>> {
        let Some(file) = self.file(case).filter(|file| file.exists()) else { return Ok(None) };
        let found: CaseResult<C, A> = read(&file)?;
        Ok(Some(found).filter(|result| result.case == *case && result.error.is_none()))
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn put<C: TrialCase, A: Serialize>(&self, result: &CaseResult<C, A>) -> Result<()> {
        self.file(&result.case).map_or(Ok(()), |file| write(&file, result))
    }

    fn file(&self, case: &impl TrialCase) -> Option<PathBuf> {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = case.key().chars().map(plain).collect();
        Some(self.directory.as_ref()?.join(format!("{name}.json")))
    }
}

/// The first setting in which two plans differ.
fn difference<P: Serialize>(found: &P, wanted: &P) -> Option<String> {
    let fields = |plan: &P| serde_json::to_value(plan).unwrap_or_default();
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
    use std::fmt;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Plan {
        seconds: f64,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Case(String);

    impl fmt::Display for Case {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl TrialCase for Case {
        fn key(&self) -> String {
            self.0.clone()
        }
    }

    #[test]
    fn a_run_is_resumed_with_its_own_settings_only() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("results");
        let open =
            |seconds, is_resumed| TrialResults::open(&directory, &Plan { seconds }, is_resumed);
        assert!(open(1.0, true).unwrap_err().to_string().contains("no results to go on with"));
        let results = open(1.0, false).unwrap();
        assert!(open(1.0, false).unwrap_err().to_string().contains("--resume"));
        assert!(open(2.0, true).unwrap_err().to_string().contains("other seconds"));
        assert!(open(1.0, true).is_ok());
        let case = Case("sqlite subset(1)".to_owned());
        let found = || results.get::<Case, u32>(&case).unwrap();
        assert!(found().is_none());
        results.put(&CaseResult::new(case.clone(), Ok(7))).unwrap();
        assert!(directory.join("sqlite-subset-1-.json").exists());
        assert_eq!(found().unwrap().answer, Some(7));
        let failed = Err(anyhow::anyhow!("no"));
        results.put(&CaseResult::<Case, u32>::new(case.clone(), failed)).unwrap();
        assert!(found().is_none(), "what failed is measured again");
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let args = ResultArgs { results: None, resume: false };
        let results = TrialResults::of(&args, &Plan { seconds: 1.0 }).unwrap();
        let case = Case("a".to_owned());
        results.put(&CaseResult::new(case.clone(), Ok(7))).unwrap();
        assert!(results.get::<Case, u32>(&case).unwrap().is_none());
    }
}
