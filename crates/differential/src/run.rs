//! Random queries over random tables, answered by Atoll under many settings and by DuckDB or PostgreSQL.
//!
//! ```text
//! seed ──► tables, queries, settings
//!            ├─► DuckDB or PostgreSQL ────────┐
//!            ├─► Atoll, one worker (reference) ├─► the same rows?  no ──► shrunk ──► a script
//!            └─► Atoll, every other setting ───┘
//! ```
//!
//! An answer has to be right, or an error that says why: rows that differ, processes that end or hang,
//! and errors that no user's mistake explains are findings. Queries that the other engine answers and Atoll refuses by
//! design (overflows, unsupported syntax) is counted apart.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::data::TestTable;
use crate::engines::{Against, Engines};
use crate::generate;
use crate::outcome::EngineOutcome;
use crate::setting::Setting;
use crate::shrink::{Case, shrink};
use crate::verdict::{Verdict, verdict};
use crate::written;

/// The options of the comparison.
#[derive(Clone, Debug)]
pub(crate) struct DifferentialOptions {
    /// This program, which is started again for each setting.
    pub(crate) program: PathBuf,
    /// The engine whose answers are right.
    pub(crate) against: Against,
    /// A Python with DuckDB; a virtual environment in the cache unless given.
    pub(crate) python: Option<PathBuf>,
    /// The first seed.
    pub(crate) seed: u64,
    /// Seeds at most.
    pub(crate) seeds: u64,
    /// Time after which no new seed begins.
    pub(crate) time: Option<Duration>,
    /// Queries over the tables of a seed.
    pub(crate) queries: usize,
    /// Settings of Atoll for each seed, besides the reference.
    pub(crate) settings: usize,
    /// How long an answer may take.
    pub(crate) patience: Duration,
    /// Directory for the scripts of findings, created if missing.
    pub(crate) out: PathBuf,
}

/// The outcome.
#[derive(Clone, Debug, Default)]
pub(crate) struct DifferentialReport {
    /// Seeds whose queries were run.
    pub(crate) seeds: u64,
    /// Queries.
    pub(crate) queries: u64,
    /// Answers of Atoll that were compared.
    pub(crate) comparisons: u64,
    /// Queries that the other engine did not answer.
    pub(crate) unanswered: u64,
    /// What Atoll refused by design: messages and how often.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Differences by kind and the scripts that show them.
    pub(crate) findings: Vec<Finding>,
}

/// A difference.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// `rows`, `error`, `fault` or `lost`.
    pub(crate) kind: &'static str,
    /// The script that shows it.
    pub(crate) script: PathBuf,
    /// What differs.
    pub(crate) what: String,
}

