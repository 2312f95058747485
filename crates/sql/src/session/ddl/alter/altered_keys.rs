//! The keys and indexes of a table by the names of its columns, while ALTER TABLE changes these.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use atoll_sql_parse::syntax::sql_text;
use atoll_sql_parse::syntax::{parsed_expr, walk_expressions};
use atoll_store::table::{CatalogIndex, CatalogKeyOf, Index, KeyExpression, Unique};
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Expr, Ident};

/// A key by the names of its columns.
pub(super) struct AlteredKey {
    pub(super) unique: Unique,
    pub(super) columns: Vec<String>,
    pub(super) included: Vec<String>,
    /// Its condition, and the expressions of its columns, as text.
    pub(super) condition: Option<Expr>,
    pub(super) expressions: Vec<Option<Expr>>,
    /// Whether its condition or an expression reads a column that gets another type.
    pub(super) is_rebuilt: bool,
}

impl AlteredKey {
    pub(super) fn from_unique(
        unique: &Unique,
        names: &dyn Fn(&[usize]) -> Vec<String>,
    ) -> Result<Self> {
        let condition = unique.condition.as_ref().map(|it| parsed_expr(&it.sql));
        Ok(Self {
            unique: unique.clone(),
            columns: names(&unique.columns),
            included: names(&unique.included),
            condition: condition.transpose()?,
            expressions: parsed(&unique.expressions)?,
            is_rebuilt: false,
        })
    }

    pub(super) fn uses(&self, column: &str, normalize: &dyn Fn(&Ident) -> String) -> bool {
        self.columns.iter().chain(&self.included).any(|own| own == column)
            || self.condition.as_ref().is_some_and(|it| columns_of(it, normalize).contains(column))
    }

    /// Whether its condition or an expression reads a column.
    pub(super) fn computes_from(&self, column: &str, normalize: &dyn Fn(&Ident) -> String) -> bool {
        let mut exprs = self.expressions.iter().flatten().chain(&self.condition);
        exprs.any(|expr| columns_of(expr, normalize).contains(column))
    }
}

/// An index that is not unique by the names of its columns.
pub(super) struct AlteredIndex {
    pub(super) index: Index,
    pub(super) keys: Vec<String>,
    pub(super) included: Vec<String>,
    pub(super) condition: Option<Expr>,
    pub(super) expressions: Vec<Option<Expr>>,
    /// Whether its condition or an expression reads a column that gets another type.
    pub(super) is_rebuilt: bool,
}

impl AlteredIndex {
    pub(super) fn from_index(
        index: &Index,
        names: &dyn Fn(&[usize]) -> Vec<String>,
    ) -> Result<Self> {
        let columns: Vec<usize> = index.keys.iter().map(|key| key.column).collect();
        Ok(Self {
            index: index.clone(),
            keys: names(&columns),
            included: names(&index.included),
            condition: index.condition.as_deref().map(parsed_expr).transpose()?,
            expressions: parsed(&index.expressions)?,
            is_rebuilt: false,
        })
    }

    pub(super) fn uses(&self, column: &str, normalize: &dyn Fn(&Ident) -> String) -> bool {
        self.keys.iter().chain(&self.included).any(|own| own == column)
            || self.condition.as_ref().is_some_and(|it| columns_of(it, normalize).contains(column))
    }

    /// Whether its condition or an expression reads a column.
    pub(super) fn computes_from(&self, column: &str, normalize: &dyn Fn(&Ident) -> String) -> bool {
        let mut exprs = self.expressions.iter().flatten().chain(&self.condition);
        exprs.any(|expr| columns_of(expr, normalize).contains(column))
    }
}

/// An index that holds no rows by the names of its columns.
pub(super) struct AlteredCatalogIndex {
    index: CatalogIndex,
    keys: Vec<AlteredCatalogKey>,
    included: Vec<String>,
    condition: Option<Expr>,
}

enum AlteredCatalogKey {
    Column(String),
    Expression(Box<Expr>),
}

impl AlteredCatalogIndex {
    pub(super) fn from_index(
        index: &CatalogIndex,
        names: &dyn Fn(&[usize]) -> Vec<String>,
    ) -> Result<Self> {
        let mut keys = Vec::with_capacity(index.keys.len());
        for key in &index.keys {
            keys.push(match &key.of {
                CatalogKeyOf::Column(column) => {
                    AlteredCatalogKey::Column(names(&[*column]).concat())
                }
                CatalogKeyOf::Expression(sql) => {
                    AlteredCatalogKey::Expression(Box::new(parsed_expr(sql)?))
                }
            });
        }
        Ok(Self {
            keys,
            included: names(&index.included),
            condition: index.condition.as_deref().map(parsed_expr).transpose()?,
            index: index.clone(),
        })
    }

    pub(super) fn uses(&self, column: &str, normalize: &dyn Fn(&Ident) -> String) -> bool {
        let reads = |expr: &Expr| columns_of(expr, normalize).contains(column);
        let is_key = self.keys.iter().any(|key| match key {
            AlteredCatalogKey::Column(own) => own == column,
            AlteredCatalogKey::Expression(expr) => reads(expr),
        });
        is_key
            || self.included.iter().any(|own| own == column)
            || self.condition.as_ref().is_some_and(reads)
    }

    /// The names of columns that are keys or included.
    pub(super) fn columns_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let keys = self.keys.iter_mut().filter_map(|key| match key {
            AlteredCatalogKey::Column(column) => Some(column),
            AlteredCatalogKey::Expression(_) => None,
        });
        keys.chain(&mut self.included)
    }

    /// Its expressions and its condition.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let exprs = self.keys.iter_mut().filter_map(|key| match key {
            AlteredCatalogKey::Column(_) => None,
            AlteredCatalogKey::Expression(expr) => Some(&mut **expr),
        });
        exprs.chain(&mut self.condition)
    }

    /// The index over columns with these numbers.
    pub(super) fn numbered(
        self,
        numbers: &dyn Fn(&[String]) -> Result<Vec<usize>>,
    ) -> Result<CatalogIndex> {
        let mut index = self.index;
        for (key, altered) in index.keys.iter_mut().zip(self.keys) {
            key.of = match altered {
                AlteredCatalogKey::Column(name) => CatalogKeyOf::Column(numbers(&[name])?[0]),
                AlteredCatalogKey::Expression(expr) => {
                    CatalogKeyOf::Expression(sql_text(&expr).into())
                }
            };
        }
        index.included = numbers(&self.included)?;
        index.condition = self.condition.map(|condition| sql_text(&condition).into());
        Ok(index)
    }
}

/// The expressions of an index's columns.
fn parsed(expressions: &[Option<KeyExpression>]) -> Result<Vec<Option<Expr>>> {
    let parse = |it: &Option<KeyExpression>| it.as_ref().map(|it| parsed_expr(&it.sql)).transpose();
    expressions.iter().map(parse).collect()
}

/// Names of the columns that a condition reads.
pub(super) fn columns_of(
    condition: &Expr,
    normalize: &dyn Fn(&Ident) -> String,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let _ = walk_expressions(condition, &mut |expr| {
        match expr {
            Expr::Identifier(name) => drop(names.insert(normalize(name))),
            Expr::CompoundIdentifier(parts) => names.extend(parts.last().map(normalize)),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    names
}
