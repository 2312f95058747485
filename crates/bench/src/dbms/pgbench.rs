//! pgbench's transactions, after TPC-B: a load that reads and writes, over tables of its own.

use anyhow::{Context, Result, ensure};
use atoll_sys::SplitMix64;
use serde::{Deserialize, Serialize};

use super::dialect::Dialect;
use crate::protocol::Answer;

/// Rows of accounts and tellers for each branch.
const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;
/// The greatest amount of a transaction.
const AMOUNT: u64 = 5000;

/// The statements of a transaction between its begin and its end, as `pgbench` has them.
const STATEMENTS: [&str; 5] = [
    "UPDATE pgbench_accounts SET abalance = abalance + {delta} WHERE aid = {aid}",
    "SELECT abalance FROM pgbench_accounts WHERE aid = {aid}",
    "UPDATE pgbench_tellers SET tbalance = tbalance + {delta} WHERE tid = {tid}",
    "UPDATE pgbench_branches SET bbalance = bbalance + {delta} WHERE bid = {bid}",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
     VALUES ({tid}, {bid}, {aid}, {delta}, CURRENT_TIMESTAMP)",
];

/// Reads the accounts once.
pub(super) const ACCOUNTS_COUNT: &str = "SELECT count(*) FROM pgbench_accounts";

/// The four sums that are equal after any number of whole transactions.
pub(super) const SUMS: &str = "SELECT (SELECT sum(abalance) FROM pgbench_accounts), \
     (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), \
     (SELECT sum(delta) FROM pgbench_history)";

/// What a client runs again and again, each time with other keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TransactionScript {
    /// With `{aid}`, `{bid}`, `{tid}` and `{delta}`.
    statements: Vec<String>,
    /// Greatest values of the keys.
    accounts: u64,
    tellers: u64,
    branches: u64,
    amount: u64,
    seed: u64,
}

impl TransactionScript {
    /// For tables of this scale.
    pub(super) fn new(dialect: Dialect, scale: u32, seed: u64) -> Self {
        let begin = match dialect {
            // A transaction that only reads at first could not write later.
            Dialect::Sqlite => "BEGIN IMMEDIATE",
            _ => "START TRANSACTION",
        };
        let all = [begin].into_iter().chain(STATEMENTS).chain(["COMMIT"]);
        let branches = u64::from(scale);
        Self {
            statements: all.map(str::to_owned).collect(),
            accounts: branches * ACCOUNTS,
            tellers: branches * TELLERS,
            branches,
            amount: AMOUNT,
            seed,
        }
    }

    /// Where the keys of a client come from.
    pub(super) fn random(&self, client: u32) -> SplitMix64 {
        SplitMix64::new(self.seed.wrapping_add(u64::from(client)))
    }

    /// The statements of the next transaction.
    pub(super) fn next(&self, random: &mut SplitMix64) -> Vec<String> {
        let mut key = |most: u64| (1 + random.below(most)).to_string();
        let keys = [
            ("{aid}", key(self.accounts)),
            ("{bid}", key(self.branches)),
            ("{tid}", key(self.tellers)),
            (
                "{delta}",
                (random.below(2 * self.amount + 1) as i64 - self.amount as i64).to_string(),
            ),
        ];
        let filled = |statement: &String| {
            keys.iter().fold(statement.clone(), |text, (name, value)| text.replace(name, value))
        };
        self.statements.iter().map(filled).collect()
    }
}

/// The queries of DataFusion that make the rows; the history has none at first.
pub(super) fn rows(scale: u32) -> [(&'static str, String); 3] {
    let (accounts, tellers) = (u64::from(scale) * ACCOUNTS, u64::from(scale) * TELLERS);
    let zero = "CAST(0 AS INT)";
    let branch = |each: u64| format!("CAST((value - 1) / {each} + 1 AS INT) AS bid");
    [
        (
            "pgbench_branches",
            format!(
                "SELECT CAST(value AS INT) AS bid, {zero} AS bbalance, repeat(' ', 88) AS filler \
                 FROM generate_series(1, {scale})"
            ),
        ),
        (
            "pgbench_tellers",
            format!(
                "SELECT CAST(value AS INT) AS tid, {}, {zero} AS tbalance, \
                 repeat(' ', 84) AS filler FROM generate_series(1, {tellers})",
                branch(TELLERS)
            ),
        ),
        (
            "pgbench_accounts",
            format!(
                "SELECT CAST(value AS INT) AS aid, {}, {zero} AS abalance, \
                 repeat(' ', 84) AS filler FROM generate_series(1, {accounts})",
                branch(ACCOUNTS)
            ),
        ),
    ]
}

/// Checks the answer to [`SUMS`].
///
/// # Errors
/// When a transaction is there in part, or an update was lost.
pub(super) fn check(answer: &Answer) -> Result<()> {
    let sums = answer.values.first().context("the sums of pgbench's tables have no row")?;
    ensure!(
        sums.iter().all(|sum| sum.is_some() && *sum == sums[0]),
        "pgbench's tables do not add up: accounts, tellers, branches and history have {sums:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_have_keys_of_their_own_and_repeat_with_the_seed() {
        let script = TransactionScript::new(Dialect::Postgres, 2, 7);
        let (mut one, mut other) = (script.random(0), script.random(1));
        let first = script.next(&mut one);
        assert_eq!(first.len(), 7);
        assert!(first[0] == "START TRANSACTION" && first[6] == "COMMIT", "{first:?}");
        assert!(first.iter().all(|text| !text.contains('{')), "{first:?}");
        assert!(first != script.next(&mut one) && first != script.next(&mut other));
        assert_eq!(first, script.next(&mut script.random(0)));
        let sqlite = TransactionScript::new(Dialect::Sqlite, 1, 7);
        assert_eq!(sqlite.next(&mut sqlite.random(0))[0], "BEGIN IMMEDIATE");
    }

    #[test]
    fn sums_that_differ_are_an_error() {
        let answer = |values: [Option<&str>; 4]| Answer {
            values: vec![values.map(|it| it.map(str::to_owned)).to_vec()],
            ..Answer::default()
        };
        assert!(check(&answer([Some("-3"); 4])).is_ok());
        let torn = check(&answer([Some("5"), Some("5"), Some("5"), Some("4")]));
        assert!(torn.unwrap_err().to_string().contains("do not add up"));
        assert!(check(&answer([None; 4])).is_err(), "no transaction was run");
        assert!(check(&Answer::default()).is_err());
    }
}
