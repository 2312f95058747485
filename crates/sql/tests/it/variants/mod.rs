//! Variants of the queries in the suite's records.
//!
//! A record shows one form of a statement; plans go wrong in others: if an expression is next to its cast, if a column
//! occurs twice, if an alias is also an internal name of the plan. Variants are made from every query that returns
//! rows, and run in the same session:
//!
//! - `inside`: with expressions, keys and calls added to those of the query, whose columns must stay;
//! - `outside`: with the query as a table, whose right answers follow from the record's rows.
//!
//! A variant that fails, or returns other rows, is reported with its record. A variant that cannot run for an unrelated
//! reason (no cast of that type, say) also fails alone, and is left out.
//!
//! `make test` runs a tenth of all, by a seed; `cargo xtask variants` runs all.

mod additions;
mod calls;
mod inside;
mod names;
mod outside;
mod rows;
mod tests;
mod walk;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use atoll_sql::{Session, SqlError, TransactionState};

use inside::Inside;
use outside::{Outside, Steps};
pub(crate) use rows::Answer;
use rows::{Expected, answer};

/// The variable that selects the variants to run: `all`, or the seed of a tenth.
const SHARE: &str = "ATOLL_VARIANTS";
/// The variable that names the one file whose records are run.
const FILE: &str = "ATOLL_VARIANTS_FILE";
/// The seed of the tenth that runs with all tests.
const SEED: u64 = 1;
/// Records with more rows show nothing new.
const ROWS_MAX: usize = 5000;

/// The variants to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    All,
    Tenth { seed: u64 },
}

impl Share {
    /// The selection of the environment.
    pub(crate) fn asked() -> Self {
        match std::env::var(SHARE).ok().as_deref() {
            None | Some("") => Self::Tenth { seed: SEED },
            Some("all") => Self::All,
            Some(seed) => Self::Tenth { seed: seed.parse().expect("`all`, or a number as seed") },
        }
    }

    fn has(self, place: &Place<'_>, kind: &str) -> bool {
        let Self::Tenth { seed } = self else { return true };
        let mut hasher = DefaultHasher::new();
        (seed, place.file, place.line, kind).hash(&mut hasher);
        hasher.finish().is_multiple_of(10)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all variants"),
            Self::Tenth { seed } => write!(f, "a tenth of the variants, by the seed {seed}"),
        }
    }
}

/// Whether the environment selects this file of the suite, or all files.
pub(crate) fn is_asked_for(file: &str) -> bool {
    std::env::var(FILE)
        .map_or(true, |name| name.is_empty() || file == name.trim_end_matches(".slt"))
}

/// The location of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: u32,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A record's query, and its result.
pub(crate) struct Ran {
    pub(crate) sql: String,
    pub(crate) answer: Answer,
    /// Whether the record specifies the order of its rows.
    pub(crate) is_sorted: bool,
}

/// Runs variants and collects their errors.
pub(crate) struct Variants {
    share: Share,
    pub(crate) findings: Vec<String>,
    pub(crate) count: usize,
    /// Reasons why variants were left out: how often, and the first.
    pub(crate) left_out: BTreeMap<String, (usize, String)>,
}

/// How a variant went wrong.
struct Wrong {
    sql: String,
    what: String,
}

/// Why a variant does not count.
struct LeftOut {
    sql: String,
    why: String,
}

impl Variants {
    pub(crate) fn new(share: Share) -> Self {
        Self { share, findings: Vec::new(), count: 0, left_out: BTreeMap::new() }
    }

    /// Runs the variants of a query that has just run in this session.
    pub(crate) fn check(&mut self, session: &Session, place: &Place<'_>, ran: &Ran) {
        let sql = ran.sql.trim().trim_end_matches(';');
        // A variant that fails would fail the record's transaction.
        let is_idle = session.transaction_state() == TransactionState::Idle;
        if !is_idle || !is_steady(sql) || ran.answer.rows.len() > ROWS_MAX {
            return;
        }
        for variant in outside::variants(sql, &ran.answer) {
            if self.share.has(place, variant.kind) {
                self.tell(place, variant.kind, ran, session, outside_wrong(session, &variant));
            }
        }
        for variant in inside::variants(sql, ran.answer.types.len()) {
            if self.share.has(place, variant.kind) {
                self.tell(place, variant.kind, ran, session, inside_wrong(session, &variant, ran));
            }
        }
    }

    fn tell(
        &mut self,
        place: &Place<'_>,
        kind: &str,
        ran: &Ran,
        session: &Session,
        outcome: Result<Option<Wrong>, LeftOut>,
    ) {
        self.count += 1;
        match outcome {
            Ok(None) => (),
            Ok(Some(wrong)) => {
                match known(place, kind, &ran.sql).or_else(|| dotted_alias(&wrong.what)) {
                    Some(why) => self.leave_out(place, &wrong.sql, why),
                    None if is_repeatable(session, ran) => {
                        self.findings.push(finding(place, kind, &wrong));
                    }
                    None => self.leave_out(place, &wrong.sql, "the record gives other rows now"),
                }
            }
            Err(LeftOut { sql, why }) => self.leave_out(place, &sql, &why),
        }
    }

