//! A table's definition after ALTER TABLE, operation by operation.

use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::quote_identifier;
use atoll_sql_common::pg_type::type_of_check;
use atoll_sql_parse::dialect::as_texts;
use atoll_sql_parse::parse::STATISTICS;
use atoll_sql_parse::syntax::walk_expressions_mut;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::table::{ForeignKey, Identity, IdentityKind, TableDefinition};
use datafusion::arrow::datatypes::Field;
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnDef, DataType, Expr, GeneratedAs, Ident,
    SqlOption, TableConstraint,
};

use super::altered_keys::{AlteredCatalogIndex, AlteredIndex, AlteredKey, columns_of};
use crate::session::ddl::declared_table::{
    DeclaredCheck, DeclaredIdentity, DeclaredKey, DeclaredTable,
};
use crate::session::ddl::foreign_key::DeclaredForeignKey;
use crate::session::dml::change::quoted;
use crate::table_text::{belongs_to_type, checked_domain, computed, reads};
use atoll_sql_parse::syntax::parsed_expr;

/// A column of the altered table.
pub(super) struct AlteredColumn {
    pub(super) name: String,
    pub(super) not_null: bool,
    pub(super) default: Option<Expr>,
    pub(super) identity: Option<Identity>,
    /// The new identity, still without its sequence.
    pub(super) new_identity: Option<DeclaredIdentity>,
    pub(super) source: ColumnSource,
}

impl AlteredColumn {
    fn is_identity(&self) -> bool {
        self.identity.is_some_and(|identity| identity.kind != IdentityKind::Serial)
    }
}

/// The source of a column's values.
pub(super) enum ColumnSource {
    /// The column with this name.
    Column(Arc<Field>),
    /// Its default, or NULL, in this type.
    New(DataType),
    /// An expression over the old table, in this type.
    Computed(Box<Expr>, DataType),
}

/// A foreign key by the names of its columns.
pub(super) struct AlteredForeignKey {
    pub(super) key: ForeignKey,
    pub(super) columns: Vec<String>,
    /// The columns that it refers to, if they are in the same table.
    pub(super) own_parent: Option<Vec<String>>,
}

/// Constraints added to a table, in the order in which to declare them.
pub(super) type AddedConstraints = (Vec<DeclaredKey>, Vec<DeclaredCheck>, Vec<DeclaredForeignKey>);

/// A table after its alteration.
pub(super) struct AlteredTable {
    pub(super) columns: Vec<AlteredColumn>,
    pub(super) keys: Vec<AlteredKey>,
    pub(super) indexes: Vec<AlteredIndex>,
    pub(super) catalog_indexes: Vec<AlteredCatalogIndex>,
    pub(super) checks: Vec<(Arc<str>, Expr)>,
    pub(super) foreign_keys: Vec<AlteredForeignKey>,
    /// Columns that change their types, by their old names.
    pub(super) retyped: Vec<String>,
    /// Added constraints, still without names.
    pub(super) added: DeclaredTable,
}

