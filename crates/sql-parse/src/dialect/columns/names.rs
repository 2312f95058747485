//! Names the columns that a query leaves unnamed: an expression gets its text as name.
//!
//! ```text
//! SELECT count(*), a+1, t.b FROM t       SELECT count(*) AS "count(*)", a + 1 AS "a + 1", t.b FROM t
//! SELECT a, a FROM t                     two columns a
//! SELECT s.x FROM t                      SELECT s.x AS x, where s is a column
//! CREATE TABLE u AS SELECT a, a FROM t   columns a and a_1, as in DuckDB
//! ```
//!
//! DataFusion would call them `count(Int64(1))`, `t.a + Int64(1)`, and refuses two columns of one name. In
//! the rows of a statement the second keeps its name, with a mark that [`shown`] takes away again; inside
//! of a statement, where names are looked up, it is numbered. Queries inside expressions are left as they
//! are: their names are not shown.
//!
//! Under `atoll.column_names = postgresql` the rows that clients get are named as PostgreSQL names them
//! (`figured`). Such a name always has the mark, so that only ORDER BY of the name alone finds it.

use crate::syntax::{walk_expressions, walk_mut};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_functions::EXCLUDE;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, SetQuantifier,
    Statement, TableFactor, TableWithJoins, VisitorMut,
};

use crate::dialect::columns::postgres_names::figured;
use crate::dialect::expressions::whole_numbers::cast_whole_numbers;
use atoll_sql_common::settings::ColumnNames;

/// Separates the name of a result column from a number, if the name is a duplicate; the
/// second character is invisible.
const MARK: &str = ":\u{2063}";

/// Gives names to all select lists of a statement, and types to numbers; `names` is the style of names for its
/// rows.
pub fn name_columns(statement: &mut Parsed, names: ColumnNames) {
    let _ = match statement {
        Parsed::Statement(statement) => {
            name_returned(statement, names);
            let walked = walk_mut(statement, &mut Names::default());
            // Last, because ORDER BY finds by text the expressions that DISTINCT has left.
            cast_whole_numbers(statement);
            walked
        }
        // The rows of what is explained go to no client; its plan has the names that it would have within a statement.
        Parsed::Explain(explain) => {
            return name_columns(&mut explain.statement, ColumnNames::Text);
        }
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query, &mut Names::default()),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Parsed::CreateExternalTable(_) | Parsed::Reset(_) => ControlFlow::Continue(()),
    };
}

/// The schema as clients see it; `None` if no name is marked.
pub fn shown(schema: &Schema) -> Option<SchemaRef> {
    let plain =
        |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_name(shown_name(field.name())));
    let is_marked = schema.fields().iter().any(|field| field.name().contains(MARK));
    is_marked.then(|| {
        let fields: Vec<_> = schema.fields().iter().map(plain).collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    })
}

/// The name of a column as clients see it.
pub(in crate::dialect) fn shown_name(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(name, _)| name)
}

/// Names the rows that a statement returns.
fn name_returned(statement: &mut Statement, names: ColumnNames) {
    match statement {
        Statement::Query(query) if !makes_table(query) => name_output(query, names),
        Statement::Prepare { statement, .. } => name_returned(statement, names),
        other => {
            if let Some(items) = returning(other) {
                name(items, &[], Place::Output(names));
            }
        }
    }
}

/// Whether it is SELECT … INTO.
pub(in crate::dialect) fn makes_table(query: &Query) -> bool {
    matches!(query.body.as_ref(), SetExpr::Select(select) if select.into.is_some())
}

/// The items of RETURNING.
pub(in crate::dialect) fn returning(statement: &mut Statement) -> Option<&mut Vec<SelectItem>> {
    match statement {
        Statement::Insert(insert) => insert.returning.as_mut(),
        Statement::Update(update) => update.returning.as_mut(),
        Statement::Delete(delete) => delete.returning.as_mut(),
        _ => None,
    }
}

fn name_output(query: &mut Query, names: ColumnNames) {
    name_body(&mut query.body, names);
    hide_from_order(query);
    order_by_figured(query);
}

/// Marks an alias that has the name of a column by which the query is ordered: `SELECT a::text AS a FROM t ORDER BY
/// t.a`. DataFusion adds the column, and then finds the name ambiguous.
fn hide_from_order(query: &mut Query) {
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &query.order_by else {
        return;
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    if select.distinct.is_some() {
        return;
    }
    let mut ordering = HashSet::new();
    let _: ControlFlow<()> = walk_expressions(keys, &mut |expr| {
        if let Expr::CompoundIdentifier(parts) = expr {
            ordering.extend(parts.last().map(folded));
        }
        ControlFlow::Continue(())
    });
    for item in &mut select.projection {
        if let SelectItem::ExprWithAlias { expr, alias } = item
            && ordering.contains(&folded(alias))
            && column(expr).is_none_or(|(name, _)| name != folded(alias))
        {
            *alias = Ident::with_quote('"', format!("{}{MARK}0", folded(alias)));
        }
    }
}

fn name_body(body: &mut SetExpr, names: ColumnNames) {
    match body {
        SetExpr::Select(select) => {
            name(&mut select.projection, &select.from, Place::Output(names));
        }
        SetExpr::Query(query) => name_output(query, names),
        SetExpr::SetOperation { left, right, set_quantifier, .. } => {
            // BY NAME looks columns up.
            let names = if is_by_name(*set_quantifier) { ColumnNames::Text } else { names };
            name_body(left, names);
            name_body(right, names);
        }
        SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
            name_returned(statement, names);
        }
        _ => {}
    }
}