    fn leave_out(&mut self, place: &Place<'_>, sql: &str, why: &str) {
        let first = || (0, format!("{place}: {}", on_one_line(sql)));
        self.left_out.entry(why.to_owned()).or_insert_with(first).0 += 1;
    }

    /// Adds the results of another file.
    pub(crate) fn extend(&mut self, other: Self) {
        self.count += other.count;
        self.findings.extend(other.findings);
        for (why, (count, first)) in other.left_out {
            self.left_out.entry(why).or_insert((0, first)).0 += count;
        }
    }

    /// Prints how many ran, and in a run of all of them which were left out.
    pub(crate) fn print_summary(&self) {
        if self.share != Share::All {
            return;
        }
        println!("{} variants, {} of them wrong", self.count, self.findings.len());
        for (why, (count, first)) in &self.left_out {
            println!("left out {count}: {why}\n    {first}");
        }
    }
}

fn finding(place: &Place<'_>, kind: &str, wrong: &Wrong) -> String {
    let file = place.file.trim_end_matches(".slt");
    format!(
        "{place}, {kind}: {}\n    {}\n    again: cargo xtask variants --file {file}",
        wrong.what,
        on_one_line(&wrong.sql)
    )
}

fn on_one_line(sql: &str) -> String {
    // Comments end with their line.
    if sql.contains("--") { sql.to_owned() } else { sql.replace('\n', " ") }
}

/// Variants of one kind that are wrong today.
struct Known {
    file: &'static str,
    /// The prefix of the kind.
    kind: &'static str,
    /// A part of the record.
    part: &'static str,
    why: &'static str,
}

const KNOWN: [Known; 11] = [
    Known {
        file: "dialect_select.slt",
        kind: "CTE with clashing names",
        part: "p AS (SELECT d * 2 AS e",
        why: "a query of WITH whose name a query within it gives to its own, when aliases are reused",
    },
    Known {
        file: "expression_names.slt",
        kind: "",
        part: "a::varchar",
        why: "the cast is a key of the grouping, which is NULL where a set lacks it",
    },
    Known {
        file: "joins.slt",
        kind: "expressions beside their casts",
        part: "su.*, id FROM su FULL JOIN",
        why: "a column of USING beside the same column of one table, under ORDER BY",
    },
    Known {
        file: "jsonb_order.slt",
        kind: "",
        part: "",
        why: "equal values of JSONB have several texts: 1 and 1.0",
    },
    Known {
        file: "kept_types.slt",
        kind: "",
        part: "10.0.0.",
        why: "the cast of an INET to text shows the length of its network, which clients do not see",
    },
    Known {
        file: "kept_types.slt",
        kind: "",
        part: "9.1.0.0",
        why: "the cast of an INET to text shows the length of its network, which clients do not see",
    },
    Known {
        file: "network_addresses.slt",
        kind: "",
        part: "",
        why: "the cast of an INET to text shows the length of its network, which clients do not see",
    },
    Known {
        file: "ranges.slt",
        kind: "",
        part: "FROM stay GROUP BY n ORDER BY n",
        why: "equal ranges of numbers have several texts: [1,2) and [1.0,2)",
    },
    Known {
        file: "ranges.slt",
        kind: "",
        part: "SELECT DISTINCT n FROM stay",
        why: "equal ranges of numbers have several texts: [1,2) and [1.0,2)",
    },
    Known {
        file: "syntax.slt",
        kind: "CTE with clashing names",
        part: "true IS DISTINCT FROM false",
        why: "the dialect of MySQL reads names in double quotes as texts",
    },
    Known {
        file: "timezones.slt",
        kind: "UNION",
        part: "",
        why: "UNION returns instants in UTC, which clients show in the session's time zone",
    },
];

/// Why a variant of a record is known to be wrong.
fn known(place: &Place<'_>, kind: &str, sql: &str) -> Option<&'static str> {
    let is_listed =
        |of: &&Known| place.file == of.file && kind.starts_with(of.kind) && sql.contains(of.part);
    KNOWN.iter().find(is_listed).map(|known| known.why)
}

/// Why a variant that has `id, id AS "t.id"` in a subquery or view is known to be wrong.
fn dotted_alias(what: &str) -> Option<&'static str> {
    let named: Vec<&str> = what.split('"').collect();
    let [start, first, _, second, ..] = named[..] else { return None };
    let is_alias_of = |expr: &str, column: &str| {
        column.contains('.') && expr.strip_suffix(column).is_some_and(|rest| rest.ends_with(" AS "))
    };
    let is_known = start.starts_with("Projections require unique expression names")
        && (is_alias_of(first, second) || is_alias_of(second, first));
    is_known.then_some(
        "an alias such as \"t.id\" beside the column t.id is refused in subqueries and views",
    )
}

