//! `t.*` of a table that FROM names with its schema: DataFusion looks for the whole name only.
//!
//! ```text
//! SELECT t.* FROM public.t     SELECT public.t.* FROM public.t
//! ```

use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor,
};

/// Writes the full name of such a table.
pub(in crate::dialect) fn rewrite(select: &mut Select) {
    let Select { projection, from, .. } = select;
    let joined = from.iter().flat_map(|from| from.joins.iter().map(|join| &join.relation));
    let tables: Vec<&TableFactor> = from.iter().map(|from| &from.relation).chain(joined).collect();
    for item in projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(star), _) =
            item
            && let Some(whole) = whole_name(star, &tables)
        {
            *star = whole;
        }
    }
}

/// The name of the only table that a one-part qualifier matches, if the name has more parts.
fn whole_name(star: &ObjectName, tables: &[&TableFactor]) -> Option<ObjectName> {
    let [part] = &star.0[..] else { return None };
    let qualifier = part.as_ident()?;
    let meant = tables.iter().filter_map(|table| match table {
        TableFactor::Table { name, alias: None, .. } => {
            is_same(name.0.last()?.as_ident()?, qualifier).then_some(name)
        }
        _ => None,
    });
    let is_alias = |table: &&TableFactor| match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => is_same(&alias.name, qualifier),
        _ => false,
    };
    match (&meant.collect::<Vec<_>>()[..], tables.iter().any(is_alias)) {
        ([name], false) if name.0.len() > 1 => Some((*name).clone()),
        _ => None,
    }
}

fn is_same(one: &Ident, other: &Ident) -> bool {
    let folded = |ident: &Ident| match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    };
    folded(one) == folded(other)
}