impl AlteredTable {
    /// The unaltered table.
    pub(super) fn from_definition(id: TableId, definition: &TableDefinition) -> Result<Self> {
        let fields = definition.columns.fields();
        let mut columns = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let default = definition.defaults[at].as_deref();
            columns.push(AlteredColumn {
                name: field.name().clone(),
                not_null: !field.is_nullable(),
                default: default.map(parsed_expr).transpose()?,
                identity: definition.identities[at],
                new_identity: None,
                source: ColumnSource::Column(Arc::clone(field)),
            });
        }
        let mut checks = Vec::with_capacity(definition.checks.len());
        for check in &definition.checks {
            checks.push((Arc::clone(&check.name), parsed_expr(&check.sql)?));
        }
        let names = |columns: &[usize]| -> Vec<String> {
            columns.iter().map(|at| fields[*at].name().clone()).collect()
        };
        let keys = definition.uniques.iter().map(|unique| AlteredKey::from_unique(unique, &names));
        let indexes = definition.indexes.iter();
        let indexes = indexes.map(|index| AlteredIndex::from_index(index, &names));
        let in_catalog = definition.catalog_indexes.iter();
        let in_catalog = in_catalog.map(|index| AlteredCatalogIndex::from_index(index, &names));
        let foreign_keys = definition.foreign_keys.iter().map(|key| AlteredForeignKey {
            key: key.clone(),
            columns: names(&key.columns),
            own_parent: (key.parent == id).then(|| names(&key.parent_columns)),
        });
        Ok(Self {
            columns,
            keys: keys.collect::<Result<_>>()?,
            indexes: indexes.collect::<Result<_>>()?,
            catalog_indexes: in_catalog.collect::<Result<_>>()?,
            checks,
            foreign_keys: foreign_keys.collect(),
            retyped: Vec::new(),
            added: DeclaredTable::default(),
        })
    }

    /// Applies an operation.
    pub(super) fn apply(
        &mut self,
        operation: &AlterTableOperation,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Result<()> {
        use AlterTableOperation as Op;
        match operation {
            Op::AddColumn { column_def, if_not_exists, column_position: None, .. } => {
                self.add(column_def, *if_not_exists, normalize)
            }
            Op::DropColumn { column_names, if_exists, .. } => column_names
                .iter()
                .try_for_each(|name| self.drop_column(&normalize(name), *if_exists, normalize)),
            Op::RenameColumn { old_column_name, new_column_name } => {
                self.rename(&normalize(old_column_name), normalize(new_column_name), normalize)
            }
            Op::AlterColumn { column_name, op } => {
                self.alter(&normalize(column_name), op, normalize)
            }
            Op::AddConstraint { constraint, not_valid: false } => {
                self.constrain(constraint.clone())
            }
            Op::DropConstraint { name, if_exists, .. } => {
                self.drop_constraint(&normalize(name), *if_exists)
            }
            Op::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(&normalize(old_name), normalize(new_name))
            }
            Op::SetTblProperties { table_properties } if sets_statistics(table_properties) => {
                table_properties.iter().try_for_each(|property| match property {
                    SqlOption::KeyValue { key, .. } => self.known(&normalize(key)),
                    _ => Ok(()),
                })
            }
            other => plan_err!(
                "ALTER TABLE … {other} is not supported; expected ADD, DROP, RENAME or ALTER COLUMN, ADD, DROP \
                 or RENAME CONSTRAINT, or RENAME TO alone"
            ),
        }
    }

    /// Checks that a column exists, whose statistics target has no effect: statistics are exact.
    fn known(&self, name: &str) -> Result<()> {
        match self.position(name) {
            Some(_) => Ok(()),
            None => self.not_found(name),
        }
    }

    fn add(
        &mut self,
        column: &ColumnDef,
        if_not_exists: bool,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Result<()> {
        let name = normalize(&column.name);
        if if_not_exists && self.position(&name).is_some() {
            return Ok(());
        }
        self.free(&name)?;
        let mut column = column.clone();
        self.added.take_column(&mut column)?;
        let Some(declared) = self.added.columns.pop() else { return Ok(()) };
        self.columns.push(AlteredColumn {
            name,
            not_null: declared.not_null || declared.identity.is_some(),
            default: declared.default,
            identity: None,
            new_identity: declared.identity,
            source: ColumnSource::New(column.data_type),
        });
        Ok(())
    }

    /// Drops a column, and with it the constraints that use it.
    fn drop_column(
        &mut self,
        name: &str,
        if_exists: bool,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Result<()> {
        let computed = self.columns.iter().find(|column| {
            column.default.as_ref().and_then(computed).is_some_and(|expr| reads(expr, name))
        });
        if let Some(computed) = computed {
            return stated_err!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot drop column '{name}', from which the generated column '{}' is computed; drop that first",
                computed.name
            );
        }
        match self.position(name) {
            None if if_exists => return Ok(()),
            None => return self.not_found(name),
            Some(at) => drop(self.columns.remove(at)),
        }
        self.keys.retain(|key| !key.uses(name, normalize));
        self.indexes.retain(|index| !index.uses(name, normalize));
        self.catalog_indexes.retain(|index| !index.uses(name, normalize));
        self.foreign_keys.retain(|key| key.columns.iter().all(|column| column != name));
        self.checks.retain(|(_, check)| !columns_of(check, normalize).contains(name));
        match self.columns.is_empty() {
            true => plan_err!("the last column of a table cannot be dropped; use DROP TABLE"),
            false => Ok(()),
        }
    }

    fn rename(
        &mut self,
        old: &str,
        new: String,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Result<()> {
        let Some(at) = self.position(old) else { return self.not_found(old) };
        self.free(&new)?;
        let keys = self.keys.iter_mut();
        let keys = keys.flat_map(|key| key.columns.iter_mut().chain(&mut key.included));
        let indexes = self.indexes.iter_mut();
        let indexed = indexes.flat_map(|index| index.keys.iter_mut().chain(&mut index.included));
        let foreign_keys = self.foreign_keys.iter_mut();
        let foreign_keys = foreign_keys
            .flat_map(|key| key.columns.iter_mut().chain(key.own_parent.iter_mut().flatten()));
        let in_catalog = self.catalog_indexes.iter_mut().flat_map(AlteredCatalogIndex::columns_mut);
        for column in keys.chain(indexed).chain(foreign_keys).chain(in_catalog) {
            if column == old {
                column.clone_from(&new);
            }
        }
        let added = self.added.checks.iter_mut().map(|check| &mut check.condition);
        let defaults = self.columns.iter_mut().filter_map(|column| column.default.as_mut());
        let computed = self.keys.iter_mut();
        let computed =
            computed.flat_map(|key| key.expressions.iter_mut().flatten().chain(&mut key.condition));
        let indexed = self.indexes.iter_mut();
        let indexed = indexed
            .flat_map(|index| index.expressions.iter_mut().flatten().chain(&mut index.condition));
        let in_catalog = self.catalog_indexes.iter_mut().flat_map(AlteredCatalogIndex::exprs_mut);
        let indexed = indexed.chain(in_catalog);
        let checks = self.checks.iter_mut().map(|(_, check)| check);
        for check in checks.chain(added).chain(defaults).chain(computed).chain(indexed) {
            rename_in(check, old, &new, normalize);
        }
        let keys = self.added.keys.iter_mut();
        let keys = keys.flat_map(|key| key.columns.iter_mut().chain(&mut key.included));
        let foreign_keys = self.added.foreign_keys.iter_mut().flat_map(|key| &mut key.columns);
        for column in keys.chain(foreign_keys) {
            if normalize(column) == old {
                *column = quoted(&new);
            }
        }
        self.columns[at].name = new;
        Ok(())
    }

    fn alter(
        &mut self,
        name: &str,
        operation: &AlterColumnOperation,
        normalize: &dyn Fn(&Ident) -> String,
    ) -> Result<()> {
        let Some(at) = self.position(name) else { return self.not_found(name) };
        let in_primary_key = self
            .keys
            .iter()
            .any(|key| key.unique.is_primary && key.columns.iter().any(|c| c == name));
        let column = &mut self.columns[at];
        let is_identity = column.is_identity();
        let is_computed = column.default.as_ref().and_then(computed).is_some();
        let changes_default = matches!(
            operation,
            AlterColumnOperation::SetDefault { .. }
                | AlterColumnOperation::DropDefault
                | AlterColumnOperation::AddGenerated { .. }
        );
        if is_computed && changes_default {
            return stated_err!(
                SYNTAX_ERROR,
                "column '{name}' is GENERATED; drop it, and add it anew"
            );
        }
        match operation {
            AlterColumnOperation::SetNotNull => column.not_null = true,
            AlterColumnOperation::DropNotNull if in_primary_key || is_identity => {
                return stated_err!(
                    INVALID_TABLE_DEFINITION,
                    "column '{name}' is in a primary key, or an identity: never NULL"
                );
            }
            AlterColumnOperation::DropNotNull => column.not_null = false,
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault
                if is_identity =>
            {
                return stated_err!(
                    SYNTAX_ERROR,
                    "column '{name}' is an identity: its numbers come from its sequence"
                );
            }
            AlterColumnOperation::SetDefault { value } => column.default = Some(value.clone()),
            AlterColumnOperation::DropDefault => column.default = None,
            AlterColumnOperation::AddGenerated { .. } if is_identity => {
                return stated_err!(
                    NOT_IN_PREREQUISITE_STATE,
                    "column '{name}' is an identity already"
                );
            }
            AlterColumnOperation::AddGenerated { .. } if column.identity.is_some() => {
                return stated_err!(
                    NOT_IN_PREREQUISITE_STATE,
                    "column '{name}' is a serial column; drop its default, and say ALTER SEQUENCE … OWNED BY NONE"
                );
            }
            AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
                let kind = match generated_as {
                    Some(GeneratedAs::Always) => IdentityKind::Always,
                    _ => IdentityKind::ByDefault,
                };
                let options = sequence_options.clone().unwrap_or_default();
                column.new_identity = Some(DeclaredIdentity { kind, options });
                column.not_null = true;
            }
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                let ColumnSource::Column(field) = &column.source else {
                    return plan_err!("column '{name}' is changed twice in one ALTER TABLE");
                };
                for key in &mut self.keys {
                    key.is_rebuilt |= key.computes_from(name, normalize);
                }
                for index in &mut self.indexes {
                    index.is_rebuilt |= index.computes_from(name, normalize);
                }
                let own = || Expr::Identifier(quoted(field.name()));
                let value = using.clone().unwrap_or_else(own);
                self.retyped.push(field.name().clone());
                // Checks of the old type do not apply to the new one.
                self.checks.retain(|(_, check)| !is_of_type(check, name));
                let ident = quoted(name);
                let (value, data_type) = match as_texts(data_type, &value, &ident) {
                    Some((texts, data_type, condition)) => {
                        let column = Some(ident);
                        self.added.checks.push(DeclaredCheck { name: None, column, condition });
                        (texts, data_type)
                    }
                    None => (value, data_type.clone()),
                };
                column.source = ColumnSource::Computed(Box::new(value), data_type);
            }
        }
        Ok(())
    }

    fn constrain(&mut self, constraint: TableConstraint) -> Result<()> {
        let is_primary = matches!(constraint, TableConstraint::PrimaryKey(_));
        if is_primary && self.keys.iter().any(|key| key.unique.is_primary) {
            return stated_err!(
                INVALID_TABLE_DEFINITION,
                "the table has a primary key; drop that first: DROP CONSTRAINT"
            );
        }
        self.added.add(constraint, None)
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let count = |it: &Self| it.keys.len() + it.checks.len() + it.foreign_keys.len();
        let before = count(self);
        self.keys.retain(|key| &*key.unique.name != name || key.unique.is_index);
        self.checks.retain(|(own, check)| &**own != name || belongs_to_type(check));
        self.foreign_keys.retain(|key| &*key.key.name != name);
        match if_exists || count(self) < before {
            true => Ok(()),
            false => stated_err!(
                UNDEFINED_OBJECT,
                "constraint \"{name}\" does not exist{}",
                self.constraints()
            ),
        }
    }

    fn rename_constraint(&mut self, old: &str, new: String) -> Result<()> {
        let keys = self.keys.iter_mut().map(|key| &mut key.unique);
        let keys = keys.filter(|key| !key.is_index).map(|key| &mut key.name);
        let foreign_keys = self.foreign_keys.iter_mut().map(|key| &mut key.key.name);
        let checks = self.checks.iter_mut().filter(|(_, check)| !belongs_to_type(check));
        let mut names = keys.chain(checks.map(|(name, _)| name)).chain(foreign_keys);
        match names.find(|name| &***name == old) {
            Some(name) => *name = new.into(),
            None => {
                return stated_err!(
                    UNDEFINED_OBJECT,
                    "constraint \"{old}\" does not exist{}",
                    self.constraints()
                );
            }
        }
        Ok(())
    }

    fn constraints(&self) -> String {
        let keys = self.keys.iter().map(|key| &key.unique);
        let names = keys.filter(|key| !key.is_index).map(|key| &*key.name);
        let checks = self.checks.iter().filter(|(_, check)| !belongs_to_type(check));
        let names = names.chain(checks.map(|(name, _)| &**name));
        let foreign_keys = self.foreign_keys.iter().map(|key| &*key.key.name);
        let names: Vec<&str> = names.chain(foreign_keys).collect();
        match names.is_empty() {
            true => "; the table has none".to_owned(),
            false => format!("; the table has {}", names.join(", ")),
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    fn free(&self, name: &str) -> Result<()> {
        match self.position(name) {
            Some(_) => stated_err!(DUPLICATE_COLUMN, "column '{name}' already exists"),
            None => Ok(()),
        }
    }

    fn not_found<T>(&self, name: &str) -> Result<T> {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        stated_err!(
            UNDEFINED_COLUMN,
            "column \"{name}\" does not exist; the table has the columns {}",
            names.join(", ")
        )
    }

    /// The new constraints, which get their names with the definition.
    pub(super) fn take_added(&mut self) -> AddedConstraints {
        let DeclaredTable { keys, checks, foreign_keys, .. } = std::mem::take(&mut self.added);
        (keys, checks, foreign_keys)
    }

    /// The current position and name of a column; `None` if it is dropped or changes its type.
    pub(super) fn place_of(&self, original: &str) -> Option<(usize, &str)> {
        let is_it = |column: &&AlteredColumn| matches!(&column.source, ColumnSource::Column(field) if field.name() == original);
        let at = self.columns.iter().position(|column| is_it(&column))?;
        Some((at, &self.columns[at].name))
    }

    /// Whether columns, by their current names, are those of a key.
    pub(super) fn has_key(&self, columns: &[&str]) -> bool {
        let is_it = |key: &AlteredKey| {
            let same = key.columns.iter().all(|column| columns.contains(&column.as_str()));
            let is_usable = key.unique.is_plain() && key.unique.is_immediate();
            same && key.columns.len() == columns.len() && is_usable
        };
        self.keys.iter().any(is_it)
    }
}

/// Renames a column in a condition.
fn rename_in(condition: &mut Expr, old: &str, new: &str, normalize: &dyn Fn(&Ident) -> String) {
    let _ = walk_expressions_mut(condition, &mut |expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(name) = name.filter(|name| normalize(name) == old) {
            *name = match quote_identifier(new) {
                Cow::Borrowed(plain) => Ident::new(plain),
                Cow::Owned(_) => quoted(new),
            };
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Whether these are statistics targets of columns.
fn sets_statistics(properties: &[SqlOption]) -> bool {
    let is_target = |value: &Expr| matches!(value, Expr::Identifier(of) if of.value == STATISTICS);
    properties.iter().all(|property| match property {
        SqlOption::KeyValue { value, .. } => is_target(value),
        _ => false,
    })
}

/// Whether a CHECK constraint belongs to the type of a column.
fn is_of_type(check: &Expr, column: &str) -> bool {
    let sql = check.to_string();
    type_of_check(&sql, column).is_some()
        || checked_domain(&sql).is_some_and(|(checked, _)| checked == column)
}
