//! Joins, and words that are joins elsewhere and would be aliases here.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, TableAlias, TableFactor, TableWithJoins,
};

use super::refuse;

/// Words before JOIN in DuckDB, ClickHouse, Spark and SQL Server. The parser takes them for the alias of
/// the table before: `a POSITIONAL JOIN b` would be every row of `a` with every row of `b`.
const JOIN_WORDS: [&str; 11] = [
    "ANTI",
    "ANY",
    "ASOF",
    "GLOBAL",
    "HASH",
    "LOOP",
    "MERGE",
    "PASTE",
    "POSITIONAL",
    "REMOTE",
    "SEMI",
];

pub(super) fn check(table: &mut TableWithJoins) -> Result<()> {
    let mut before = &table.relation;
    for join in &mut table.joins {
        check_alias(before)?;
        operator(join)?;
        before = &join.relation;
    }
    Ok(())
}

fn check_alias(before: &TableFactor) -> Result<()> {
    let Some(TableAlias { explicit: false, name, columns, .. }) = alias(before) else {
        return Ok(());
    };
    let word = name.value.to_ascii_uppercase();
    let is_join = name.quote_style.is_none() && columns.is_empty();
    refuse(
        is_join && JOIN_WORDS.contains(&word.as_str()),
        &format!("{word} JOIN"),
        &format!("if {} is meant as an alias, write AS {}", name.value, name.value),
    )
}

pub(super) fn alias(factor: &TableFactor) -> Option<&TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Pivot { alias, .. }
        | TableFactor::Unpivot { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

fn operator(join: &mut Join) -> Result<()> {
    // These are ours, see `dialect::positional`.
    if join.global {
        return Ok(());
    }
    let name = match &mut join.join_operator {
        JoinOperator::Semi(constraint) => {
            join.join_operator = JoinOperator::LeftSemi(constraint.clone());
            return Ok(());
        }
        JoinOperator::Anti(constraint) => {
            join.join_operator = JoinOperator::LeftAnti(constraint.clone());
            return Ok(());
        }
        JoinOperator::AsOf { .. } => "ASOF JOIN",
        JoinOperator::CrossApply => "CROSS APPLY",
        JoinOperator::OuterApply => "OUTER APPLY",
        JoinOperator::StraightJoin(_) => "STRAIGHT_JOIN",
        JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
            "ARRAY JOIN"
        }
        JoinOperator::CrossJoin(constraint) if !matches!(constraint, JoinConstraint::None) => {
            "CROSS JOIN with a condition"
        }
        _ => return Ok(()),
    };
    let instead = match name {
        "STRAIGHT_JOIN" | "CROSS JOIN with a condition" => "use JOIN … ON",
        "ARRAY JOIN" => "use unnest() in the select list",
        _ => "",
    };
    refuse(true, name, instead)
}
