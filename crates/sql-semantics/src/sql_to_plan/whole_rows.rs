//! Whole rows: a name of a relation in FROM where no column has it.
//!
//! ```text
//! SELECT t FROM t                          SELECT named_struct('a', t.a, 'b', t.b) AS t FROM t
//! SELECT count(o) FROM t LEFT JOIN o …     SELECT count(CASE WHEN o.c IS NULL AND o.d IS NULL THEN NULL ELSE named_struct(…) END) …
//! SELECT to_json(t.*), (t).a FROM t        SELECT to_json(named_struct(…)), named_struct(…)['a'] FROM t
//! SELECT 1 FROM t WHERE t IS NOT NULL      … WHERE t.a IS NOT NULL AND t.b IS NOT NULL
//! ```
//!
//! The names become dictionary literals with a key that no one types, which [`PlanWholeRows`] plans: it knows the
//! columns around them. `named_struct` is [`MarkedStruct`]. A row that an outer join adds is NULL; it is recognised by
//! its columns, which are all NULL.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::StructArray;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{
    Column, DFSchema, DataFusionError, Result, ScalarValue, SchemaError, TableReference,
    internal_err,
};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawDictionaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit, when,
};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::planner::IdentNormalizer;
use datafusion::sql::sqlparser::ast::{
    DictionaryField, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    JoinOperator, Select, SelectItem, TableFactor, TableWithJoins, Value, VisitorMut,
};

use super::outer_aliases::{has_values, name_of};
use atoll_sql_common::names::is_row_id;
use atoll_sql_parse::dialect::quoted;
use atoll_sql_parse::syntax::walk_mut;

/// The key of the dictionary literals, whose value is the name of the relation.
const KEY: &str = "$whole_row";

/// What a dictionary literal stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The row.
    Row,
    /// The row, or NULL if an outer join adds it.
    Outer,
    /// The row of a function, which is the value of its only column.
    Value,
    /// `IS NULL`: whether all columns are NULL.
    IsNull,
    /// `IS NOT NULL`: whether none is.
    IsNotNull,
}

impl Form {
    const ALL: [Self; 5] = [Self::Row, Self::Outer, Self::Value, Self::IsNull, Self::IsNotNull];

    /// Its name as the second value of the literal.
    fn name(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Outer => "outer",
            Self::Value => "value",
            Self::IsNull => "null",
            Self::IsNotNull => "not null",
        }
    }
}

/// The names in a statement that may be whole rows.
pub(super) struct WholeRows {
    /// Bare names of relations among the expressions of their SELECT.
    names: HashSet<String>,
    /// Whether there is `t.*` among the arguments of a function, which never has another meaning.
    has_stars: bool,
    normalizes: bool,
}

impl WholeRows {
    /// Finds them; `None` if there are none.
    pub(super) fn from_statement(statement: &mut Parsed, normalizes: bool) -> Option<Self> {
        if matches!(statement, Parsed::Statement(ast) if has_values(ast)) {
            return None;
        }
        let mut search = Rewrite::new(normalizes, false);
        search.statement(statement);
        let Rewrite { names, has_stars, .. } = search;
        let is_any = has_stars || !names.is_empty();
        is_any.then_some(Self { names, has_stars, normalizes })
    }

    /// Whether the statement cannot be planned without them.
    pub(super) fn are_certain(&self) -> bool {
        self.has_stars
    }

    /// Whether the statement failed because one of the names is not a column.
    pub(super) fn are_missing(&self, error: &DataFusionError) -> bool {
        let DataFusionError::SchemaError(error, _) = error.find_root() else { return false };
        let SchemaError::FieldNotFound { field, .. } = error.as_ref() else { return false };
        field.relation.is_none() && self.names.contains(&field.name)
    }

    /// Marks them for [`PlanWholeRows`].
    pub(super) fn mark(&self, statement: &mut Parsed) {
        Rewrite::new(self.normalizes, true).statement(statement);
    }
}

/// A relation in FROM.
struct Relation {
    name: String,
    /// Whether an outer join may add its row.
    is_outer: bool,
    /// Whether it is a function.
    is_call: bool,
}

/// Finds or marks whole rows.
struct Rewrite {
    normalizer: IdentNormalizer,
    marks: bool,
    /// The relations of the SELECTs around what is visited.
    scopes: Vec<Vec<Relation>>,
    names: HashSet<String>,
    has_stars: bool,
}

impl Rewrite {
    fn new(normalizes: bool, marks: bool) -> Self {
        let normalizer = IdentNormalizer::new(normalizes);
        Self { normalizer, marks, scopes: vec![], names: HashSet::new(), has_stars: false }
    }

