//! Tests that did not run here: which, for want of what, and whether that was to be expected.
//!
//! Tests report it by `atoll_testkit::skip`, which adds a line to the file named by [`VARIABLE`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The environment variable that names the file; `atoll_testkit::skip::SKIPS`.
pub const VARIABLE: &str = "ATOLL_TEST_SKIPS";

/// What a machine may lack, and why tests that need it may be skipped everywhere. What
/// `scripts/setup.sh tests` installs is not among it.
const EXPECTED: [(&str, &str); 8] = [
    ("drivers", "drivers of PostgreSQL for other languages, which the set-up does not install"),
    ("huge-pages", "a kernel may have them switched off, or none free"),
    ("key-value-engines", "some ten libraries, which the set-up does not install"),
    ("mariadb", "a whole database, which the set-up does not install"),
    ("one-node", "a machine may have several"),
    ("permission", "containers forbid system calls and hide files"),
    ("postgresql", "a whole database, which the set-up does not install"),
    ("python-engines", "DuckDB, pandas and Polars, which the set-up does not install"),
];

/// The file of one run, empty at first.
pub struct SkipFile(PathBuf);

impl SkipFile {
    /// Makes the file in a directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(directory: &Path) -> Result<Self> {
        let file = directory.join(format!("test-skips-{}.tsv", std::process::id()));
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self(file))
    }

    /// Its path, for [`VARIABLE`].
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The reports of the tests.
    ///
    /// # Errors
    /// When the file cannot be read, or has a line that is not from `atoll_testkit::skip`.
    pub fn read(&self) -> Result<Skips> {
        let text = fs::read_to_string(&self.0);
        Skips::parse(&text.with_context(|| format!("cannot read {}", self.0.display()))?)
    }
}

impl Drop for SkipFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Skipped tests by what they need.
#[derive(Debug, Default)]
pub struct Skips(BTreeMap<String, Skipped>);

#[derive(Debug, Default)]
struct Skipped {
    tests: BTreeSet<String>,
    reason: String,
}

impl Skips {
    fn parse(text: &str) -> Result<Self> {
        let mut skips = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [test, need, reason] = fields[..] else {
                bail!("'{line}'; expected test, need and reason between tabs");
            };
            let skipped = skips.0.entry(need.to_owned()).or_default();
            skipped.tests.insert(test.to_owned());
            reason.clone_into(&mut skipped.reason);
        }
        Ok(skips)
    }

    /// Number of skipped tests.
    pub fn len(&self) -> usize {
        self.0.values().map(|skipped| skipped.tests.len()).sum()
    }

    /// Whether every test ran.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails with the skips that neither the list nor the caller expects.
    ///
    /// # Errors
    /// Their needs, and what to do.
    pub fn check(&self, also_expected: &[String]) -> Result<()> {
        let is_expected = |need: &str| {
            EXPECTED.iter().any(|(name, _)| *name == need)
                || also_expected.iter().any(|name| name == need)
        };
        let unexpected: Vec<&str> =
            self.0.keys().map(String::as_str).filter(|need| !is_expected(need)).collect();
        if unexpected.is_empty() {
            return Ok(());
        }
        let needs = unexpected.join(",");
        bail!(
            "tests were skipped that should have run; they need: {needs}. Install what is missing \
             (scripts/setup.sh tests), or accept the skips: cargo xtask ci --may-skip {needs}"
        )
    }
}

impl fmt::Display for Skips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tests skipped", self.len())?;
        for (need, Skipped { tests, reason }) in &self.0 {
            let why = EXPECTED.iter().find(|(name, _)| name == need).map(|(_, why)| *why);
            write!(f, "\n  {} need {need}: {reason}", tests.len())?;
            write!(f, " ({})", why.unwrap_or("not expected everywhere"))?;
            for test in tests {
                write!(f, "\n    {test}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "a::b\tlab\tno qemu\na::b\tlab\tno qemu\nc\tlab\tno qemu\nd\tpermission\tEPERM\n";

    #[test]
    fn a_test_counts_once_for_each_need() {
        let skips = Skips::parse(TEXT).expect("it is well formed");
        assert_eq!(skips.len(), 3);
        let text = skips.to_string();
        assert!(text.starts_with("3 tests skipped\n  2 need lab: no qemu (not expected everywhere)\n    a::b\n    c\n"), "{text}");
        assert!(
            text.ends_with(
                "1 need permission: EPERM (containers forbid system calls and hide files)\n    d"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_skip_that_is_not_expected_is_a_failure_that_says_how_to_accept_it() {
        let skips = Skips::parse(TEXT).expect("it is well formed");
        let error = skips.check(&[]).expect_err("the lab is to be there").to_string();
        assert!(error.contains("they need: lab.") && error.contains("--may-skip lab"), "{error}");
        assert!(skips.check(&["lab".to_owned()]).is_ok());
        assert!(Skips::parse("").expect("nothing").check(&[]).is_ok());
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        assert!(Skips::parse("a\tb\n").is_err());
    }

    #[test]
    fn a_file_that_was_written_is_read_and_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = SkipFile::create(directory.path()).expect("it can be written");
        fs::write(file.path(), TEXT).expect("it can be written");
        assert_eq!(file.read().expect("it can be read").len(), 3);
        let path = file.path().to_owned();
        drop(file);
        assert!(!path.exists());
    }
}
