//! One SELECT.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Select, SelectFlavor, SelectItem};

use super::{group_by, joins, refuse};

pub(super) fn check(select: &mut Select) -> Result<()> {
    if let Some(modifiers) = &select.select_modifiers {
        let modifiers = modifiers.to_string();
        refuse(!modifiers.trim().is_empty(), modifiers.trim(), "leave it out")?;
    }
    refuse(select.top.is_some(), "SELECT TOP", "use LIMIT")?;
    refuse(select.exclude.is_some(), "EXCLUDE after the columns", "write * EXCLUDE (…)")?;
    refuse(select.into.is_some(), "SELECT INTO inside another statement", "use CREATE TABLE … AS")?;
    refuse(!select.lateral_views.is_empty(), "LATERAL VIEW", "use unnest() in the select list")?;
    refuse(select.prewhere.is_some(), "PREWHERE", "use WHERE")?;
    refuse(!select.connect_by.is_empty(), "CONNECT BY", "use WITH RECURSIVE")?;
    refuse(!select.cluster_by.is_empty(), "CLUSTER BY", "use ORDER BY")?;
    refuse(!select.distribute_by.is_empty(), "DISTRIBUTE BY", "leave it out")?;
    refuse(!select.sort_by.is_empty(), "SORT BY", "use ORDER BY")?;
    refuse(select.value_table_mode.is_some(), "SELECT AS STRUCT or AS VALUE", "")?;
    // DataFusion plans `FROM t` as a SELECT of no columns.
    if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) {
        select.projection = vec![SelectItem::Wildcard(Default::default())];
        select.flavor = SelectFlavor::Standard;
    }
    group_by::check(&mut select.group_by)?;
    select.from.iter_mut().try_for_each(joins::check)
}