fn is_by_name(quantifier: SetQuantifier) -> bool {
    use SetQuantifier::{AllByName, ByName, DistinctByName};
    matches!(quantifier, ByName | AllByName | DistinctByName)
}

/// Makes ORDER BY find a marked name: the first column that is shown under it.
fn order_by_figured(query: &mut Query) {
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
        return;
    };
    // DISTINCT ON, with which the keys must begin, looks its names up in FROM.
    if let SetExpr::Select(select) = query.body.as_ref()
        && matches!(select.distinct, Some(Distinct::On(_)))
    {
        return;
    }
    let Some(items) = output_items(&query.body) else { return };
    for key in keys {
        let Some((name, None)) = column(&key.expr) else { continue };
        let found = items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                let alias = folded(alias);
                (shown_name(&alias) == name).then_some(alias)
            }
            SelectItem::UnnamedExpr(expr) => {
                column(expr).map(|(column, _)| column).filter(|column| *column == name)
            }
            _ => None,
        });
        if let Some(marked) = found.filter(|found| found.contains(MARK)) {
            key.expr = Expr::Identifier(Ident::with_quote('"', marked));
        }
    }
}

/// The select list that names the columns of a query.
fn output_items(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => output_items(&query.body),
        SetExpr::SetOperation { left, .. } => output_items(left),
        _ => None,
    }
}

/// The context of a select list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The statement returns its columns.
    Output(ColumnNames),
    /// The surrounding query looks its columns up.
    Within,
}

impl Place {
    /// The separator between a duplicate name and its number.
    fn between(self) -> &'static str {
        match self {
            Self::Output(_) => MARK,
            Self::Within => "_",
        }
    }
}

/// Names columns that the statement does not return.
#[derive(Default)]
struct Names {
    /// SELECTs of expressions, which are about to be visited.
    unseen: Vec<*const Select>,
}

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        if let Some(items) = returning(statement) {
            name(items, &[], Place::Output(ColumnNames::Text));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let at: *const Select = select;
        if !self.unseen.contains(&at) {
            name(&mut select.projection, &select.from, Place::Within);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        order_by_names(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(SetExpr::Select(select)) = query_of(expr).map(|query| query.body.as_ref()) {
            self.unseen.push(select.as_ref());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(SetExpr::Select(_)) = query_of(expr).map(|query| query.body.as_ref()) {
            self.unseen.pop();
        }
        ControlFlow::Continue(())
    }
}

/// Under DISTINCT, DataFusion finds an expression of ORDER BY in the select list only by its name there.
fn order_by_names(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
        return;
    };
    if select.distinct.is_none() {
        return;
    }
    for key in keys.iter_mut().filter(|key| column(&key.expr).is_none()) {
        let text = key.expr.to_string();
        let named = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if expr.to_string() == text => Some(alias),
            _ => None,
        });
        if let Some(name) = named {
            key.expr = Expr::Identifier(name.clone());
        }
    }
}

/// The query that is an operand.
fn query_of(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Subquery(query)
        | Expr::Exists { subquery: query, .. }
        | Expr::InSubquery { subquery: query, .. } => Some(query),
        _ => None,
    }
}

/// The names of one select list.
#[derive(Default)]
struct TakenNames {
    /// For each name the number of its last column, and the qualifier if it is a column.
    taken: HashMap<String, (usize, Option<String>)>,
    /// How many columns have been hidden under each name.
    hidden: HashMap<String, usize>,
}

impl TakenNames {
    /// The name, followed by a number if it is taken.
    fn take(&mut self, name: String, between: &str) -> String {
        let Some((last, _)) = self.taken.get(&name) else {
            self.taken.insert(name.clone(), (0, None));
            return name;
        };
        let mut number = last + 1;
        let mut numbered = format!("{name}{between}{number}");
        while self.taken.contains_key(&numbered) {
            number += 1;
            numbered = format!("{name}{between}{number}");
        }
        if let Some((last, _)) = self.taken.get_mut(&name) {
            *last = number;
        }
        self.taken.insert(numbered.clone(), (0, None));
        numbered
    }

    /// The name with a mark and a number, whether or not it is taken.
    fn hide(&mut self, name: String) -> String {
        let count = self.hidden.entry(name.clone()).or_insert(0);
        loop {
            *count += 1;
            let hidden = format!("{name}{MARK}{count}");
            if !self.taken.contains_key(&hidden) {
                self.taken.insert(hidden.clone(), (0, None));
                return hidden;
            }
        }
    }

