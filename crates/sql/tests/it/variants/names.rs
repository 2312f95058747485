//! Names for added columns: names that DataFusion generates for expressions, and names of columns and functions.

use std::collections::HashSet;

use atoll_sql::datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem,
    Statement, TableFactor,
};

/// Gives each added column of a statement a unique name that could be taken for something else.
pub(super) struct Names {
    /// The words of the statement: they are not used as names, which could change its meaning.
    words: HashSet<String>,
    used: HashSet<String>,
    /// The first relation of the changed SELECT.
    relation: String,
    /// Names of other columns, if a repeated name does no harm.
    columns: Vec<String>,
    given: usize,
}

impl Names {
    pub(super) fn from_statement(statement: &Statement) -> Self {
        let text = statement.to_string().to_lowercase();
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned);
        Self {
            words: words.collect(),
            used: HashSet::new(),
            relation: String::new(),
            columns: Vec::new(),
            given: 0,
        }
    }

    /// Whether equal values may have several texts: '1 day' is '24 hours'.
    pub(super) fn has_intervals(&self) -> bool {
        self.words.contains("interval")
    }

    /// Moves to another SELECT: the outermost, or one whose columns others name.
    pub(super) fn start(&mut self, query: &Query, select: &Select, is_outermost: bool) {
        let relation = select.from.first().map(|table| match &table.relation {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => alias.name.value.clone(),
            TableFactor::Table { name, .. } => name.to_string(),
            _ => "q".to_owned(),
        });
        self.relation = relation.unwrap_or_else(|| "q".to_owned());
        // Sort keys and enclosing queries would make a repeated name ambiguous.
        let may_repeat = is_outermost && query.order_by.is_none() && select.distinct.is_none();
        let named = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
            _ => None,
        });
        self.columns = if may_repeat { named.collect() } else { Vec::new() };
    }

    /// A name for the cast of an expression.
    pub(super) fn for_cast(&mut self, expr: &Expr) -> Ident {
        let inner = self.inner(expr);
        let relation = &self.relation;
        self.first_of(vec![
            format!("CAST({inner} AS Utf8)"),
            format!("sum({relation}.v)"),
            "count(*)".to_owned(),
            "count".to_owned(),
            format!("max({inner})"),
        ])
    }

    /// A name for an existing expression.
    pub(super) fn for_repeat(&mut self, expr: &Expr) -> Ident {
        let inner = self.inner(expr);
        self.first_of(vec![
            inner.clone(),
            "max(q.x)".to_owned(),
            "sum".to_owned(),
            "count(*)".to_owned(),
            format!("CAST({inner} AS Utf8)"),
        ])
    }

    /// The approximate name of an expression in plans.
    fn inner(&self, expr: &Expr) -> String {
        match expr {
            Expr::Identifier(name) => format!("{}.{}", self.relation, name.value),
            Expr::Nested(expr) => self.inner(expr),
            Expr::BinaryOp { left, op, right } => {
                format!("{} {op} {}", self.inner(left), self.inner(right))
            }
            Expr::Function(function) => match &function.args {
                FunctionArguments::List(list) => {
                    let each = list.args.iter().map(|argument| match argument {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.inner(expr),
                        other => other.to_string(),
                    });
                    format!("{}({})", function.name, each.collect::<Vec<_>>().join(","))
                }
                _ => expr.to_string(),
            },
            _ => expr.to_string(),
        }
    }

    /// The next usable one of these.
    fn first_of(&mut self, mut candidates: Vec<String>) -> Ident {
        let turn = self.given % candidates.len();
        candidates.rotate_left(turn);
        self.given += 1;
        if self.given.is_multiple_of(3)
            && let Some(column) = self.columns.pop()
        {
            return Ident::with_quote('"', column);
        }
        // sqlparser writes \\" as it is, for a quote that is escaped already.
        let is_free = |name: &String| {
            !self.used.contains(name)
                && !self.words.contains(&name.to_lowercase())
                && !name.contains("\\\"")
        };
        let name = candidates.iter().find(|name| is_free(name)).cloned();
        let name =
            name.unwrap_or_else(|| format!("{} {}", candidates[0].replace('\\', ""), self.given));
        self.used.insert(name.clone());
        Ident::with_quote('"', name)
    }
}
