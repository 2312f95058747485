//! The text of CREATE INDEX.

use std::sync::Arc;

use super::foreign_key::deferral_words;
use atoll_sql_common::names::quote_identifier;
use atoll_sql_parse::syntax::{parsed_expr, sql_text};
use atoll_store::database::RelationName;
use atoll_store::table::{
    CatalogIndex, CatalogKeyOf, Index, IndexKey, KeyExpression, TableDefinition, Unique,
};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

/// What the text of an index says, besides its name and table.
#[derive(Clone, Debug)]
pub(crate) struct IndexParts {
    pub(crate) is_unique: bool,
    /// Whether it says NULLS NOT DISTINCT.
    pub(crate) nulls_not_distinct: bool,
    /// Whether it holds no rows.
    pub(crate) is_of_catalog: bool,
    /// `USING`.
    pub(crate) method: Arc<str>,
    pub(crate) keys: Vec<IndexKey>,
    /// For each key the expression that it is instead of a column; may be shorter.
    pub(crate) expressions: Vec<Option<Arc<str>>>,
    /// For each key its operator class, if that is not the default one; may be shorter.
    pub(crate) operator_classes: Vec<Option<Arc<str>>>,
    /// The columns of INCLUDE.
    pub(crate) included: Vec<usize>,
    /// The text of WHERE.
    pub(crate) condition: Option<Arc<str>>,
}

impl Default for IndexParts {
    fn default() -> Self {
        Self {
            is_unique: false,
            nulls_not_distinct: false,
            is_of_catalog: false,
            method: "btree".into(),
            keys: Vec::new(),
            expressions: Vec::new(),
            operator_classes: Vec::new(),
            included: Vec::new(),
            condition: None,
        }
    }
}

impl IndexParts {
    pub(crate) fn from_index(index: &Index) -> Self {
        Self {
            keys: index.keys.clone(),
            expressions: texts(&index.expressions),
            included: index.included.clone(),
            condition: index.condition.clone(),
            operator_classes: index.operator_classes.clone(),
            method: if index.is_hash { "hash" } else { "btree" }.into(),
            ..Self::default()
        }
    }

    pub(crate) fn from_catalog(index: &CatalogIndex) -> Self {
        let mut parts = Self {
            is_of_catalog: true,
            method: Arc::clone(&index.method),
            included: index.included.clone(),
            condition: index.condition.clone(),
            ..Self::default()
        };
        for key in &index.keys {
            let (column, expression) = match &key.of {
                CatalogKeyOf::Column(column) => (*column, None),
                CatalogKeyOf::Expression(sql) => (0, Some(Arc::clone(sql))),
            };
            let (descending, nulls_first) = (key.order.descending, key.order.nulls_first);
            parts.keys.push(IndexKey { column, descending, nulls_first });
            parts.expressions.push(expression);
            parts.operator_classes.push(key.operator_class.clone());
        }
        parts
    }

    pub(crate) fn from_unique(unique: &Unique) -> Self {
        Self {
            is_unique: true,
            nulls_not_distinct: unique.nulls_not_distinct,
            operator_classes: unique.operator_classes.clone(),
            keys: unique.keys(),
            expressions: texts(&unique.expressions),
            included: unique.included.clone(),
            condition: unique.condition.as_ref().map(|condition| Arc::clone(&condition.sql)),
            ..Self::default()
        }
    }

    /// The expression of the key at a place.
    pub(crate) fn expression(&self, place: usize) -> Option<&Arc<str>> {
        self.expressions.get(place)?.as_ref()
    }

    /// A key without its order: a column or an expression.
    pub(crate) fn key_text(&self, place: usize, definition: &TableDefinition) -> String {
        match (self.expression(place), self.keys.get(place)) {
            (Some(sql), _) if is_function(sql) => sql.to_string(),
            (Some(sql), _) => format!("({sql})"),
            (None, Some(key)) => column_name(key.column, definition),
            (None, None) => String::new(),
        }
    }

