//! Facts that a statement needs before it is planned: the columns of a FROM, the values of a column.
//!
//! [`Expansion::asked`] returns queries, innermost first, that depend on no other answer;
//! [`Expansion::answered`] inserts the answers. Both are repeated until no query is left.

use crate::dialect::columns::order_by_all::order_by_all;
use crate::syntax::{flow, walk, walk_mut, walk_relations};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;

use datafusion::common::{DFSchemaRef, DataFusionError, Result, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    CastKind, Cte, DataType, Distinct, Expr, ObjectName, PivotValueSource, Query, Select, SetExpr,
    TableFactor, Visit, Visitor, VisitorMut, With,
};

use crate::dialect::columns::{columns_call, reused, stars};
use crate::dialect::relations::using::{self, SharedNames};
use crate::dialect::tree;

/// A question to the session.
pub enum Question {
    /// The columns of a query.
    Columns(Query),
    /// The columns of a query that may refer to unknown names of the queries around it.
    AnyColumns(Query),
    /// The rows of a query of one column, a text.
    Values(Query),
}

/// An answer of the session.
pub enum Answer {
    /// The columns of a query.
    Columns(DFSchemaRef),
    /// The values of a query's column, as SQL.
    Values(Vec<String>),
    /// There is no answer.
    Unknown,
}

/// The questions of one statement, round by round.
pub struct Expansion<'a> {
    /// Whether the function of a name is volatile.
    is_volatile: &'a (dyn Fn(&str) -> bool + Sync),
    /// SELECTs whose aliases are settled, as texts.
    settled: HashSet<String>,
    /// SELECTs whose joins share columns and are written out, as texts.
    shared: HashMap<String, SharedNames>,
    /// Questions without an answer yet, as texts.
    asked: VecDeque<String>,
}

impl<'a> Expansion<'a> {
    /// No questions yet; `is_volatile` returns whether a function returns another value each time.
    pub fn new(is_volatile: &'a (dyn Fn(&str) -> bool + Sync)) -> Self {
        let (settled, shared, asked) = (HashSet::new(), HashMap::new(), VecDeque::new());
        Self { is_volatile, settled, shared, asked }
    }

    /// The questions that can be answered now.
    pub fn asked(&mut self, statement: &mut Parsed) -> Result<Vec<Question>> {
        self.asked.clear();
        let mut needs = Needs { scopes: vec![], questions: vec![], answers: None, of: self };
        visit(statement, &mut needs)?;
        Ok(needs.questions)
    }

    /// Inserts the answers in the places that asked for them.
    pub fn answered(&mut self, statement: &mut Parsed, answers: Vec<Answer>) -> Result<()> {
        let answers = Some(answers.into());
        let mut needs = Needs { scopes: vec![], questions: vec![], answers, of: self };
        visit(statement, &mut needs)
    }
}

