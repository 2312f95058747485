//! Clauses after `*` that DataFusion does not support.
//!
//! ```text
//! SELECT * RENAME (a AS c) FROM t              SELECT a AS c, b FROM t
//! SELECT t.* EXCLUDE (b) RENAME (a AS c) …     SELECT t.a AS c …
//! SELECT * ILIKE 'a%' FROM t                   the columns whose names are like that
//! ```
//!
//! The session supplies the names: see `needs`.

use datafusion::arrow::array::{BooleanArray, StringArray};
use datafusion::arrow::compute::kernels::comparison::ilike;
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Expr, Ident, IdentWithAlias, RenameSelectItem, Select,
    SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use crate::dialect::columns::columns_call::Named;
use crate::dialect::tree;

/// Whether a select list has such a star.
pub(in crate::dialect) fn are_in(select: &Select) -> bool {
    select.projection.iter().any(|item| options(item).is_some_and(is_own))
}

fn options(item: &SelectItem) -> Option<&WildcardAdditionalOptions> {
    match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => Some(options),
        _ => None,
    }
}

fn is_own(options: &WildcardAdditionalOptions) -> bool {
    options.opt_rename.is_some() || options.opt_ilike.is_some()
}

/// Expands such stars into columns.
pub(in crate::dialect) fn write_out(select: &mut Select, columns: &[Named]) -> Result<()> {
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match options(&item).is_some_and(is_own) {
            true => projection.extend(written(&item, columns)?),
            false => projection.push(item),
        }
    }
    select.projection = projection;
    Ok(())
}

/// Expands all stars of FROM into columns.
pub(in crate::dialect) fn write_all_out(select: &mut Select, columns: &[Named]) -> Result<()> {
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match &item {
            SelectItem::Wildcard(_) => projection.extend(written(&item, columns)?),
            _ => projection.push(item),
        }
    }
    select.projection = projection;
    Ok(())
}

fn written(item: &SelectItem, columns: &[Named]) -> Result<Vec<SelectItem>> {
    let Some(options) = options(item) else { return Ok(vec![]) };
    let mut columns: Vec<&Named> = match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            let table = name.0.last().and_then(|part| part.as_ident());
            let is_of = |column: &&Named| match (&column.table, table) {
                (Some(own), Some(table)) => is_same(&own.value, table),
                _ => false,
            };
            columns.iter().filter(is_of).collect()
        }
        SelectItem::QualifiedWildcard(..) => {
            return plan_err!("RENAME and ILIKE after the * of an expression are not supported");
        }
        _ => columns.iter().collect(),
    };
    if let Some(like) = &options.opt_ilike {
        let names = StringArray::from_iter_values(columns.iter().map(|column| &column.name));
        let fits: BooleanArray = ilike(&names, &StringArray::new_scalar(&like.pattern))?;
        let mut fits = fits.iter();
        columns.retain(|_| fits.next().flatten() == Some(true));
    }
    let excluded = excluded(options);
    columns.retain(|column| !excluded.iter().any(|name| is_same(&column.name, name)));
    if columns.is_empty() {
        return plan_err!("{item} has no columns");
    }
    let renamed = match &options.opt_rename {
        Some(RenameSelectItem::Single(one)) => std::slice::from_ref(one),
        Some(RenameSelectItem::Multiple(all)) => all.as_slice(),
        None => &[],
    };
    Ok(columns.into_iter().map(|column| item_of(column, options, renamed)).collect())
}

fn excluded(options: &WildcardAdditionalOptions) -> Vec<Ident> {
    let mut names: Vec<Ident> = Vec::new();
    let objects = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names.as_slice(),
        None => &[],
    };
    names.extend(objects.iter().filter_map(|name| name.0.last()?.as_ident().cloned()));
    if let Some(ExceptSelectItem { first_element, additional_elements }) = &options.opt_except {
        names.push(first_element.clone());
        names.extend(additional_elements.iter().cloned());
    }
    names
}

/// A column under its new name, or its replacement.
fn item_of(
    column: &Named,
    options: &WildcardAdditionalOptions,
    renamed: &[IdentWithAlias],
) -> SelectItem {
    let replaced = options.opt_replace.as_ref().and_then(|replace| {
        replace.items.iter().find(|element| is_same(&column.name, &element.column_name))
    });
    let renamed = renamed.iter().find(|renamed| is_same(&column.name, &renamed.ident));
    let expr = replaced.map_or_else(|| column.expr.clone(), |element| element.expr.clone());
    match (renamed, replaced) {
        (Some(renamed), _) => SelectItem::ExprWithAlias { expr, alias: renamed.alias.clone() },
        (None, Some(_)) => tree::item(expr, &column.name),
        (None, None) => item_named(expr, &column.name),
    }
}

/// An expression under the name of an existing column.
pub(in crate::dialect) fn item_named(expr: Expr, name: &str) -> SelectItem {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(expr),
        other => tree::item(other, name),
    }
}

/// Whether this is the name of a column.
pub(in crate::dialect) fn is_same(name: &str, ident: &Ident) -> bool {
    match ident.quote_style {
        Some(_) => name == ident.value,
        None => name.eq_ignore_ascii_case(&ident.value),
    }
}
