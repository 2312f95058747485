//! `--calls`: random calls of every function and operator over values of all types, which Atoll answers or refuses, and
//! never by a panic.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use atoll_testkit::calls::{CalledFunction, FUNCTIONS, is_fault, random_call, setup};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::engines::Engines;
use crate::outcome::EngineOutcome;
use crate::run::DifferentialOptions;
use crate::setting::Setting;

/// Calls of a seed.
const CALLS_OF_SEED: usize = 2_000;

/// The outcome.
#[derive(Debug, Default)]
pub(crate) struct CallsReport {
    calls: u64,
    answered: u64,
    /// Faults by their messages without numbers, with a statement that shows each.
    faults: BTreeMap<String, Fault>,
}

#[derive(Debug)]
struct Fault {
    times: u64,
    script: PathBuf,
    what: String,
}

impl CallsReport {
    pub(crate) fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }
}

/// Calls until the seeds or the time are used up.
///
/// # Errors
/// When the functions cannot be listed or a script cannot be written.
pub(crate) fn run(
    options: &DifferentialOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<CallsReport> {
    let mut engines = Engines::alone(options.program.clone(), options.patience);
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make the directory {}", options.out.display()))?;
    let (started, tables, mut report) = (Instant::now(), setup(), CallsReport::default());
    let functions = functions(&mut engines, &tables)?;
    for seed in (options.seed..).take(usize::try_from(options.seeds).unwrap_or(usize::MAX)) {
        let mut random = StdRng::seed_from_u64(seed);
        let setting = Setting::of_calls(&mut random);
        for _ in 0..CALLS_OF_SEED {
            if options.time.is_some_and(|time| started.elapsed() >= time) {
                return Ok(report);
            }
            let sql = random_call(&functions, &mut random);
            let outcome = engines.atoll(&setting, &tables, &sql);
            report.note(&options.out, &setting, &tables, &sql, &outcome, progress)?;
        }
        progress(&report.line());
    }
    Ok(report)
}

/// All functions.
fn functions(engines: &mut Engines, tables: &[String]) -> Result<Vec<CalledFunction>> {
    let rows = match engines.atoll(&Setting::reference(), tables, FUNCTIONS) {
        EngineOutcome::Rows(answer) => answer.values,
        EngineOutcome::Error(error) | EngineOutcome::Lost(error) => {
            bail!("the functions cannot be listed: {error}")
        }
    };
    let function = |row: Vec<Option<String>>| {
        let [name, kind, arguments] = <[_; 3]>::try_from(row).ok()?;
        Some(CalledFunction { name: name?, kind: kind?, arguments: arguments? })
    };
    Ok(rows.into_iter().filter_map(function).collect())
}

impl CallsReport {
    fn note(
        &mut self,
        directory: &Path,
        setting: &Setting,
        tables: &[String],
        sql: &str,
        outcome: &EngineOutcome,
        progress: &mut dyn FnMut(&str),
    ) -> Result<()> {
        self.calls += 1;
        let what = match outcome {
            EngineOutcome::Rows(_) => {
                self.answered += 1;
                return Ok(());
            }
            EngineOutcome::Error(error) if !is_fault("", error) => return Ok(()),
            EngineOutcome::Error(what) | EngineOutcome::Lost(what) => what,
        };
        let script = directory.join(format!("call-{}.sql", self.faults.len()));
        let fault = self.faults.entry(kind(what)).or_insert_with(|| {
            progress(&format!("{sql}\n  {what:.300}"));
            Fault { times: 0, script, what: format!("{sql}: {what}") }
        });
        fault.times += 1;
        if fault.times > 1 {
            return Ok(());
        }
        let mut text = format!("-- {}\n-- {setting}\n", what.replace('\n', " "));
        let statements = setting.statements().into_iter().chain(tables.iter().cloned());
        for statement in statements.chain([sql.to_owned()]) {
            writeln!(text, "{statement};")?;
        }
        let file = &fault.script;
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    fn line(&self) -> String {
        let Self { calls, answered, faults } = self;
        format!("{calls} calls, {answered} answered, {} faults of different kinds", faults.len())
    }
}

/// A message without the parts that differ from call to call.
fn kind(message: &str) -> String {
    let words = message.split_whitespace().map(|word| {
        let is_of_call = word.contains(|c: char| c.is_ascii_digit() || "'\"([{".contains(c));
        if is_of_call { "…" } else { word }
    });
    let mut seen = HashSet::new();
    let words: Vec<&str> = words.filter(|word| seen.insert(*word)).take(25).collect();
    words.join(" ")
}

impl fmt::Display for CallsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line())?;
        for Fault { times, script, what } in self.faults.values() {
            let what = what.replace('\n', " ");
            writeln!(f, "{times} times, {}: {what:.400}", script.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_of_one_kind_that_differ_in_numbers_alone() {
        let of = |index: u8| kind(&format!("the query panicked: index out of bounds: {index}"));
        assert_eq!(of(1), of(7));
        assert_ne!(of(1), kind("the query panicked: attempt to divide by zero"));
    }
}
