//! The columns and expressions of CREATE INDEX, and the indexes that the store keeps of them.

use std::sync::Arc;

use atoll_store::table::{
    CatalogIndex, CatalogKey, CatalogKeyOf, Index, IndexKey, KeyExpression, KeyFunction, KeyOrder,
    TableDefinition, Unique, is_indexable,
};
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{CreateIndex, Expr, Ident, IndexColumn, ObjectName};

use super::parts::{catalog_text, name_part, stored_expression};
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_parse::syntax::without_parentheses;

/// Columns of an index, at most, as in PostgreSQL.
const COLUMNS_MAX: usize = 32;

/// The methods of PostgreSQL; a table's indexes that hold rows are of the first two.
const METHODS: [&str; 6] = ["btree", "hash", "gin", "gist", "spgist", "brin"];

/// A key of CREATE INDEX.
pub(super) struct DeclaredIndexKey {
    pub(super) of: KeyOf,
    pub(super) order: KeyOrder,
    /// Its operator class, unless that is a type's default one.
    pub(super) operator_class: Option<Arc<str>>,
}

pub(super) enum KeyOf {
    Column(usize),
    /// An expression, and the function of a column that it is, if the store computes that.
    Expression(Box<Expr>, Option<(usize, KeyFunction)>),
}

impl StatementPlanner {
    pub(super) async fn declared_key(
        &self,
        table: &PlacedTable,
        column: &IndexColumn,
    ) -> Result<DeclaredIndexKey> {
        let options = &column.column.options;
        let descending = options.asc == Some(false);
        let nulls_first = options.nulls_first.unwrap_or(descending);
        let operator_class = column.operator_class.as_ref().and_then(|it| self.named_class(it));
        let of = match without_parentheses(column.column.expr.clone()) {
            Expr::Identifier(name) => {
                let numbers = columns_named(self, &[name], table.definition())?;
                KeyOf::Column(numbers[0])
            }
            expr => self.expression_key(table, &expr).await?,
        };
        Ok(DeclaredIndexKey { of, order: KeyOrder { descending, nulls_first }, operator_class })
    }

    pub(super) async fn expression_key(&self, table: &PlacedTable, expr: &Expr) -> Result<KeyOf> {
        let (expr, function) = self.checked_expression(table, expr).await?;
        Ok(KeyOf::Expression(Box::new(expr), function))
    }

    /// The name of an operator class; `None` for the default one of a type, which `pg_get_indexdef` leaves out.
    fn named_class(&self, name: &ObjectName) -> Option<Arc<str>> {
        const DEFAULTS: [&str; 24] = [
            "array",
            "bool",
            "bpchar",
            "bytea",
            "cidr",
            "date",
            "enum",
            "float4",
            "float8",
            "inet",
            "int2",
            "int4",
            "int8",
            "interval",
            "jsonb",
            "macaddr",
            "numeric",
            "oid",
            "text",
            "time",
            "timestamp",
            "timestamptz",
            "timetz",
            "uuid",
        ];
        let name = name.0.last().and_then(|part| part.as_ident());
        let name = name.map(|name| self.normalized(name))?;
        let of_type = name.strip_suffix("_ops");
        let is_default = |of: &str| DEFAULTS.contains(&of) || of == "range" || of == "multirange";
        (!of_type.is_some_and(is_default)).then(|| name.into())
    }
}

/// The method of an index.
pub(super) fn method_of(create: &CreateIndex) -> Result<&'static str> {
    let named = create.using.as_ref().map(|method| method.to_string().to_lowercase());
    let Some(named) = named else { return Ok(METHODS[0]) };
    match METHODS.into_iter().find(|method| *method == named) {
        Some(method) => Ok(method),
        None => stated_err!(UNDEFINED_OBJECT, "access method '{named}' does not exist"),
    }
}

/// Why the store keeps no rows of an index.
pub(super) fn unsupported(
    method: &str,
    keys: &[DeclaredIndexKey],
    definition: &TableDefinition,
) -> Option<String> {
    if !METHODS[..2].contains(&method) {
        return Some(format!("the method {method}"));
    }
    keys.iter().find_map(|key| match &key.of {
        // An ordered index has functions of texts.
        KeyOf::Expression(_, Some((_, function))) if function.is_of_text() => None,
        KeyOf::Expression(..) => Some("an expression".to_owned()),
        KeyOf::Column(column) => {
            let field = definition.columns.field(*column);
            let is_kept = is_indexable(field.data_type());
            (!is_kept).then(|| format!("column '{}' of its type", field.name()))
        }
    })
}

impl KeyOf {
    /// The number of the column, and the expression if it is one of it.
    fn stored(self) -> Result<(usize, Option<KeyExpression>)> {
        match self {
            Self::Column(column) => Ok((column, None)),
            Self::Expression(expr, function) => {
                let (column, expression) = stored_expression(*expr, function)?;
                Ok((column, Some(expression)))
            }
        }
    }
}