    fn statement(&mut self, statement: &mut Parsed) {
        let _ = match statement {
            Parsed::Statement(ast) => walk_mut(ast.as_mut(), self),
            Parsed::Explain(explain) => return self.statement(&mut explain.statement),
            Parsed::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => walk_mut(query, self),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        };
    }

    fn normalized(&self, name: &Ident) -> String {
        self.normalizer.normalize(name.clone())
    }

    /// The relation that a name means.
    fn relation(&self, name: &Ident) -> Option<&Relation> {
        let name = self.normalized(name);
        self.scopes.last()?.iter().find(|relation| relation.name == name)
    }

    /// The relation that an expression names.
    fn named(&self, expr: &Ast) -> Option<&Relation> {
        match expr {
            Ast::Identifier(name) => self.relation(name),
            Ast::Nested(inner) => self.named(inner),
            _ => None,
        }
    }

    fn row(relation: &Relation) -> Ast {
        let form = match relation {
            Relation { is_call: true, .. } => Form::Value,
            Relation { is_outer: true, .. } => Form::Outer,
            _ => Form::Row,
        };
        marked(&relation.name, form)
    }

    fn item(&self, item: &mut SelectItem) {
        if let SelectItem::UnnamedExpr(Ast::Identifier(name)) = item
            && let Some(relation) = self.relation(name)
        {
            let alias = quoted(&relation.name);
            *item = SelectItem::ExprWithAlias { expr: Self::row(relation), alias };
        }
    }

    /// Replaces `t.*` among the arguments of a function.
    fn arguments(&mut self, function: &mut Function) {
        let FunctionArguments::List(list) = &mut function.args else { return };
        for arg in &mut list.args {
            let FunctionArg::Unnamed(arg) = arg else { continue };
            let FunctionArgExpr::QualifiedWildcard(name) = &arg else { continue };
            let Some(name) = name.0.last().and_then(|part| part.as_ident()) else { continue };
            let Some(relation) = self.relation(name) else { continue };
            let row = Self::row(relation);
            self.has_stars = true;
            if self.marks {
                *arg = FunctionArgExpr::Expr(row);
            }
        }
    }

    /// The form of an expression that is a whole row.
    fn form(&self, expr: &Ast) -> Option<Ast> {
        match expr {
            Ast::Identifier(name) => self.relation(name).map(Self::row),
            Ast::IsNull(inner) => {
                self.named(inner).map(|relation| marked(&relation.name, Form::IsNull))
            }
            Ast::IsNotNull(inner) => {
                self.named(inner).map(|relation| marked(&relation.name, Form::IsNotNull))
            }
            _ => None,
        }
    }
}