/// Compares until the seeds or the time are used up.
///
/// # Errors
/// When the other engine cannot be had or a script cannot be written. Differences are findings in the report.
pub(crate) fn run(
    options: &DifferentialOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<DifferentialReport> {
    let mut engines = start(options, progress)?;
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make the directory {}", options.out.display()))?;
    let started = Instant::now();
    let mut report = DifferentialReport::default();
    for seed in (options.seed..).take(usize::try_from(options.seeds).unwrap_or(usize::MAX)) {
        if options.time.is_some_and(|time| started.elapsed() >= time) {
            break;
        }
        run_seed(seed, options, &mut engines, &mut report, progress)?;
        if report.seeds % 20 == 0 {
            progress(&report.line());
        }
    }
    Ok(report)
}

/// The engines that are compared.
pub(crate) fn start(
    options: &DifferentialOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Engines> {
    ensure!(options.queries > 0, "--queries is at least 1");
    if options.against == Against::Postgresql {
        return Engines::with_postgres(options.program.clone(), options.patience);
    }
    let python = atoll_bench::rivals::python(options.python.as_deref(), progress)?;
    Ok(Engines::new(options.program.clone(), python, options.patience))
}

/// Tables of a seed, and the random numbers from which its queries are made.
pub(crate) fn tables(seed: u64, against: Against) -> (Vec<TestTable>, StdRng) {
    let mut random = StdRng::seed_from_u64(seed);
    let count = random.random_range(1..4);
    let table = |number| {
        let mut table = TestTable::random(format!("t{number}"), against, &mut random);
        // Against PostgreSQL with indexes, and changes of its rows.
        if against == Against::Postgresql {
            table.changes = written::changes(&table, &mut random);
        }
        table
    };
    let tables = (0..count).map(table).collect();
    (tables, random)
}

fn run_seed(
    seed: u64,
    options: &DifferentialOptions,
    engines: &mut Engines,
    report: &mut DifferentialReport,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let (tables, mut random) = tables(seed, options.against);
    let has_large = tables.iter().any(TestTable::is_large);
    let settings: Vec<Setting> =
        (0..options.settings).map(|_| Setting::random(&mut random, has_large)).collect();
    for number in 0..options.queries {
        let query = generate::query(&tables, options.against, &mut random);
        let case = Case { tables: tables.clone(), query };
        for (setting, kind, what) in findings(&case, &settings, engines, report) {
            progress(&format!(
                "seed {seed}, query {number}: {kind}: {what:.300}; making it smaller"
            ));
            let script = options.out.join(format!("{seed}-{number}-{kind}.sql"));
            // Whole at first: making it smaller takes long where answers are waited for in vain.
            let header = format!("-- {}\n", one_line(&what));
            write_script(&script, seed, &case, setting.as_ref(), kind, &header)?;
            let small = minimal(&case, setting.as_ref(), kind, engines);
            let header = shown_outcomes(&small, setting.as_ref(), options.against, engines);
            write_script(&script, seed, &small, setting.as_ref(), kind, &header)?;
            report.findings.push(Finding { kind, script, what });
        }
    }
    report.seeds += 1;
    Ok(())
}

/// A setting under which a case fails, how it fails and what differs. Without a setting, the reference
/// differs from the other engine.
type Failure = (Option<Setting>, &'static str, String);

/// The failures of a case: the other engine against the reference, else the reference against other settings.
fn findings(
    case: &Case,
    settings: &[Setting],
    engines: &mut Engines,
    report: &mut DifferentialReport,
) -> Vec<Failure> {
    let (setup, sql, order) = (case.setup(), case.query.to_string(), case.query.row_order());
    let right = engines.right(&setup, &sql);
    let reference = engines.atoll(&Setting::reference(), &setup, &sql);
    report.queries += 1;
    report.comparisons += 1;
    match verdict(&right, &reference, order, false) {
        Verdict::Difference { kind, what } => return vec![(None, kind, what)],
        Verdict::Refused(message) => *report.refused.entry(message).or_default() += 1,
        Verdict::Unanswered => report.unanswered += 1,
        Verdict::Same => {}
    }
    for setting in settings {
        report.comparisons += 1;
        let found = engines.atoll(setting, &setup, &sql);
        match verdict(&reference, &found, order, setting.is_tight()) {
            Verdict::Difference { kind, what } => {
                return vec![(Some(setting.clone()), kind, what)];
            }
            Verdict::Refused(message) => *report.refused.entry(message).or_default() += 1,
            Verdict::Unanswered => {
                let what = "the reference fails, this setting answers".to_owned();
                return vec![(Some(setting.clone()), "rows", what)];
            }
            Verdict::Same => {}
        }
    }
    Vec::new()
}

/// Runs that the search for a smaller case may take; fewer where each may last until patience ends.
const TRIALS_MAX: usize = 400;
const LOST_TRIALS_MAX: usize = 10;

/// The outcome that is right, and the one under a setting.
fn outcomes(
    case: &Case,
    setting: Option<&Setting>,
    engines: &mut Engines,
) -> (EngineOutcome, EngineOutcome) {
    let (setup, sql) = (case.setup(), case.query.to_string());
    let reference = engines.atoll(&Setting::reference(), &setup, &sql);
    match setting {
        None => (engines.right(&setup, &sql), reference),
        Some(setting) => (reference, engines.atoll(setting, &setup, &sql)),
    }
}

fn minimal(case: &Case, setting: Option<&Setting>, kind: &str, engines: &mut Engines) -> Case {
    let tight = setting.is_some_and(Setting::is_tight);
    let trials = if kind == "lost" { LOST_TRIALS_MAX } else { TRIALS_MAX };
    shrink(case.clone(), trials, |case| {
        let (expected, found) = outcomes(case, setting, engines);
        let verdict = verdict(&expected, &found, case.query.row_order(), tight);
        matches!(verdict, Verdict::Difference { kind: other, .. } if other == kind)
    })
}

fn write_script(
    file: &Path,
    seed: u64,
    case: &Case,
    setting: Option<&Setting>,
    kind: &str,
    header: &str,
) -> Result<()> {
    let shown = setting.cloned().unwrap_or_else(Setting::reference);
    let mut text = format!("-- seed {seed}: {kind}\n-- {shown}\n{header}");
    let statements = shown.statements().into_iter().chain(case.setup());
    for statement in statements.chain([case.query.to_string()]) {
        writeln!(text, "{statement};")?;
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// The expected and the actual result, as comments.
fn shown_outcomes(
    case: &Case,
    setting: Option<&Setting>,
    against: Against,
    engines: &mut Engines,
) -> String {
    let (expected, found) = outcomes(case, setting, engines);
    let of_expected = if setting.is_some() { "the reference" } else { against.name() };
    format!("-- {of_expected}: {}\n-- found: {}\n", Shown(&expected), Shown(&found))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// An outcome on one line.
struct Shown<'a>(&'a EngineOutcome);

/// Rows shown of an outcome.
const ROWS_SHOWN: usize = 8;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            EngineOutcome::Lost(what) | EngineOutcome::Error(what) => f.write_str(&one_line(what)),
            EngineOutcome::Rows(answer) => {
                write!(f, "{} rows", answer.values.len())?;
                for row in answer.values.iter().take(ROWS_SHOWN) {
                    let values = row.iter().map(|value| value.as_deref().unwrap_or("NULL"));
                    let row = values.collect::<Vec<_>>().join(", ");
                    write!(f, " ({})", one_line(&row))?;
                }
                Ok(())
            }
        }
    }
}

impl DifferentialReport {
    /// All counts on one line.
    fn line(&self) -> String {
        let refused: u64 = self.refused.values().sum();
        format!(
            "{} seeds, {} queries, {} answers compared, {} not answered by the other engine, {refused} refused \
             by design, {} differences",
            self.seeds,
            self.queries,
            self.comparisons,
            self.unanswered,
            self.findings.len()
        )
    }
}

impl fmt::Display for DifferentialReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line())?;
        for (message, times) in &self.refused {
            writeln!(f, "refused {times} times: {message:.160}")?;
        }
        for Finding { kind, script, what } in &self.findings {
            let what = what.lines().next().unwrap_or_default();
            writeln!(f, "{kind}: {}: {what:.200}", script.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables and the first queries of a seed as SQL.
    fn script(seed: u64) -> String {
        let (tables, mut random) = tables(seed, Against::Postgresql);
        let queries =
            (0..40).map(|_| generate::query(&tables, Against::Postgresql, &mut random).to_string());
        let setup = tables.iter().flat_map(TestTable::setup);
        setup.chain(queries.collect::<Vec<_>>()).collect::<Vec<_>>().join(";\n")
    }

    #[test]
    fn a_seed_makes_the_same_script_each_time_and_others_another() {
        let scripts: Vec<String> = (0..20).map(script).collect();
        assert_eq!(scripts, (0..20).map(script).collect::<Vec<_>>());
        let different: std::collections::BTreeSet<_> = scripts.iter().collect();
        assert_eq!(different.len(), scripts.len());
        let all = scripts.concat();
        for part in [
            "FULL JOIN",
            "NOT IN (SELECT",
            "EXCEPT ALL",
            "ROLLUP",
            "OVER (",
            "NaN",
            "-0.0",
            "infinity",
            "RANGE BETWEEN",
            "EXCLUDE",
            "WITH RECURSIVE",
            "ARRAY(SELECT",
            ") IN ((",
            "CREATE UNIQUE INDEX",
            "lower(c",
            "ON CONFLICT",
            "MERGE INTO",
            " mood",
            " small",
        ] {
            assert!(all.contains(part), "{part}");
        }
    }
}
