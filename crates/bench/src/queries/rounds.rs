//! A query in rounds: all engines in turn in each, their answers compared value by value.

use anyhow::Result;

use super::times::QueryRuns;
use crate::answers::{self, RowOrder};
use crate::protocol::Answer;
use crate::rivals::SqlEngine;
use crate::trials::{RunStop, TrialCase};

/// Rounds of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryRounds {
    /// The number by which engines are asked.
    pub(crate) number: u8,
    /// Rounds measured.
    pub(crate) runs: u32,
    /// Rounds before them.
    pub(crate) warmup: u32,
    /// Whether rows are compared in the order in which they came.
    pub(crate) order: RowOrder,
}

/// Runs one query. The first problem ends it; `None` after a signal. `text` is the query in a round.
///
/// # Errors
/// When an engine is gone or hangs.
pub(crate) fn measure_query<C: TrialCase>(
    engines: &mut [SqlEngine],
    case: C,
    rounds: QueryRounds,
    text: impl Fn(u32) -> Result<String>,
    stop: &RunStop,
) -> Result<Option<QueryRuns<C>>> {
    let mut runs = QueryRuns::new(case, engines.iter().map(|engine| engine.name().to_owned()));
    for round in 0..rounds.warmup + rounds.runs {
        if stop.is_stopped() {
            return Ok(None);
        }
        let answers = ask_all(engines, rounds.number, &text(round)?, &mut runs)?;
        compare_all(engines, &answers, rounds.order, &mut runs);
        if !runs.problems.is_empty() {
            return Ok(Some(runs));
        }
        runs.rows = answers[0].values.len();
        if round >= rounds.warmup {
            runs.add(answers.iter().map(|answer| answer.ms));
        }
    }
    Ok(Some(runs))
}

/// Runs a query on all engines and returns their answers. If one engine fails, it returns none and records a problem of the
/// query.
fn ask_all<C: TrialCase>(
    engines: &mut [SqlEngine],
    number: u8,
    sql: &str,
    runs: &mut QueryRuns<C>,
) -> Result<Vec<Answer>> {
    let mut answers = Vec::with_capacity(engines.len());
    for engine in engines {
        match engine.ask(number, sql)? {
            Ok(answer) => answers.push(answer),
            Err(error) => runs.problem(format!("{} failed: {error}", engine.name())),
        }
    }
    Ok(if runs.problems.is_empty() { answers } else { Vec::new() })
}

/// Compares every rival's answer with Atoll's.
pub(crate) fn compare_all<C: TrialCase>(
    engines: &[SqlEngine],
    answers: &[Answer],
    order: RowOrder,
    runs: &mut QueryRuns<C>,
) {
    for (engine, answer) in engines.iter().zip(answers).skip(1) {
        if let Some(difference) = answers::difference(&answers[0], answer, order) {
            let (atoll, rival) = (engines[0].name(), engine.name());
            runs.problem(format!("{atoll} and {rival} differ: {difference}"));
        }
    }
}