/// An index with these keys that is not unique.
pub(super) fn ordered_index(name: Arc<str>, keys: Vec<DeclaredIndexKey>) -> Result<Index> {
    let mut index = Index { name, ..Index::default() };
    for DeclaredIndexKey { of, order, operator_class } in keys {
        let (column, expression) = of.stored()?;
        let KeyOrder { descending, nulls_first } = order;
        index.keys.push(IndexKey { column, descending, nulls_first });
        index.expressions.push(expression);
        index.operator_classes.push(operator_class);
    }
    clear_if_none(&mut index.expressions);
    clear_if_none(&mut index.operator_classes);
    Ok(index)
}

/// A unique index with these keys.
pub(super) fn unique_index(name: Arc<str>, keys: Vec<DeclaredIndexKey>) -> Result<Unique> {
    let mut unique = Unique { name, is_index: true, ..Unique::default() };
    for key in keys {
        let (column, expression) = key.of.stored()?;
        unique.columns.push(column);
        unique.expressions.push(expression);
        unique.order.push(key.order);
        unique.operator_classes.push(key.operator_class);
    }
    clear_if_none(&mut unique.expressions);
    clear_if_none(&mut unique.operator_classes);
    if unique.order.iter().all(|order| *order == KeyOrder::default()) {
        unique.order.clear();
    }
    Ok(unique)
}

fn clear_if_none<T>(parts: &mut Vec<Option<T>>) {
    if parts.iter().all(Option::is_none) {
        parts.clear();
    }
}

/// An index with these keys that holds no rows.
pub(super) fn catalog_index(
    name: Arc<str>,
    method: &str,
    keys: Vec<DeclaredIndexKey>,
) -> CatalogIndex {
    let key = |DeclaredIndexKey { of, order, operator_class }| {
        let of = match of {
            KeyOf::Column(column) => CatalogKeyOf::Column(column),
            KeyOf::Expression(expr, _) => CatalogKeyOf::Expression(catalog_text(*expr)),
        };
        CatalogKey { of, order, operator_class }
    };
    let keys = keys.into_iter().map(key).collect();
    CatalogIndex { name, method: method.into(), keys, ..CatalogIndex::default() }
}

/// The same index without rows.
pub(in crate::session) fn without_rows(index: Index) -> CatalogIndex {
    let key = |(place, key): (usize, &IndexKey)| {
        let expression = index.expressions.get(place).and_then(Option::as_ref);
        let of = match expression {
            Some(expression) => CatalogKeyOf::Expression(Arc::clone(&expression.sql)),
            None => CatalogKeyOf::Column(key.column),
        };
        let order = KeyOrder { descending: key.descending, nulls_first: key.nulls_first };
        let operator_class = index.operator_classes.get(place).cloned().flatten();
        CatalogKey { of, order, operator_class }
    };
    let keys = index.keys.iter().enumerate().map(key).collect();
    let method = METHODS[usize::from(index.is_hash)].into();
    CatalogIndex {
        name: index.name,
        method,
        keys,
        included: index.included,
        condition: index.condition,
    }
}

pub(super) fn check_keys(keys: &[DeclaredIndexKey], definition: &TableDefinition) -> Result<()> {
    if keys.len() > COLUMNS_MAX {
        return plan_err!("an index cannot have more than {COLUMNS_MAX} columns");
    }
    let mut columns = Vec::with_capacity(keys.len());
    for key in keys {
        let KeyOf::Column(column) = key.of else { continue };
        if columns.contains(&column) {
            let name = definition.columns.field(column).name();
            return stated_err!(DUPLICATE_COLUMN, "column '{name}' appears twice in the index");
        }
        columns.push(column);
    }
    Ok(())
}

pub(super) fn columns_named(
    planner: &StatementPlanner,
    names: &[Ident],
    definition: &TableDefinition,
) -> Result<Vec<usize>> {
    let number = |name: &Ident| {
        let name = planner.normalized(name);
        let found = definition.columns.index_of(&name);
        found.map_err(|_| {
            SqlState::UNDEFINED_COLUMN.error(format!("column \"{name}\" does not exist"))
        })
    };
    names.iter().map(number).collect()
}

/// What the default name of an index says of its columns and expressions.
pub(super) fn name_parts(
    keys: &[DeclaredIndexKey],
    included: &[usize],
    definition: &TableDefinition,
) -> Vec<String> {
    let column = |column: usize| definition.columns.field(column).name().clone();
    let keys = keys.iter().map(|key| match &key.of {
        KeyOf::Column(at) => column(*at),
        KeyOf::Expression(expr, _) => name_part(expr),
    });
    keys.chain(included.iter().map(|at| column(*at))).collect()
}