/// Whether a statement only reads, and always gives the same result.
fn is_steady(sql: &str) -> bool {
    const FIRST: [&str; 5] = ["select", "with", "values", "from", "table"];
    const OTHERS: [&str; 35] = [
        // Comments of records whose query returns other rows each time, or is of another dialect.
        "unsteady",
        "random",
        "setseed",
        "nextval",
        "setval",
        "currval",
        "lastval",
        "uuid",
        "gen_random_uuid",
        "uuidv4",
        "uuidv7",
        "clock_timestamp",
        "timeofday",
        "pg_sleep",
        "sleep",
        "set_config",
        "pg_cancel_backend",
        "pg_terminate_backend",
        "tablesample",
        "sample",
        "insert",
        "update",
        "delete",
        "merge",
        "explain",
        "into",
        "shuffle",
        "txid_current",
        "pg_current_xact_id",
        "pg_stat_activity",
        "pg_stat_statements",
        "pg_prepared_statements",
        "system",
        "columns",
        "for",
    ];
    let lower = sql.to_lowercase();
    let mut words =
        lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let first = words.clone().next().unwrap_or_default();
    FIRST.contains(&first)
        && words.all(|word| !OTHERS.contains(&word) && !word.contains("advisory"))
}

/// Whether the record still gives the same result.
fn is_repeatable(session: &Session, ran: &Ran) -> bool {
    let known = (0..ran.answer.types.len()).collect();
    let expected = Expected { known, rows: ran.answer.rows.clone(), ..Expected::default() };
    answer(session, &ran.sql).is_ok_and(|again| expected.difference(&again).is_none())
}

/// The error in a statement's rows, or of running it.
fn difference(
    session: &Session,
    sql: &str,
    expected: &Expected,
) -> Result<Option<String>, SqlError> {
    Ok(expected.difference(&answer(session, sql)?))
}

/// Whether an error is about the session's resources, not about the statement.
fn is_short_of_means(error: &SqlError) -> bool {
    ["53", "54", "57"].contains(&&error.state.code()[..2])
}

fn run_steps(session: &Session, steps: &Steps) -> Result<Answer, SqlError> {
    if let Some(before) = &steps.before {
        answer(session, before)?;
    }
    let result = answer(session, &steps.sql);
    if let Some(after) = &steps.after {
        answer(session, after)?;
    }
    result
}

fn outside_wrong(session: &Session, variant: &Outside) -> Result<Option<Wrong>, LeftOut> {
    let sql = match &variant.steps.before {
        Some(before) => format!("{before}; {}", variant.steps.sql),
        None => variant.steps.sql.clone(),
    };
    let left_out = |sql: &str, why: String| Err(LeftOut { sql: sql.to_owned(), why });
    match run_steps(session, &variant.steps) {
        Ok(answer) => {
            let what = variant.expected.difference(&answer);
            Ok(what.map(|what| Wrong { sql, what }))
        }
        Err(error) if is_short_of_means(&error) => left_out(&sql, error.message),
        Err(error) => match run_steps(session, &variant.plain) {
            Ok(_) => Ok(Some(Wrong { sql, what: error.message })),
            Err(error) => left_out(&variant.plain.sql, error.message),
        },
    }
}

fn inside_wrong(session: &Session, variant: &Inside, ran: &Ran) -> Result<Option<Wrong>, LeftOut> {
    let wrong_with = |chosen: &[usize]| {
        let sql = variant.sql(chosen);
        let expected = variant.expected(chosen, &ran.answer, ran.is_sorted);
        match difference(session, &sql, &expected) {
            Ok(what) => Ok(what.map(|what| Wrong { sql, what })),
            Err(error) if is_short_of_means(&error) => Err(LeftOut { sql, why: error.message }),
            Err(error) => Ok(Some(Wrong { sql, what: error.message })),
        }
    };
    let all: Vec<usize> = (0..variant.len()).collect();
    if wrong_with(&all)?.is_none() {
        return Ok(None);
    }
    if let Some(Wrong { sql, what }) = wrong_with(&[])? {
        return Err(LeftOut { sql, why: format!("sqlparser reads it otherwise: {what}") });
    }
    let mut able = all;
    let mut unable = None;
    able.retain(|&addition| {
        let Some(sql) = variant.alone(addition) else { return true };
        match answer(session, &sql) {
            Ok(_) => true,
            Err(error) => {
                unable = Some(LeftOut { sql, why: error.message });
                false
            }
        }
    });
    let Some(wrong) = wrong_with(&able)? else { return unable.map_or(Ok(None), Err) };
    for addition in able {
        if let Some(wrong) = wrong_with(&[addition])? {
            return Ok(Some(wrong));
        }
    }
    Ok(Some(wrong))
}
