//! The queries: an equality, a range and a string equality on random attributes, four columns returned.
//!
//! Each is drawn around a row, so that it finds at least that one; its range is as wide as leaves some tens of
//! rows where the two equalities leave more.

use std::ops::Range;

use anyhow::{Result, ensure};
use datafusion::common::ScalarValue;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::attributes::{ATTRIBUTES, BOOKINGS};
use super::relation::{Relation, scalar};

/// Queries that each statement is drawn with.
pub(super) const PER_STATEMENT: usize = 64;

/// Most rows that a query is drawn to find; all orders of magnitude up to there are equally likely.
const ROWS_WANTED: f64 = 40.0;
/// Rows that a query is expected to find at most, where its range cannot be narrow enough.
const ROWS_EXPECTED_MAX: f64 = 200.0;
/// Widest range, as a share of the rows.
const RANGE_SHARE_MAX: f64 = 0.25;
/// Sampled rows for value frequencies.
const SAMPLE_ROWS: u64 = 1 << 16;
/// Rows that a query is tried around.
const TRIES: usize = 32;

/// A statement, whose parameters are drawn again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanStatement {
    /// `= $1`
    equal: usize,
    /// `BETWEEN $2 AND $3`
    range: usize,
    /// `= $4`
    text: usize,
    pub(super) output: [usize; 4],
}

/// A statement with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScanQuery {
    pub(super) statement: usize,
    /// Numbers from which the four parameters are made.
    pub(super) numbers: [i64; 4],
}

/// All queries of a run.
#[derive(Debug)]
pub(super) struct ScanQueries {
    pub(super) statements: Vec<ScanStatement>,
    /// [`PER_STATEMENT`] for each statement.
    pub(super) queries: Vec<ScanQuery>,
}

impl ScanStatement {
    /// A statement over different random attributes other than the key.
    fn draw(random: &mut StdRng) -> Self {
        let mut drawn: Vec<usize> = Vec::with_capacity(6);
        let mut other = |wanted: fn(usize) -> bool| loop {
            let number = random.random_range(1..ATTRIBUTES);
            if wanted(number) && !drawn.contains(&number) {
                drawn.push(number);
                return number;
            }
        };
        let (equal, range, text) = (other(is_number), other(is_number), other(is_text));
        let output = [0, other(|_| true), other(|_| true), other(|_| true)];
        Self { equal, range, text, output }
    }

    /// The attributes of its tests and then of its output.
    pub(super) fn attributes(&self) -> [usize; 7] {
        let [first, second, third, fourth] = self.output;
        [self.equal, self.range, self.text, first, second, third, fourth]
    }

    /// The statement with these attributes.
    pub(super) fn of_attributes(attributes: [usize; 7]) -> Result<Self> {
        let [equal, range, text, output @ ..] = attributes;
        let is_one = attributes.iter().all(|number| *number < ATTRIBUTES)
            && is_number(equal)
            && is_number(range)
            && is_text(text);
        ensure!(is_one, "no single statement has the attributes {attributes:?}");
        Ok(Self { equal, range, text, output })
    }

    /// The attributes of the four parameters.
    pub(super) fn parameters(&self) -> [usize; 4] {
        [self.equal, self.range, self.range, self.text]
    }

    /// The query with these in place of parameters.
    fn sql_with(&self, values: &[String; 4]) -> String {
        let name = |number: usize| BOOKINGS[number].name;
        let [equal, low, high, text] = values;
        format!(
            "SELECT {} FROM bookings WHERE {} = {equal} AND {} BETWEEN {low} AND {high} AND {} = {text}",
            self.output.map(name).join(", "),
            name(self.equal),
            name(self.range),
            name(self.text)
        )
    }

    /// The text to prepare.
    pub(super) fn sql(&self) -> String {
        self.sql_with(&["$1", "$2", "$3", "$4"].map(str::to_owned))
    }

    /// The same for many parameters at once: a join with the table that holds them.
    pub(super) fn join_sql(&self, parameters: &str) -> String {
        let name = |number: usize| BOOKINGS[number].name;
        let output = self.output.map(|number| format!("b.{}", name(number)));
        format!(
            "SELECT p.number, {} FROM {parameters} p JOIN bookings b ON b.{} = p.equal AND b.{} = p.text \
             AND b.{} BETWEEN p.low AND p.high",
            output.join(", "),
            name(self.equal),
            name(self.text),
            name(self.range)
        )
    }
}

fn is_text(attribute: usize) -> bool {
    BOOKINGS[attribute].kind.is_text()
}

fn is_number(attribute: usize) -> bool {
    !is_text(attribute)
}

impl ScanQueries {
    /// So many statements, with their parameters.
    pub(super) fn draw(relation: &Relation, statements: usize, seed: u64) -> Result<Self> {
        let samples = ValueSamples::from_relation(relation);
        let mut random = StdRng::seed_from_u64(seed);
        let mut drawn = Self { statements: Vec::new(), queries: Vec::new() };
        let mut tries = 0;
        while drawn.statements.len() < statements {
            tries += 1;
            ensure!(tries < 1000 * statements, "no queries with few rows; use more --rows");
            let statement = ScanStatement::draw(&mut random);
            let number = drawn.statements.len();
            let draw = |_| samples.query(relation, number, &statement, &mut random);
            let queries: Option<Vec<ScanQuery>> = (0..PER_STATEMENT).map(draw).collect();
            if let Some(queries) = queries {
                drawn.statements.push(statement);
                drawn.queries.extend(queries);
            }
        }
        Ok(drawn)
    }

