//! `COLUMNS(…)`: an expression for each of some columns.
//!
//! ```text
//! SELECT min(COLUMNS(*)) FROM t               SELECT min(a) AS a, min(b) AS b FROM t
//! SELECT COLUMNS('^a') + 1 FROM t             the columns whose names the regular expression finds
//! SELECT COLUMNS(* EXCLUDE (a)) FROM t        all but one
//! SELECT COLUMNS(['a', 'b']) FROM t           these
//! SELECT a FROM t WHERE COLUMNS(*) > 0        all of them: a > 0 AND b > 0
//! ```
//!
//! The session supplies the names: see `needs`.

use crate::syntax::{flow, walk, walk_own_expressions_mut};
use std::ops::ControlFlow;

use datafusion::arrow::array::StringArray;
use datafusion::arrow::compute::kernels::regexp::regexp_is_match_scalar;
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Array, ExceptSelectItem, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, Query, Select, SelectItem, Value, ValueWithSpan, Visit, Visitor,
};

use crate::dialect::tree;

/// The chosen columns.
pub(in crate::dialect) enum Choice {
    All { without: Vec<String> },
    Matching(String),
    Named(Vec<String>),
}

impl Choice {
    /// The choice of a call of COLUMNS; `None` for other functions.
    pub(in crate::dialect) fn from_call(function: &Function) -> Result<Option<Self>> {
        if !is_columns(function) {
            return Ok(None);
        }
        let FunctionArguments::List(list) = &function.args else { return refused() };
        let [FunctionArg::Unnamed(arg)] = list.args.as_slice() else { return refused() };
        Ok(Some(match arg {
            FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_) => {
                Self::All { without: vec![] }
            }
            FunctionArgExpr::WildcardWithOptions(options) => {
                let mut without: Vec<String> = Vec::new();
                match &options.opt_exclude {
                    Some(ExcludeSelectItem::Single(name)) => without.push(name.to_string()),
                    Some(ExcludeSelectItem::Multiple(names)) => {
                        without.extend(names.iter().map(ToString::to_string));
                    }
                    None => {}
                }
                if let Some(ExceptSelectItem { first_element, additional_elements }) =
                    &options.opt_except
                {
                    without.push(first_element.value.clone());
                    without.extend(additional_elements.iter().map(|name| name.value.clone()));
                }
                if options.opt_replace.is_some() || options.opt_rename.is_some() {
                    return plan_err!(
                        "REPLACE and RENAME in COLUMNS(*) are not supported; write them after *"
                    );
                }
                Self::All { without }
            }
            FunctionArgExpr::Expr(Expr::Value(ValueWithSpan {
                value: Value::SingleQuotedString(pattern),
                ..
            })) => Self::Matching(pattern.clone()),
            FunctionArgExpr::Expr(Expr::Array(Array { elem, .. })) => {
                let names = elem.iter().map(|name| match name {
                    Expr::Value(ValueWithSpan {
                        value: Value::SingleQuotedString(name), ..
                    }) => Ok(name.clone()),
                    _ => refused(),
                });
                Self::Named(names.collect::<Result<_>>()?)
            }
            FunctionArgExpr::Expr(_) => return refused(),
        }))
    }

    /// The indexes of the chosen columns among `columns`.
    pub(in crate::dialect) fn choose(&self, names: &[String]) -> Result<Vec<usize>> {
        let same = |one: &str, other: &str| one.trim_matches('"').eq_ignore_ascii_case(other);
        let chosen: Vec<usize> = match self {
            Self::All { without } => {
                let kept = names.iter().enumerate();
                kept.filter(|(_, name)| !without.iter().any(|other| same(other, name)))
                    .map(|(at, _)| at)
                    .collect()
            }
            Self::Matching(pattern) => {
                let texts = StringArray::from_iter_values(names);
                let found = regexp_is_match_scalar(&texts, pattern, None)?;
                (0..names.len()).filter(|at| found.value(*at)).collect()
            }
            Self::Named(wanted) => {
                for name in wanted {
                    if !names.iter().any(|known| same(name, known)) {
                        return plan_err!(
                            "column '{name}' of COLUMNS does not exist; the columns are {}",
                            names.join(", ")
                        );
                    }
                }
                let kept = names.iter().enumerate();
                kept.filter(|(_, name)| wanted.iter().any(|other| same(other, name)))
                    .map(|(at, _)| at)
                    .collect()
            }
        };
        match (chosen.is_empty(), self) {
            (true, Self::Matching(pattern)) => plan_err!(
                "COLUMNS('{pattern}') matches no column; the columns are {}",
                names.join(", ")
            ),
            (true, _) => plan_err!("COLUMNS(…) matches no column"),
            _ => Ok(chosen),
        }
    }
}

