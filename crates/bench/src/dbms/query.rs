//! What a run measures: one query with varying parameters, of TPC-H or of a named access pattern.

use std::fmt;
use std::str::FromStr;

use anyhow::Result;
use atoll_sql::tpch::QUERIES;
use atoll_sys::SplitMix64;
use serde::{Deserialize, Serialize};

use super::dialect::{Dialect, folded};
use super::pgbench::ACCOUNTS_COUNT;
use crate::tpch::parameters;

/// Texts of a query, which clients take in turn.
pub(super) const VARIANTS: usize = 16;

/// Orders that one statement of `point-reads` looks up.
const POINTS: u64 = 100;

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) enum DbmsQuery {
    /// A query of TPC-H by its number.
    Tpch(u8),
    /// Reads all rows of a table of two columns.
    NarrowScan,
    /// Reads most columns of all rows of the widest table.
    WideScan,
    /// Looks up a hundred orders by their keys.
    PointReads,
    /// Builds a small hash table of parts, and probes it with all order lines.
    HashJoin,
    /// Sums of all order lines by supplier: random writes to a table of groups.
    Grouping,
    /// Not a query: the transactions of pgbench.
    Pgbench,
}

/// Those with a name for their access pattern.
pub(super) const SYNTHETIC: [DbmsQuery; 5] = [
    DbmsQuery::NarrowScan,
    DbmsQuery::WideScan,
    DbmsQuery::PointReads,
    DbmsQuery::HashJoin,
    DbmsQuery::Grouping,
];

/// TPC-H's queries that every system runs, and none for minutes: without subqueries that refer to the outer one.
const TPCH_COMMON: [u8; 11] = [1, 3, 5, 6, 7, 8, 9, 10, 12, 14, 19];

/// What a user names: a query, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QuerySet(pub(super) Vec<DbmsQuery>);

impl DbmsQuery {
    /// The texts in a dialect; the same for every system, arm and repetition.
    pub(super) fn texts(
        self,
        dialect: Dialect,
        seed: u64,
        scale_factor: f64,
    ) -> Result<Vec<String>> {
        let text = |variant: usize| -> Result<String> {
            match self {
                Self::Tpch(number) => {
                    let validation = QUERIES[usize::from(number) - 1];
                    let fresh = parameters::fresh(number, validation, seed, variant)?;
                    Ok(folded(fresh.trim().trim_end_matches(';')))
                }
                _ => Ok(self.synthetic(seed.wrapping_add(variant as u64), scale_factor)),
            }
        };
        (0..VARIANTS).map(|variant| Ok(dialect.text(&text(variant)?))).collect()
    }

    fn synthetic(self, seed: u64, scale_factor: f64) -> String {
        let mut random = SplitMix64::new(seed);
        match self {
            Self::Tpch(number) => format!("select {number}"),
            Self::Pgbench => ACCOUNTS_COUNT.to_owned(),
            Self::NarrowScan => {
                let most = ((scale_factor * 10_000.0) as u64).max(2);
                let bound = 1 + random.below(most);
                format!("select count(*), sum(n_key) from narrow where n_value < {bound}")
            }
            Self::WideScan => format!(
                "select count(*), sum(l_orderkey), sum(l_partkey), sum(l_suppkey), sum(l_linenumber), \
                 sum(l_quantity), sum(l_extendedprice), sum(l_discount), sum(l_tax), min(l_returnflag), \
                 max(l_linestatus), min(l_shipdate), max(l_commitdate), min(l_receiptdate), \
                 max(l_shipinstruct), min(l_shipmode), max(l_comment) from lineitem \
                 where l_quantity > {}",
                random.below(10)
            ),
            Self::PointReads => {
                let orders = ((scale_factor * 1_500_000.0) as u64).max(1);
                // Of 32 keys in a row the first 8 are used.
                let key = |order: u64| order / 8 * 32 + order % 8 + 1;
                let keys = (0..POINTS).map(|_| key(random.below(orders)).to_string());
                let keys = keys.collect::<Vec<_>>().join(", ");
                format!(
                    "select count(*), sum(o_totalprice) from orders where o_orderkey in ({keys})"
                )
            }
            Self::HashJoin => format!(
                "select count(*), sum(l_quantity) from lineitem, part \
                 where l_partkey = p_partkey and p_size <= {}",
                1 + random.below(10)
            ),
            Self::Grouping => format!(
                "select l_suppkey, sum(l_quantity), count(*) from lineitem \
                 where l_linenumber <> {} group by l_suppkey",
                8 + random.below(1000)
            ),
        }
    }