    /// The queries of a statement.
    pub(super) fn of_statement(statement: usize) -> Range<usize> {
        statement * PER_STATEMENT..(statement + 1) * PER_STATEMENT
    }

    /// The statement of a query.
    pub(super) fn statement(&self, query: usize) -> &ScanStatement {
        &self.statements[self.queries[query].statement]
    }

    /// The parameters of a query.
    pub(super) fn values(&self, query: usize) -> [ScalarValue; 4] {
        let attributes = self.statement(query).parameters();
        let numbers = self.queries[query].numbers;
        std::array::from_fn(|at| scalar(BOOKINGS[attributes[at]].kind, Some(numbers[at])))
    }

    /// The query as text.
    pub(super) fn sql(&self, query: usize) -> String {
        let literals = self.values(query).map(|value| match value {
            ScalarValue::Utf8View(Some(text)) => format!("'{}'", text.replace('\'', "''")),
            ScalarValue::Date32(_) => format!("DATE '{value}'"),
            number => number.to_string(),
        });
        self.statement(query).sql_with(&literals)
    }

    /// The rows that a query finds, by looking at all of them.
    pub(super) fn rows_of(&self, query: usize, relation: &Relation) -> Vec<u64> {
        let ScanStatement { equal, range, text, .. } = *self.statement(query);
        let [wanted, low, high, string] = self.queries[query].numbers;
        let passes = |row: &u64| {
            relation.number(*row, equal) == Some(wanted)
                && relation.number(*row, text) == Some(string)
                && relation.number(*row, range).is_some_and(|it| (low..=high).contains(&it))
        };
        (0..relation.rows).filter(passes).collect()
    }
}

/// Values of some rows by attribute, rising.
struct ValueSamples {
    values: Vec<Vec<i64>>,
    rows: usize,
}

impl ValueSamples {
    fn from_relation(relation: &Relation) -> Self {
        let step = (relation.rows / SAMPLE_ROWS).max(1) as usize;
        let rows = (0..relation.rows).step_by(step);
        let values = (0..ATTRIBUTES).map(|number| {
            let mut values: Vec<i64> =
                rows.clone().filter_map(|row| relation.number(row, number)).collect();
            values.sort_unstable();
            values
        });
        Self { values: values.collect(), rows: rows.count().max(1) }
    }

    /// The share of rows whose value lies between these; a value that was not sampled counts as one.
    fn share(&self, attribute: usize, low: i64, high: i64) -> f64 {
        let values = &self.values[attribute];
        let below = values.partition_point(|value| *value < low);
        let found = values.partition_point(|value| *value <= high) - below;
        found.max(1) as f64 / self.rows as f64
    }

    /// Values around one that about such a share of the rows lie between.
    fn around(&self, attribute: usize, centre: i64, share: f64) -> (i64, i64) {
        let values = &self.values[attribute];
        let at = values.partition_point(|value| *value < centre);
        let each_side = (share * self.rows as f64 / 2.0) as usize;
        let value = |at: usize| values.get(at.min(values.len().saturating_sub(1))).copied();
        let (low, high) = (value(at.saturating_sub(each_side)), value(at + each_side));
        (low.unwrap_or(centre).min(centre), high.unwrap_or(centre).max(centre))
    }

    /// Parameters with which the statement should find few rows; None if there are none.
    fn query(
        &self,
        relation: &Relation,
        number: usize,
        statement: &ScanStatement,
        random: &mut StdRng,
    ) -> Option<ScanQuery> {
        let ScanStatement { equal, range, text, .. } = *statement;
        (0..TRIES).find_map(|_| {
            let row = random.random_range(0..relation.rows);
            let value = |attribute: usize| relation.number(row, attribute);
            let (wanted, centre, string) = (value(equal)?, value(range)?, value(text)?);
            let found = relation.rows as f64
                * self.share(equal, wanted, wanted)
                * self.share(text, string, string);
            let aim = ROWS_WANTED.powf(random.random::<f64>());
            let (low, high) = self.around(range, centre, (aim / found).min(RANGE_SHARE_MAX));
            let expected = found * self.share(range, low, high);
            let query = ScanQuery { statement: number, numbers: [wanted, low, high, string] };
            (expected <= ROWS_EXPECTED_MAX).then_some(query)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_find_the_row_around_which_they_were_drawn_and_few_others() {
        let relation = Relation::new(20_000, 3);
        let queries = ScanQueries::draw(&relation, 8, 5).expect("queries");
        assert_eq!(queries.queries.len(), 8 * PER_STATEMENT);
        let mut counts: Vec<usize> = (0..queries.queries.len())
            .step_by(5)
            .map(|query| queries.rows_of(query, &relation).len())
            .collect();
        counts.sort_unstable();
        assert!(counts[0] >= 1 && counts[counts.len() / 2] <= 10, "{counts:?}");
        assert!(counts[counts.len() * 99 / 100] <= 1000, "{counts:?}");
    }

    #[test]
    fn texts_name_the_parameters_in_their_order() {
        let relation = Relation::new(2_000, 3);
        let queries = ScanQueries::draw(&relation, 4, 5).expect("queries");
        for query in 0..queries.queries.len() {
            let (sql, values) = (queries.statement(query).sql(), queries.values(query));
            let text = queries.sql(query);
            assert_eq!(sql.matches('$').count(), 4, "{sql}");
            assert!(!text.contains('$') && text.ends_with('\''), "{text}");
            assert!(values.iter().all(|value| !value.is_null()));
        }
    }
}