fn visit(statement: &mut Parsed, needs: &mut Needs<'_, '_>) -> Result<()> {
    let visited = match statement {
        Parsed::Statement(ast) => walk_mut(ast, needs),
        Parsed::Explain(explain) => return visit(&mut explain.statement, needs),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query, needs),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Needs<'a, 'b> {
    /// The WITH of the queries around what is visited.
    scopes: Vec<Vec<Cte>>,
    questions: Vec<Question>,
    answers: Option<VecDeque<Answer>>,
    of: &'a mut Expansion<'b>,
}

impl Needs<'_, '_> {
    /// A query with all WITH queries that are visible to it.
    fn scoped(&self, body: SetExpr) -> Query {
        let mut ctes: Vec<Cte> = Vec::new();
        let mut named = names_in(&body);
        for cte in self.scopes.iter().flatten().rev() {
            let name = cte.alias.name.value.to_lowercase();
            // Only those that are read: a WITH query that is being expanded cannot be planned yet.
            if named.contains(&name) && !self.is_open(cte) {
                named.extend(names_in(cte));
                if ctes.iter().all(|other| other.alias.name != cte.alias.name) {
                    ctes.insert(0, cte.clone());
                }
            }
        }
        let mut query = tree::query(body);
        if !ctes.is_empty() {
            let with_token = tree::no_token();
            query.with = Some(With { with_token, recursive: true, cte_tables: ctes });
        }
        query
    }

    /// Whether a part of a statement reads a WITH query that has questions.
    fn reads_open(&self, part: &impl Visit) -> bool {
        let open: Vec<&Cte> =
            self.scopes.iter().flatten().filter(|cte| self.is_open(*cte)).collect();
        let is_open = |name: &ObjectName| match name.0.as_slice() {
            [part] => part.as_ident().is_some_and(|name| {
                open.iter().any(|cte| cte.alias.name.value.eq_ignore_ascii_case(&name.value))
            }),
            _ => false,
        };
        let visited = walk_relations(part, &mut |name| match is_open(name) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        visited.is_break()
    }

    /// Asks a question, or applies its answer. Returns whether it did either.
    fn is_turn_of(&mut self, part: &impl ToString) -> bool {
        let text = part.to_string();
        match self.answers {
            None => self.of.asked.push_back(text),
            Some(_) if self.of.asked.front() == Some(&text) => drop(self.of.asked.pop_front()),
            // It could not be asked when the others were.
            Some(_) => return false,
        }
        true
    }

    fn select(&mut self, select: &mut Select) -> Result<()> {
        if using::is_in(select) && !self.of.shared.contains_key(&select.to_string()) {
            return self.shared(select);
        }
        if !columns_call::are_of(select) && !stars::are_in(select) {
            return self.aliases(select);
        }
        if !self.can_ask(select) || !self.is_turn_of(select) {
            return Ok(());
        }
        let Some(answers) = &mut self.answers else {
            let query = self.all_of(select);
            self.questions.push(Question::Columns(query));
            return Ok(());
        };
        match answers.pop_front() {
            Some(Answer::Columns(schema)) => {
                let named = named(&schema);
                stars::write_out(select, &named)?;
                columns_call::write_out(select, &named)
            }
            _ => plan_err!("COLUMNS(…) cannot be resolved here"),
        }
    }

    /// Columns that joined tables share.
    fn shared(&mut self, select: &mut Select) -> Result<()> {
        if !self.can_ask(select) || !self.is_turn_of(select) {
            return Ok(());
        }
        let Some(answers) = &mut self.answers else {
            let all = tree::select(tree::everything(), using::side_by_side(&select.from));
            let query = self.scoped(SetExpr::Select(Box::new(all)));
            self.questions.push(Question::AnyColumns(query));
            return Ok(());
        };
        let names = match answers.pop_front() {
            Some(Answer::Columns(schema)) => using::write_out(select, &schema)?,
            _ => SharedNames::new(),
        };
        self.of.shared.insert(select.to_string(), names);
        Ok(())
    }

    /// The same in what a query is ordered by.
    fn order(&mut self, query: &mut Query) -> Result<()> {
        if self.of.shared.is_empty() || query.order_by.is_none() {
            return Ok(());
        }
        let names = match query.body.as_ref() {
            SetExpr::Select(select) => self.of.shared.get(&select.to_string()),
            _ => None,
        };
        let Some(names) = names else { return Ok(()) };
        // All columns are there by now, and not all of them are names.
        order_by_all(query)?;
        match (&mut query.order_by, query.body.as_ref()) {
            (Some(order), SetExpr::Select(select)) => using::resolve_order(order, select, names),
            _ => Ok(()),
        }
    }

    /// Aliases that are named again.
    fn aliases(&mut self, select: &mut Select) -> Result<()> {
        if !reused::is_in(select) || self.of.settled.contains(&select.to_string()) {
            return Ok(());
        }
        let mut columns = HashSet::new();
        if !select.from.is_empty() {
            if !self.can_ask(select) || !self.is_turn_of(select) {
                return Ok(());
            }
            let Some(answers) = &mut self.answers else {
                let query = self.all_of(select);
                self.questions.push(Question::AnyColumns(query));
                return Ok(());
            };
            if let Some(Answer::Columns(schema)) = answers.pop_front() {
                columns.extend(schema.fields().iter().map(|field| field.name().to_lowercase()));
            } else {
                self.of.settled.insert(select.to_string());
                return Ok(());
            }
        }
        reused::write_out(select, &|name| columns.contains(name), self.of.is_volatile)?;
        self.of.settled.insert(select.to_string());
        Ok(())
    }

    /// Whether all relations of a SELECT are known.
    fn can_ask(&self, select: &Select) -> bool {
        !self.is_open(&select.from) && !self.reads_open(&select.from)
    }

    /// Whether a part of a statement has questions.
    fn is_open(&self, part: &impl Visit) -> bool {
        let mut aliases = OpenAliases { settled: &self.of.settled };
        columns_call::are_in(part)
            || walk(part, &mut OpenPivots).is_break()
            || walk(part, &mut aliases).is_break()
    }

    /// `SELECT *` from the FROM of a SELECT.
    fn all_of(&self, select: &Select) -> Query {
        let all = tree::select(tree::everything(), select.from.clone());
        self.scoped(SetExpr::Select(Box::new(all)))
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        let is_source_known = match &*factor {
            TableFactor::Pivot { table, .. } => !self.is_open(table.as_ref()),
            _ => false,
        };
        if !is_source_known || !is_open_pivot(factor) || !self.is_turn_of(factor) {
            return Ok(());
        }
        let TableFactor::Pivot { table, value_column, value_source, .. } = factor else {
            return Ok(());
        };
        let listed = std::mem::replace(value_source, PivotValueSource::List(vec![]));
        let of_query = match &listed {
            PivotValueSource::Subquery(query) => Some(query.as_ref().clone()),
            _ => None,
        };
        for column in value_column.iter_mut() {
            let expr = match &*column {
                Expr::InList { .. } => continue,
                Expr::InSubquery { expr, .. } => expr.as_ref().clone(),
                other => other.clone(),
            };
            let text = |expr: Expr| Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(expr),
                data_type: DataType::Varchar(None),
                array: false,
                format: None,
            };
            match &mut self.answers {
                None => {
                    let own = match &*column {
                        Expr::InSubquery { subquery, .. } => Some(subquery.as_ref().clone()),
                        _ => of_query.clone(),
                    };
                    let rows = match own {
                        Some(query) => {
                            tree::derived(query, Some(tree::alias("$values", &["value"])))
                        }
                        None => {
                            let mut of_column = tree::select(
                                vec![tree::item(expr, "value")],
                                vec![tree::alone(table.as_ref().clone())],
                            );
                            of_column.distinct = Some(Distinct::Distinct);
                            let query = tree::query(SetExpr::Select(Box::new(of_column)));
                            tree::derived(query, Some(tree::alias("$values", &["value"])))
                        }
                    };
                    let value = || Expr::Identifier(tree::quoted("value"));
                    let mut texts = tree::select(
                        vec![tree::item(text(value()), "text")],
                        vec![tree::alone(rows)],
                    );
                    texts.selection = Some(Expr::IsNotNull(Box::new(value())));
                    let mut query = self.scoped(SetExpr::Select(Box::new(texts)));
                    query.order_by = Some(tree::order_by(value()));
                    self.questions.push(Question::Values(query));
                }
                Some(answers) => {
                    let Some(Answer::Values(values)) = answers.pop_front() else {
                        return plan_err!(
                            "the values of PIVOT cannot be looked up here; list them in IN (…)"
                        );
                    };
                    let list = values.into_iter().map(tree::text).collect();
                    *column = Expr::InList { expr: Box::new(text(expr)), list, negated: false };
                }
            }
        }
        if self.answers.is_none() {
            *value_source = listed;
        }
        Ok(())
    }
}

/// The columns of a query; columns with duplicate names are qualified by their tables.
fn named(schema: &DFSchemaRef) -> Vec<columns_call::Named> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for field in schema.fields() {
        *counts.entry(field.name()).or_default() += 1;
    }
    let named = schema.iter().map(|(table, field)| {
        let name = field.name().clone();
        let table = table.map(|table| tree::quoted(table.table()));
        let by = table.clone().filter(|_| counts[name.as_str()] > 1);
        columns_call::Named { expr: columns_call::column(by, &name), name, table }
    });
    named.collect()
}