impl VisitorMut for Rewrite {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.scopes.push(relations(&select.from, &self.normalizer));
        if self.marks {
            for item in &mut select.projection {
                self.item(item);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        if let Ast::Function(function) = expr {
            self.arguments(function);
        }
        match self.form(expr) {
            Some(form) if self.marks => *expr = form,
            Some(_) => {
                let named = match expr {
                    Ast::IsNull(inner) | Ast::IsNotNull(inner) => self.named(inner),
                    expr => self.named(expr),
                };
                let name = named.map(|relation| relation.name.clone());
                self.names.extend(name);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

/// The dictionary literal for a whole row.
fn marked(name: &str, form: Form) -> Ast {
    let field = |key: &str, value: &str| DictionaryField {
        key: quoted(key),
        value: Box::new(Ast::value(Value::SingleQuotedString(value.to_owned()))),
    };
    Ast::Dictionary(vec![field(KEY, name), field("form", form.name())])
}

/// The relations of a FROM.
fn relations(from: &[TableWithJoins], normalizer: &IdentNormalizer) -> Vec<Relation> {
    let mut all = Vec::new();
    for TableWithJoins { relation, joins } in from {
        let mut joined = relations_of(relation, normalizer);
        for join in joins {
            use JoinOperator as O;
            let mut right = relations_of(&join.relation, normalizer);
            let (left_is_outer, right_is_outer) = match join.join_operator {
                O::Left(_) | O::LeftOuter(_) | O::OuterApply => (false, true),
                O::Right(_) | O::RightOuter(_) => (true, false),
                O::FullOuter(_) => (true, true),
                _ => (false, false),
            };
            joined.iter_mut().for_each(|relation| relation.is_outer |= left_is_outer);
            right.iter_mut().for_each(|relation| relation.is_outer |= right_is_outer);
            joined.extend(right);
        }
        all.extend(joined);
    }
    all
}

fn relations_of(factor: &TableFactor, normalizer: &IdentNormalizer) -> Vec<Relation> {
    if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
        return relations(std::slice::from_ref(table_with_joins), normalizer);
    }
    let name = name_of(factor).map(|name| normalizer.normalize(name));
    let is_call = match factor {
        TableFactor::Table { args, .. } => args.is_some(),
        TableFactor::Function { .. } | TableFactor::UNNEST { .. } => true,
        _ => false,
    };
    name.into_iter().map(|name| Relation { name, is_outer: false, is_call }).collect()
}

/// Plans whole rows, which [`WholeRows::mark`] leaves in a statement.
#[derive(Debug, Default)]
pub struct PlanWholeRows;

impl ExprPlanner for PlanWholeRows {
    fn plan_dictionary_literal(
        &self,
        literal: RawDictionaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawDictionaryExpr>> {
        let Some((name, form)) = read(&literal) else {
            return Ok(PlannerResult::Original(literal));
        };
        // A column of this name comes first.
        if let Ok((table, field)) = schema.qualified_field_with_unqualified_name(name) {
            let column = Expr::Column(Column::from((table, field)));
            return Ok(PlannerResult::Planned(match form {
                Form::Row | Form::Outer | Form::Value => column,
                Form::IsNull => column.is_null(),
                Form::IsNotNull => column.is_not_null(),
            }));
        }
        let is_of = |table: Option<&TableReference>| table.is_some_and(|of| of.table() == name);
        let of_relation = schema.iter().filter(|(table, field)| is_of(*table) && !is_row_id(field));
        let columns: Vec<Column> = of_relation.map(Column::from).collect();
        if columns.is_empty() {
            // The planner reports it.
            return Ok(PlannerResult::Planned(Expr::Column(Column::new_unqualified(name))));
        }
        planned(columns, form).map(PlannerResult::Planned)
    }
}

/// The name and the form of a literal that stands for a whole row.
fn read(literal: &RawDictionaryExpr) -> Option<(&str, Form)> {
    let is_key = |key: &Expr| text(key) == Some(KEY);
    let ([key, _], [name, form]) = (&literal.keys[..], &literal.values[..]) else { return None };
    let form = text(form).filter(|_| is_key(key))?;
    Some((text(name)?, Form::ALL.into_iter().find(|known| known.name() == form)?))
}

fn text(literal: &Expr) -> Option<&str> {
    match literal {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

fn planned(columns: Vec<Column>, form: Form) -> Result<Expr> {
    let each = |test: fn(Expr) -> Expr| {
        let columns = columns.iter().cloned().map(Expr::Column);
        columns.map(test).reduce(Expr::and).unwrap_or_else(|| lit(true))
    };
    if let (Form::Value, [value]) = (form, columns.as_slice()) {
        return Ok(Expr::Column(value.clone()));
    }
    let row = || {
        let fields = columns.iter().cloned();
        let fields = fields.flat_map(|of| [lit(of.name.as_str()), Expr::Column(of)]);
        ScalarUDF::new_from_impl(MarkedStruct::default()).call(fields.collect())
    };
    Ok(match form {
        Form::Row | Form::Value => row(),
        Form::Outer => when(each(Expr::is_null), lit(ScalarValue::Null)).otherwise(row())?,
        Form::IsNull => each(Expr::is_null),
        Form::IsNotNull => each(Expr::is_not_null),
    })
}

/// `named_struct`, whose fields keep the marks of JSON and UUIDs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MarkedStruct {
    signature: Signature,
}

impl Default for MarkedStruct {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for MarkedStruct {
    fn name(&self) -> &str {
        "named_struct"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of a row depends on its columns")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let names = args.scalar_arguments.iter().step_by(2);
        let values = args.arg_fields.iter().skip(1).step_by(2);
        let field = |(name, value): (&Option<&ScalarValue>, &FieldRef)| {
            let name = name.and_then(|name| name.try_as_str().flatten()).unwrap_or_default();
            Field::new(name, value.data_type().clone(), true)
                .with_metadata(value.metadata().clone())
        };
        let fields = names.zip(values).map(field).collect();
        Ok(Arc::new(Field::new(self.name(), DataType::Struct(fields), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let DataType::Struct(fields) = args.return_field.data_type() else {
            return internal_err!("a row is not a struct");
        };
        let values = args.args.iter().skip(1).step_by(2);
        let values = values.map(|value| value.to_array(args.number_rows));
        let row = StructArray::try_new(fields.clone(), values.collect::<Result<_>>()?, None)?;
        Ok(ColumnarValue::Array(Arc::new(row)))
    }
}
