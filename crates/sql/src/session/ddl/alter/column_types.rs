//! ALTER COLUMN … TYPE: types that do not change, and indexes that are computed from columns that get other types.

use std::sync::Arc;

use atoll_sql_common::pg_type::{array_of_enum, is_oid, is_varchar, type_of_check};
use atoll_sql_parse::dialect::as_texts;
use atoll_store::table::TableDefinition;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{Result, plan_err};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, CastKind, DataType as SqlType, Expr, Ident,
    TableConstraint, Value,
};

use super::altered::AlteredTable;
use super::altered_keys::{AlteredIndex, AlteredKey};
use crate::session::ddl::index::{KeptIndex, RebuiltIndex};
use crate::session::dml::change::{parsed, quoted};
use crate::session::plan::planner::StatementPlanner;
use crate::table::{PlacedTable, stored_columns};
use crate::table_text::{checked_domain, domain_call};

/// Indexes that are computed from columns that get other types.
pub(super) struct RebuiltIndexes {
    keys: Vec<AlteredKey>,
    indexes: Vec<AlteredIndex>,
}

impl RebuiltIndexes {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.indexes.is_empty()
    }
}

impl AlteredTable {
    /// Takes the indexes that have to be computed anew.
    pub(super) fn take_rebuilt(&mut self) -> RebuiltIndexes {
        RebuiltIndexes {
            keys: self.keys.extract_if(.., |key| key.is_rebuilt).collect(),
            indexes: self.indexes.extract_if(.., |index| index.is_rebuilt).collect(),
        }
    }
}

/// The columns that get domains: their base types, and CHECK constraints that stand for these.
fn domains_of(operations: &[AlterTableOperation]) -> Vec<&Ident> {
    let columns = operations.iter().filter_map(|operation| match operation {
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::Check(check), ..
        } => match domain_call(&check.expr) {
            Some((Expr::Identifier(column), _)) => Some(column),
            _ => None,
        },
        _ => None,
    });
    columns.collect()
}

impl StatementPlanner {
    /// The operations without those that give a column the type that it has.
    pub(super) async fn without_same_types<'o>(
        &self,
        operations: &'o [AlterTableOperation],
        definition: &TableDefinition,
    ) -> Vec<&'o AlterTableOperation> {
        let (mut changing, domains) =
            (Vec::with_capacity(operations.len()), domains_of(operations));
        for operation in operations {
            if !self.keeps_type(operation, definition, &domains).await {
                changing.push(operation);
            }
        }
        changing
    }

    async fn keeps_type(
        &self,
        operation: &AlterTableOperation,
        definition: &TableDefinition,
        domains: &[&Ident],
    ) -> bool {
        let AlterTableOperation::AlterColumn {
            column_name,
            op: AlterColumnOperation::SetDataType { data_type, using: None, .. },
        } = operation
        else {
            return false;
        };
        let name = self.normalized(column_name);
        if domains.iter().any(|column| self.normalized(column) == name) {
            return false;
        }
        let Ok(column) = definition.columns.index_of(&name) else { return false };
        let mut checks = definition.checks.iter();
        let of_type = checks.clone().find_map(|check| type_of_check(&check.sql, &name));
        let is_domain = checks
            .any(|check| checked_domain(&check.sql).is_some_and(|(checked, _)| checked == name));
        let value = Expr::Identifier(quoted(&name));
        let (data_type, wanted) = match as_texts(data_type, &value, &quoted(&name)) {
            Some((_, texts, condition)) => (texts, type_of_check(&condition.to_string(), &name)),
            None => (data_type.clone(), None),
        };
        let planned = self.stored_type(&data_type).await;
        let field = definition.columns.field(column);
        let is_same = planned.is_ok_and(|it| {
            it.data_type() == field.data_type()
                && array_of_enum(&it) == array_of_enum(field)
                && is_oid(&it) == is_oid(field)
                && is_varchar(&it) == is_varchar(field)
        });
        is_same && wanted == of_type && !is_domain
    }

    /// The field in which a column of a type is stored.
    async fn stored_type(&self, data_type: &SqlType) -> Result<FieldRef> {
        let cast = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::value(Value::Null)),
            data_type: data_type.clone(),
            array: false,
            format: None,
        };
        let query = parsed(&format!("SELECT {cast} AS a"))?;
        let plan = self.plan_other(Parsed::Statement(Box::new(query))).await?;
        let columns = stored_columns(plan.schema().as_arrow());
        match columns.fields().first() {
            Some(field) => Ok(Arc::clone(field)),
            None => plan_err!("{data_type} is not the type of a column"),
        }
    }

    /// The definition of a table with these indexes, computed from its columns as they are now.
    pub(super) async fn with_rebuilt(
        &self,
        table: &PlacedTable,
        rebuilt: RebuiltIndexes,
    ) -> Result<TableDefinition> {
        let mut definition = TableDefinition::clone(table.definition());
        for key in rebuilt.keys {
            let AlteredKey { unique, columns, included, condition, expressions, .. } = key;
            let parts = RebuiltIndex { columns, included, condition, expressions };
            let unique = self.rebuilt_unique(table, unique, parts).await?;
            definition.uniques.push(unique);
        }
        for index in rebuilt.indexes {
            let AlteredIndex { index, keys: columns, included, condition, expressions, .. } = index;
            let parts = RebuiltIndex { columns, included, condition, expressions };
            match self.rebuilt_index(table, index, parts).await? {
                KeptIndex::Ordered(index) => definition.indexes.push(index),
                KeptIndex::Catalog(index) => definition.catalog_indexes.push(index),
            }
        }
        Ok(definition)
    }
}