    /// Whether a column can keep its name: no other column has it, or their tables distinguish them.
    fn keeps(&mut self, name: &str, qualifier: Option<String>) -> bool {
        match self.taken.get(name) {
            None => {
                self.taken.insert(name.to_owned(), (0, qualifier));
                true
            }
            Some((_, of)) => of.is_some() && qualifier.is_some() && *of != qualifier,
        }
    }
}

/// Gives each item of a select list a unique name.
fn name(items: &mut [SelectItem], from: &[TableWithJoins], place: Place) {
    let mut names = TakenNames::default();
    let between = place.between();
    // The columns of `*` are not known yet. A column next to it may be one of them, which results allow.
    let is_starred = place != Place::Within && items.iter().any(is_star);
    let columns = plain_columns(items);
    for item in items {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = match place {
                    Place::Output(_) if is_column_of(&folded(alias), &columns, from) => {
                        names.hide(folded(alias))
                    }
                    _ => names.take(folded(alias), between),
                };
                if name != folded(alias) {
                    *alias = Ident::with_quote('"', name);
                }
                continue;
            }
            SelectItem::UnnamedExpr(expr) => match column(expr) {
                Some((name, _)) if is_field(expr, from) => (expr, names.take(name, between)),
                Some((name, qualifier)) => {
                    if names.keeps(&name, qualifier) && !is_starred {
                        continue;
                    }
                    (expr, names.take(name, between))
                }
                None => {
                    let text = without_marks(expr.to_string());
                    if is_other(expr, &text) {
                        continue;
                    }
                    let alias = match place {
                        Place::Output(ColumnNames::PostgreSql) => names.hide(figured(expr)),
                        _ => names.take(text, between),
                    };
                    (expr, alias)
                }
            },
            _ => continue,
        };
        let alias = Ident::with_quote('"', alias);
        let none = Expr::Identifier(Ident::new(""));
        *item = SelectItem::ExprWithAlias { expr: std::mem::replace(expr, none), alias };
    }
}

/// The text of an expression without the marker that `words` leaves for frames with EXCLUDE.
fn without_marks(mut text: String) -> String {
    let mark = format!("('{EXCLUDE}");
    while let Some(from) = text.find(&mark) {
        let Some(end) = text[from..].find("')").map(|end| from + end + 2) else { break };
        let (from, end) = match text[end..].strip_prefix(", ") {
            Some(_) => (from, end + 2),
            None => {
                let before = text[..from].trim_end().strip_suffix("PARTITION BY");
                let from = before.map_or(from, str::len);
                (from, end + usize::from(text[end..].starts_with(' ')))
            }
        };
        text.replace_range(from..end, "");
    }
    text
}

/// The names of the items that are columns and have no alias.
fn plain_columns(items: &[SelectItem]) -> HashSet<String> {
    let columns = items.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) => column(expr).map(|(name, _)| name),
        _ => None,
    });
    columns.collect()
}

/// Whether an alias reads like one of these qualified columns, as in `SELECT a, b AS "t.a" FROM t`: DataFusion
/// takes both for one name.
fn is_column_of(alias: &str, columns: &HashSet<String>, from: &[TableWithJoins]) -> bool {
    alias.rsplit_once('.').is_some_and(|(table, name)| {
        columns.contains(name) && from.iter().any(|relation| is_called(relation, table))
    })
}

fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Name and qualifier of a column; `None` for other expressions.
pub(in crate::dialect) fn column(expr: &Expr) -> Option<(String, Option<String>)> {
    match expr {
        Expr::Nested(inner) => column(inner),
        Expr::Identifier(name) => Some((folded(name), None)),
        Expr::CompoundIdentifier(parts) => {
            let (name, of) = parts.split_last()?;
            let of: Vec<String> = of.iter().map(folded).collect();
            Some((folded(name), Some(of.join("."))))
        }
        _ => None,
    }
}

/// Whether a name with dots is a field of a struct, because no table has the name before the last dot.
fn is_field(expr: &Expr, from: &[TableWithJoins]) -> bool {
    let Expr::CompoundIdentifier(parts) = expr else { return false };
    let [.., table, _] = parts.as_slice() else { return false };
    !from.is_empty() && !from.iter().any(|relation| is_called(relation, &folded(table)))
}

/// Whether one of the tables has a name, as far as names are known here.
fn is_called(relation: &TableWithJoins, name: &str) -> bool {
    let joined = relation.joins.iter().map(|join| &join.relation);
    std::iter::once(&relation.relation).chain(joined).any(|factor| match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => folded(&alias.name) == name,
        TableFactor::Table { name: table, .. } => {
            let last = table.0.last().and_then(|part| part.as_ident());
            last.is_none_or(|last| folded(last) == name)
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            is_called(table_with_joins, name)
        }
        _ => true,
    })
}

/// A name as it is looked up.
pub fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// Whether the item is several columns, or has its name in front.
fn is_other(expr: &Expr, text: &str) -> bool {
    matches!(expr, Expr::Named { .. }) || text.to_ascii_lowercase().contains("columns(")
}