/// Whether a PIVOT has no list of values for one of its columns.
fn is_open_pivot(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Pivot { value_column, value_source, .. } => match value_source {
            PivotValueSource::List(values) if values.is_empty() => {
                value_column.iter().any(|column| !matches!(column, Expr::InList { .. }))
            }
            PivotValueSource::List(_) => false,
            _ => true,
        },
        _ => false,
    }
}

/// The names without dots of the relations that a part of a statement reads.
fn names_in(part: &impl Visit) -> HashSet<String> {
    let mut names = HashSet::new();
    let _ = walk_relations(part, &mut |name| {
        if let [part] = name.0.as_slice() {
            names.extend(part.as_ident().map(|name| name.value.to_lowercase()));
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

/// Stops at a SELECT in which an alias is reused.
struct OpenAliases<'a> {
    settled: &'a HashSet<String>,
}

impl Visitor for OpenAliases<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        match reused::is_in(select) && !self.settled.contains(&select.to_string()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

struct OpenPivots;

impl Visitor for OpenPivots {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if is_open_pivot(factor) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl VisitorMut for Needs<'_, '_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let ctes = query.with.as_ref().map(|with| with.cte_tables.clone());
        self.scopes.push(ctes.unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scopes.pop();
        flow(self.order(query))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        flow(self.select(select))
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        flow(self.factor(factor))
    }
}