    /// What is counted of it.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Pgbench => "transactions",
            _ => "queries",
        }
    }

    /// Its access pattern in words.
    pub(super) fn pattern(self) -> &'static str {
        match self {
            Self::Tpch(_) => "TPC-H",
            Self::NarrowScan => "sequential: all rows of two integers",
            Self::WideScan => "sequential: all rows and columns of the widest table",
            Self::PointReads => "random: 100 orders by key",
            Self::HashJoin => "sequential, and random in a small hash table",
            Self::Grouping => "sequential, and random in a table of groups",
            Self::Pgbench => "random: transactions of a read and four writes",
        }
    }
}

impl fmt::Display for DbmsQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tpch(number) => f.pad(&format!("q{number}")),
            Self::NarrowScan => f.pad("narrow-scan"),
            Self::WideScan => f.pad("wide-scan"),
            Self::PointReads => f.pad("point-reads"),
            Self::HashJoin => f.pad("hash-join"),
            Self::Grouping => f.pad("grouping"),
            Self::Pgbench => f.pad("pgbench"),
        }
    }
}

impl From<DbmsQuery> for String {
    fn from(query: DbmsQuery) -> Self {
        query.to_string()
    }
}

impl TryFrom<String> for DbmsQuery {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for DbmsQuery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut named = SYNTHETIC.into_iter().chain([Self::Pgbench]);
        if let Some(query) = named.find(|query| query.to_string() == text) {
            return Ok(query);
        }
        match text.trim_start_matches(['q', 'Q']).parse() {
            Ok(number @ 1..=22) => Ok(Self::Tpch(number)),
            _ => Err(format!(
                "unknown query '{text}'; expected q1 to q22, narrow-scan, wide-scan, point-reads, hash-join, \
                 grouping, pgbench, or tpch, tpch-all, synthetic"
            )),
        }
    }
}

impl FromStr for QuerySet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(match text {
            "tpch" => TPCH_COMMON.map(DbmsQuery::Tpch).to_vec(),
            "tpch-all" => (1..=22).map(DbmsQuery::Tpch).collect(),
            "synthetic" => SYNTHETIC.to_vec(),
            _ => vec![text.parse()?],
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn parameters_vary_and_the_same_seed_gives_the_same_texts() {
        for query in SYNTHETIC.into_iter().chain((1..=22).map(DbmsQuery::Tpch)) {
            let texts = |seed| query.texts(Dialect::Postgres, seed, 0.01).unwrap();
            let different: BTreeSet<String> = texts(1).into_iter().collect();
            assert!(different.len() > 1, "{query} is always the same");
            assert_eq!(texts(1), texts(1));
            assert_eq!(query.to_string().parse(), Ok(query));
        }
    }

    #[test]
    fn sets_and_numbers_are_names_of_queries_too() {
        let set = |text: &str| text.parse::<QuerySet>().map(|set| set.0);
        assert_eq!(set("6"), Ok(vec![DbmsQuery::Tpch(6)]));
        assert_eq!(set("tpch-all").map(|all| all.len()), Ok(22));
        assert_eq!(set("pgbench"), Ok(vec![DbmsQuery::Pgbench]));
        assert_eq!(set("synthetic").map(|all| all.len()), Ok(5));
        assert!(set("q23").unwrap_err().contains("q1 to q22"));
    }
}
