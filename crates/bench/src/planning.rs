//! Times of the planning steps, from query text to plan, for the 22 queries of TPC-H.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use atoll_runtime::{Runtime, RuntimeOptions};
use atoll_sql::tpch::{self, QUERIES};
use atoll_sql::{DatabaseOptions, PlanningTimes, Session};
use atoll_tools::bench::{Document, Form, Manifest, Measurement, Summary, json};
use atoll_tools::exit::CommandError;
use clap::Args;
use serde::Serialize;
use serde_json::json as object;

use crate::flags::RunArgs;
use crate::table::table;
use crate::worker::this_machine;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench planning
  atoll bench planning --queries 5,21 --runs 31 --json

Nothing is run. 'rewrites' is what Atoll's dialect adds to DataFusion's parser.";

/// Scale factor of the tables: plans are made for their statistics, not for their rows.
const SCALE_FACTOR: f64 = 0.01;

/// The steps, in their order.
const STEPS: [&str; 6] = ["setup", "parser", "rewrites", "logical", "optimizer", "physical"];

/// Arguments of `atoll bench planning`.
#[derive(Args, Debug)]
pub(crate) struct PlanningArgs {
    /// Queries by number, such as 1,6,18 [default: all 22]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=22))]
    queries: Vec<u8>,
    #[command(flatten)]
    run: RunArgs,
}

/// Measures and writes the results.
pub(crate) fn run(args: &PlanningArgs) -> Result<(), CommandError> {
    let outputs = args.run.output.outputs(false)?;
    let (manifest, report) = measure(args)?;
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "planning",
            manifest: &manifest,
            measurements: report.measurements(),
            details: &report,
        }),
        _ => Ok(format!("# bench planning\n\n{manifest}{report}")),
    })
}

/// Times of all queries.
#[derive(Debug, Serialize)]
struct PlanningReport {
    scale_factor: f64,
    queries: Vec<QueryPlanning>,
}

/// Times of a query, in milliseconds.
#[derive(Debug, Serialize)]
struct QueryPlanning {
    query: u8,
    /// By step, then round.
    #[serde(skip)]
    samples: [Vec<f64>; STEPS.len()],
    /// Median of each step.
    medians: [f64; STEPS.len()],
}

fn measure(args: &PlanningArgs) -> Result<(Manifest, PlanningReport)> {
    let (machine, kernel) = this_machine()?;
    let (runs, warmup) = (args.run.runs, args.run.warmup);
    let mut manifest = Manifest::new(&machine, runs, warmup, 0);
    let runtime = Runtime::start(Arc::clone(&machine), kernel, RuntimeOptions::default())?;
    let session = Session::new(runtime, DatabaseOptions::default())?;
    session.runtime().block_on(tpch::load(&session, SCALE_FACTOR, &mut |_| {}))?;
    let numbers = if args.queries.is_empty() { (1..=22).collect() } else { args.queries.clone() };
    let mut queries: Vec<QueryPlanning> = numbers.into_iter().map(QueryPlanning::new).collect();
    for round in 0..warmup + runs {
        for query in &mut queries {
            let sql = QUERIES[usize::from(query.query) - 1];
            let times = session.runtime().block_on(session.time_planning(sql))?;
            if round >= warmup {
                query.add(&times);
            }
        }
    }
    queries.iter_mut().for_each(QueryPlanning::finish);
    manifest.end([]);
    Ok((manifest, PlanningReport { scale_factor: SCALE_FACTOR, queries }))
}

impl QueryPlanning {
    fn new(query: u8) -> Self {
        Self { query, samples: Default::default(), medians: Default::default() }
    }

    fn add(&mut self, times: &PlanningTimes) {
        let PlanningTimes { setup, parser, rewrites, logical, optimizer, physical } = times;
        let steps = [setup, parser, rewrites, logical, optimizer, physical];
        for (samples, step) in self.samples.iter_mut().zip(steps) {
            samples.push(step.as_secs_f64() * 1e3);
        }
    }

    fn finish(&mut self) {
        for (median, samples) in self.medians.iter_mut().zip(&self.samples) {
            *median = Summary::from_values(samples.iter().copied()).map_or(0.0, |all| all.median);
        }
    }
}

impl PlanningReport {
    /// For `bench compare`.
    fn measurements(&self) -> Vec<Measurement> {
        let of_query = |query: &QueryPlanning| {
            let number = query.query;
            let steps = STEPS.into_iter().zip(query.samples.clone());
            let of_step = move |(step, samples)| {
                let case = object!({ "query": number, "step": step });
                Measurement::times(&case, "atoll", "ms", samples)
            };
            steps.map(of_step).collect::<Vec<_>>()
        };
        self.queries.iter().flat_map(of_query).collect()
    }
}

impl fmt::Display for PlanningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "- tables at scale factor {}, medians in ms\n", self.scale_factor)?;
        let mut head = vec!["query".to_owned()];
        head.extend(STEPS.map(str::to_owned));
        head.extend(["all", "rewrites"].map(str::to_owned));
        let row = |name: String, steps: &[f64; STEPS.len()]| {
            let all: f64 = steps.iter().sum();
            let mut row = vec![name];
            row.extend(steps.iter().chain([&all]).map(|ms| format!("{ms:.3}")));
            row.push(format!("{:.1} %", steps[2] / all * 100.0));
            row
        };
        let mut sums = [0.0; STEPS.len()];
        let mut rows = Vec::with_capacity(self.queries.len() + 1);
        for query in &self.queries {
            sums.iter_mut().zip(query.medians).for_each(|(sum, median)| *sum += median);
            rows.push(row(format!("Q{}", query.query), &query.medians));
        }
        rows.push(row("all".to_owned(), &sums));
        f.write_str(&table(&head, &rows))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rewrites_are_listed_next_to_all_of_planning() {
        let ms = Duration::from_millis;
        let mut query = QueryPlanning::new(6);
        for rewrites in [1, 2, 9] {
            query.add(&PlanningTimes {
                parser: ms(8),
                rewrites: ms(rewrites),
                optimizer: ms(10),
                ..PlanningTimes::default()
            });
        }
        query.finish();
        let text = PlanningReport { scale_factor: 0.01, queries: vec![query] }.to_string();
        assert!(text.contains("| Q6    | 0.000 |  8.000 |    2.000 |"), "{text}");
        assert!(text.trim_end().ends_with("| 20.000 |   10.0 % |"), "{text}");
    }
}
