//! Observations and decisions over time: as CSV, and as the picture of figures 1 and 3.
//!
//! | Column | Contents |
//! |---|---|
//! | `at_seconds` | time since the run began |
//! | `target` | its name |
//! | `load_percent` | `u` |
//! | `demand_cpus` | cpus of time that it used |
//! | `performance` | work per second; empty where there is no figure |
//! | `rules` | the transitions that fired, `check overloaded allocate` |
//! | `gave`, `released` | core numbers |
//! | `cores` | its number of cores |
//! | `cpus` | its cpus, `0-3` |
//! | `threads` | `cpu:tid` of each running thread that was seen |

mod svg;

use std::fmt::Write;

use atoll_topology::CpuSet;

use crate::decide::Decision;

pub use svg::picture;

/// The header.
pub const HEADER: &str =
    "at_seconds,target,load_percent,demand_cpus,performance,rules,gave,released,cores,cpus,threads";
/// Maximum length of a trace, lines.
const LINES_MAX: usize = 1 << 22;

/// A row.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct TraceRow {
    /// Time since the run began, seconds.
    pub at_seconds: f64,
    /// The target.
    pub target: String,
    /// Load, percent.
    pub load_percent: f64,
    /// Cpus of time that it used.
    pub demand_cpus: f64,
    /// Work per second.
    pub performance: Option<f64>,
    /// Transitions that fired.
    pub rules: Vec<String>,
    /// Cores given.
    pub gave: Vec<u32>,
    /// Cores released.
    pub released: Vec<u32>,
    /// Cores that it has now.
    pub cores: usize,
    /// Their cpus.
    pub cpus: CpuSet,
    /// Where threads ran, as (cpu, thread).
    pub threads: Vec<(u32, u32)>,
}

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}; expected the columns {HEADER}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub reason: String,
}

impl TraceRow {
    /// The row of a decision.
    pub fn new(target: &str, decision: &Decision, demand_cpus: f64) -> Self {
        Self {
            at_seconds: decision.at_seconds,
            target: target.to_owned(),
            load_percent: decision.load,
            demand_cpus,
            performance: decision.performance,
            rules: decision.fired.iter().map(|rule| (*rule).to_owned()).collect(),
            gave: decision.gave.iter().map(|core| core.0).collect(),
            released: decision.released.iter().map(|core| core.0).collect(),
            cores: decision.cores,
            cpus: decision.cpus.clone(),
            threads: Vec::new(),
        }
    }

    /// The row as a line of CSV.
    pub fn line(&self) -> String {
        let joined =
            |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let threads: Vec<_> =
            self.threads.iter().map(|(cpu, tid)| format!("{cpu}:{tid}")).collect();
        let mut line = format!("{:.3},{}", self.at_seconds, quoted(&self.target));
        let performance = self.performance.map_or(String::new(), |it| format!("{it:.3}"));
        let _ = write!(line, ",{:.1},{:.3},{performance}", self.load_percent, self.demand_cpus);
        let _ = write!(line, ",{}", self.rules.join(" "));
        let _ = write!(line, ",{},{}", joined(&self.gave), joined(&self.released));
        // A list of cpus contains commas.
        let _ = write!(line, ",{},{}", self.cores, quoted(&self.cpus.to_string()));
        let _ = write!(line, ",{}", threads.join(" "));
        line
    }

    fn parse(line: &str) -> Result<Self, String> {
        let fields = fields(line)?;
        let [at, target, load, demand, performance, rules, gave, released, cores, cpus, threads] =
            <[String; 11]>::try_from(fields).map_err(|it| format!("{} columns", it.len()))?;
        let real = |text: &str| match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("'{text}' is not a number")),
        };
        let number =
            |text: &str| text.parse::<u32>().map_err(|_| format!("'{text}' is not a number"));
        let numbers =
            |text: &str| text.split_whitespace().map(number).collect::<Result<Vec<u32>, _>>();
        let pair = |text: &str| match text.split_once(':') {
            Some((cpu, tid)) => Ok((number(cpu)?, number(tid)?)),
            None => Err(format!("'{text}' is not cpu:tid")),
        };
        Ok(Self {
            at_seconds: real(&at)?,
            target,
            load_percent: real(&load)?,
            demand_cpus: real(&demand)?,
            performance: match performance.as_str() {
                "" => None,
                text => Some(real(text)?),
            },
            rules: rules.split_whitespace().map(str::to_owned).collect(),
            gave: numbers(&gave)?,
            released: numbers(&released)?,
            cores: number(&cores)? as usize,
            cpus: CpuSet::parse(&cpus).map_err(|error| error.to_string())?,
            threads: threads.split_whitespace().map(pair).collect::<Result<_, _>>()?,
        })
    }
}

/// The rows of a trace.
pub fn parse(text: &str) -> Result<Vec<TraceRow>, TraceError> {
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some(HEADER) {
        return Err(TraceError { line: 1, reason: "not the header of a trace".to_owned() });
    }
    let lines = lines.take(LINES_MAX).filter(|(_, line)| !line.is_empty());
    let row = |(i, line): (usize, &str)| {
        TraceRow::parse(line).map_err(|reason| TraceError { line: i + 1, reason })
    };
    lines.map(row).collect()
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " ")),
        false => text.to_owned(),
    }
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    if is_quoted {
        return Err("a quote is not closed".to_owned());
    }
    fields.push(field);
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> TraceRow {
        TraceRow {
            at_seconds: 1.5,
            target: "a, \"b\"".to_owned(),
            load_percent: 75.0,
            demand_cpus: 3.0,
            performance: Some(12.25),
            rules: vec!["check".to_owned(), "allocate".to_owned()],
            gave: vec![3],
            released: Vec::new(),
            cores: 4,
            cpus: CpuSet::parse("0-2,8").unwrap(),
            threads: vec![(0, 4711), (8, 4712)],
        }
    }

    #[test]
    fn a_trace_reads_back_as_it_was_written() {
        let plain = TraceRow { performance: None, threads: Vec::new(), ..row() };
        let text = format!("{HEADER}\n{}\n{}\n", row().line(), plain.line());
        assert_eq!(parse(&text), Ok(vec![row(), plain]));
    }

    #[test]
    fn an_invalid_line_is_named() {
        let error = parse(&format!("{HEADER}\n{}\n1,2\n", row().line())).unwrap_err();
        assert_eq!((error.line, error.reason.as_str()), (3, "2 columns"));
        assert!(parse("x\n").is_err() && parse("").is_err());
        for wrong in
            ["x,a,1,1,,,,,1,0,", "1,a,1,1,,,,,1,9-1,", "1,a,1,1,,,,,1,0,5", "1,\"a,1,1,,,,,1,0,"]
        {
            assert!(parse(&format!("{HEADER}\n{wrong}\n")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_picture_has_a_mark_for_each_thread_and_the_cores_that_were_given() {
        let later = TraceRow { at_seconds: 2.0, ..row() };
        let svg = picture(&[row(), later]);
        assert!(svg.starts_with("<?xml") && svg.contains("cpu 8"), "{svg}");
        assert!(svg.contains("2 threads"), "{svg}");
        assert!(picture(&[]).contains("no rows"));
    }
}
