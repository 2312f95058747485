//! Relations in FROM: tables, their options and their aliases.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{FunctionArg, TableFactor};

use super::{joins, refuse};

pub(super) fn check(factor: &mut TableFactor) -> Result<()> {
    if let Some(alias) = joins::alias(factor) {
        refuse(alias.at.is_some(), "AT after an alias", "")?;
        refuse(
            alias.columns.iter().any(|column| column.data_type.is_some()),
            "a type in the columns of an alias",
            "use CAST in the select list",
        )?;
    }
    match factor {
        TableFactor::Table { .. } => table(factor),
        TableFactor::Function { with_ordinality, args, .. } => {
            refuse(*with_ordinality, "WITH ORDINALITY", "use row_number() OVER ()")?;
            let is_named = |arg: &FunctionArg| !matches!(arg, FunctionArg::Unnamed(_));
            refuse(args.iter().any(is_named), "a named argument of a table function", "")
        }
        TableFactor::NestedJoin { table_with_joins, .. } => joins::check(table_with_joins),
        TableFactor::MatchRecognize { .. } => refuse(true, "MATCH_RECOGNIZE", ""),
        TableFactor::JsonTable { .. } => refuse(true, "JSON_TABLE", ""),
        TableFactor::OpenJsonTable { .. } => refuse(true, "OPENJSON", ""),
        TableFactor::XmlTable { .. } => refuse(true, "XMLTABLE", ""),
        TableFactor::SemanticView { .. } => refuse(true, "SEMANTIC_VIEW", ""),
        TableFactor::TableFunction { .. } => {
            refuse(true, "TABLE(…)", "call the function in FROM without TABLE")
        }
        TableFactor::Derived { .. }
        | TableFactor::UNNEST { .. }
        | TableFactor::Pivot { .. }
        | TableFactor::Unpivot { .. } => Ok(()),
    }
}

fn table(factor: &TableFactor) -> Result<()> {
    let TableFactor::Table {
        name,
        args,
        with_hints,
        version,
        with_ordinality,
        partitions,
        json_path,
        index_hints,
        // The alias is checked above, and `sample` has its own planner.
        alias: _,
        sample: _,
    } = factor
    else {
        return Ok(());
    };
    refuse(!with_hints.is_empty(), &format!("WITH (…) after the table {name}"), "leave it out")?;
    refuse(version.is_some(), "a table as of another time", "")?;
    refuse(*with_ordinality, "WITH ORDINALITY", "use row_number() OVER ()")?;
    refuse(!partitions.is_empty(), "PARTITION after a table", "use WHERE")?;
    refuse(json_path.is_some(), "a JSON path after a table", "")?;
    refuse(!index_hints.is_empty(), "an index hint", "leave it out")?;
    let settings = args.as_ref().is_some_and(|args| args.settings.is_some());
    refuse(settings, "SETTINGS of a table function", "")
}