    /// `(a, lower(b) DESC) INCLUDE (c) WHERE (d IS NULL)`
    pub(crate) fn text(&self, definition: &TableDefinition) -> String {
        let key = |(place, key): (usize, &IndexKey)| {
            let order = match (key.descending, key.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            let class = self.operator_classes.get(place).and_then(Option::as_ref);
            let class = class.map(|class| format!(" {}", quote_identifier(class)));
            format!("{}{}{order}", self.key_text(place, definition), class.unwrap_or_default())
        };
        let keys: Vec<String> = self.keys.iter().enumerate().map(key).collect();
        let mut text =
            format!("({}){}", keys.join(", "), included_text(&self.included, definition));
        if self.nulls_not_distinct {
            text.push_str(" NULLS NOT DISTINCT");
        }
        if let Some(condition) = &self.condition {
            text.push_str(&format!(" WHERE {condition}"));
        }
        text
    }

    /// The same with few parentheses in its condition.
    pub(crate) fn with_few_parentheses(&self) -> Self {
        let few = |sql: &Arc<str>| match parsed_expr(sql) {
            Ok(condition) => sql_text(&few_parentheses(condition)).into(),
            Err(_) => Arc::clone(sql),
        };
        let expressions = self.expressions.iter().map(|sql| sql.as_ref().map(few)).collect();
        Self { condition: self.condition.as_ref().map(few), expressions, ..self.clone() }
    }

    /// `CREATE INDEX i ON s.t USING btree (a, b DESC) INCLUDE (c)`
    pub(crate) fn create_text(
        &self,
        name: &str,
        at: &RelationName,
        definition: &TableDefinition,
    ) -> String {
        format!(
            "CREATE {}INDEX {} ON {}.{} USING {} {}",
            if self.is_unique { "UNIQUE " } else { "" },
            quote_identifier(name),
            quote_identifier(&at.schema),
            quote_identifier(&at.name),
            self.method,
            self.text(definition)
        )
    }
}

/// `PRIMARY KEY (a, b) INCLUDE (c) DEFERRABLE`
pub(crate) fn unique_text(unique: &Unique, definition: &TableDefinition) -> String {
    let word = match (unique.is_primary, unique.nulls_not_distinct) {
        (true, _) => "PRIMARY KEY",
        (false, true) => "UNIQUE NULLS NOT DISTINCT",
        (false, false) => "UNIQUE",
    };
    let columns: Vec<String> =
        unique.columns.iter().map(|column| column_name(*column, definition)).collect();
    let included = included_text(&unique.included, definition);
    format!("{word} ({}){included}{}", columns.join(", "), deferral_words(unique.deferral))
}

fn texts(expressions: &[Option<KeyExpression>]) -> Vec<Option<Arc<str>>> {
    let text = |it: &Option<KeyExpression>| it.as_ref().map(|it| Arc::clone(&it.sql));
    expressions.iter().map(text).collect()
}

/// Whether an expression stands in the list of an index without parentheses around it.
fn is_function(sql: &str) -> bool {
    matches!(parsed_expr(sql), Ok(Expr::Function(_)))
}

/// A condition with the parentheses that AND, OR and NOT need.
fn few_parentheses(condition: Expr) -> Expr {
    let is_or = |it: &Expr| matches!(it, Expr::BinaryOp { op: BinaryOperator::Or, .. });
    let is_joined =
        |it: &Expr| is_or(it) || matches!(it, Expr::BinaryOp { op: BinaryOperator::And, .. });
    let part = |expr: Expr, needs: &dyn Fn(&Expr) -> bool| {
        let part = few_parentheses(expr);
        Box::new(if needs(&part) { Expr::Nested(Box::new(part)) } else { part })
    };
    match condition {
        Expr::Nested(inner) => few_parentheses(*inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => Expr::BinaryOp {
            left: part(*left, &is_or),
            op: BinaryOperator::And,
            right: part(*right, &is_or),
        },
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => Expr::BinaryOp {
            left: part(*left, &|_| false),
            op: BinaryOperator::Or,
            right: part(*right, &|_| false),
        },
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: part(*expr, &is_joined) }
        }
        other => other,
    }
}

/// ` INCLUDE (a, b)`, or nothing.
fn included_text(included: &[usize], definition: &TableDefinition) -> String {
    if included.is_empty() {
        return String::new();
    }
    let columns: Vec<String> =
        included.iter().map(|column| column_name(*column, definition)).collect();
    format!(" INCLUDE ({})", columns.join(", "))
}

fn column_name(column: usize, definition: &TableDefinition) -> String {
    let field = definition.columns.fields().get(column);
    field.map(|field| quote_identifier(field.name()).into_owned()).unwrap_or_default()
}