fn refused<T>() -> Result<T> {
    plan_err!(
        "COLUMNS takes a regular expression, a list of names, or *: COLUMNS('^a'), COLUMNS(['a', 'b']), COLUMNS(* EXCLUDE (a))"
    )
}

fn is_columns(function: &Function) -> bool {
    match function.name.0.as_slice() {
        [part] => part.as_ident().is_some_and(|name| {
            name.quote_style.is_none() && name.value.eq_ignore_ascii_case("columns")
        }),
        _ => false,
    }
}

/// The calls of COLUMNS in expressions, with or without their subqueries.
#[derive(Default)]
struct Calls {
    depth: usize,
    own: usize,
    all: usize,
}

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && is_columns(function)
        {
            self.all += 1;
            self.own += usize::from(self.depth == 0);
        }
        ControlFlow::Continue(())
    }
}

/// Whether there is a call of COLUMNS in a part of a statement, subqueries included.
pub(in crate::dialect) fn are_in(part: &impl Visit) -> bool {
    let mut calls = Calls::default();
    let _ = walk(part, &mut calls);
    calls.all > 0
}

/// Whether a SELECT has a call outside of its subqueries.
pub(in crate::dialect) fn are_of(select: &Select) -> bool {
    let mut calls = Calls::default();
    let _ = walk(&select.projection, &mut calls);
    let _ = walk(&select.selection, &mut calls);
    calls.own > 0
}

/// A column of FROM.
pub(in crate::dialect) struct Named {
    /// Its name in expressions.
    pub(in crate::dialect) expr: Expr,
    pub(in crate::dialect) name: String,
    pub(in crate::dialect) table: Option<Ident>,
}

/// Expands the calls in the expressions of a SELECT.
pub(in crate::dialect) fn write_out(select: &mut Select, columns: &[Named]) -> Result<()> {
    let mut projection = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        let (expr, alias) = match &item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            _ => {
                projection.push(item);
                continue;
            }
        };
        let Some(each) = each(expr, columns)? else {
            projection.push(item);
            continue;
        };
        projection.extend(each.into_iter().map(|(expr, name)| {
            let alias = alias.map_or(name.clone(), |alias| alias.value.replace("\\0", &name));
            SelectItem::ExprWithAlias { expr, alias: tree::quoted(&alias) }
        }));
    }
    select.projection = projection;
    if let Some(condition) = &select.selection
        && let Some(each) = each(condition, columns)?
    {
        select.selection =
            each.into_iter().map(|(expr, _)| Expr::Nested(Box::new(expr))).reduce(tree::and);
    }
    Ok(())
}

/// An expression for each column that its calls choose, with the column's name.
fn each(expr: &Expr, columns: &[Named]) -> Result<Option<Vec<(Expr, String)>>> {
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let mut chosen: Option<Vec<usize>> = None;
    replace_calls(&mut expr.clone(), &mut |function| {
        let Some(choice) = Choice::from_call(function)? else { return Ok(None) };
        let own = choice.choose(&names)?;
        match &chosen {
            Some(other) if other.len() != own.len() => {
                return plan_err!(
                    "the COLUMNS(…) calls of one expression choose different numbers of columns"
                );
            }
            Some(_) => {}
            None => chosen = Some(own),
        }
        Ok(None)
    })?;
    let Some(chosen) = chosen else { return Ok(None) };
    let mut all = Vec::with_capacity(chosen.len());
    for (nth, first) in chosen.iter().enumerate() {
        let mut expr = expr.clone();
        replace_calls(&mut expr, &mut |function| {
            let Some(choice) = Choice::from_call(function)? else { return Ok(None) };
            Ok(choice.choose(&names)?.get(nth).map(|at| columns[*at].expr.clone()))
        })?;
        all.push((expr, names[*first].clone()));
    }
    Ok(Some(all))
}

/// Replaces calls, but not those in subqueries.
fn replace_calls(
    expr: &mut Expr,
    with: &mut dyn FnMut(&Function) -> Result<Option<Expr>>,
) -> Result<()> {
    let replaced = walk_own_expressions_mut(expr, &mut |expr| {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        flow(with(function).map(|other| other.into_iter().for_each(|other| *expr = other)))
    });
    replaced.break_value().map_or(Ok(()), Err)
}

/// A column by its name, qualified by its table if needed.
pub(in crate::dialect) fn column(table: Option<Ident>, name: &str) -> Expr {
    match table {
        Some(table) => Expr::CompoundIdentifier(vec![table, tree::quoted(name)]),
        None => Expr::Identifier(tree::quoted(name)),
    }
}
