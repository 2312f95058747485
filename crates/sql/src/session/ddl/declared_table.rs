//! The declarations of CREATE TABLE besides names and types of columns: NOT NULL, DEFAULT, identities, generated
//! columns, PRIMARY KEY, UNIQUE, CHECK, FOREIGN KEY. They are taken out of the statement; DataFusion plans the rest.

use std::collections::HashSet;

use atoll_store::table::{Deferral, IdentityKind, OnCommit};
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ConstraintCharacteristics, CreateTable, DataType,
    DeferrableInitial, Expr, GeneratedAs, Ident, IndexColumn, NullsDistinctOption, ObjectNamePart,
    OnCommit as AstOnCommit, SequenceOptions, TableConstraint,
};

use crate::session::ddl::foreign_key::DeclaredForeignKey;
use crate::session::ddl::index::CopiedIndexes;
use crate::table_text::as_default;
use atoll_sql_common::error::stated_err;
use atoll_sql_parse::dialect::{INCLUDE, NULLS_NOT_DISTINCT};

/// The declarations, columns by position.
#[derive(Debug, Default)]
pub(in crate::session) struct DeclaredTable {
    pub(in crate::session) columns: Vec<DeclaredColumn>,
    pub(in crate::session) keys: Vec<DeclaredKey>,
    pub(in crate::session) checks: Vec<DeclaredCheck>,
    pub(in crate::session) foreign_keys: Vec<DeclaredForeignKey>,
    /// The tables whose indexes are copied.
    pub(in crate::session) copied_indexes: CopiedIndexes,
    /// The ON COMMIT action of a temporary table.
    pub(in crate::session) temporary: Option<OnCommit>,
}

/// The declarations of a column.
#[derive(Debug, Default)]
pub(in crate::session) struct DeclaredColumn {
    pub(in crate::session) not_null: bool,
    pub(in crate::session) default: Option<Expr>,
    pub(in crate::session) identity: Option<DeclaredIdentity>,
}

/// `GENERATED … AS IDENTITY`, and SERIAL.
#[derive(Debug)]
pub(in crate::session) struct DeclaredIdentity {
    pub(in crate::session) kind: IdentityKind,
    pub(in crate::session) options: Vec<SequenceOptions>,
}

/// PRIMARY KEY or UNIQUE.
#[derive(Debug)]
pub(in crate::session) struct DeclaredKey {
    pub(in crate::session) name: Option<Ident>,
    pub(in crate::session) columns: Vec<Ident>,
    /// The columns of INCLUDE.
    pub(in crate::session) included: Vec<Ident>,
    pub(in crate::session) is_primary: bool,
    /// NULLS NOT DISTINCT.
    pub(in crate::session) nulls_not_distinct: bool,
    /// Whether and how its check can be deferred.
    pub(in crate::session) deferral: Deferral,
}

impl DeclaredKey {
    fn of_table(name: Option<Ident>, columns: &[IndexColumn], is_primary: bool) -> Result<Self> {
        let is_mark = |column: &IndexColumn| {
            matches!(&column.column.expr, Expr::Identifier(name)
                if name.quote_style.is_some() && name.value == INCLUDE)
        };
        let (columns, included) = match columns.iter().position(is_mark) {
            Some(mark) => (&columns[..mark], &columns[mark + 1..]),
            None => (columns, &[][..]),
        };
        let (columns, included) = (names(columns)?, names(included)?);
        let (nulls_not_distinct, deferral) = (false, Deferral::Never);
        Ok(Self { name, columns, included, is_primary, nulls_not_distinct, deferral })
    }

    fn of_column(
        name: Option<Ident>,
        column: &Ident,
        is_primary: bool,
        said: Option<ConstraintCharacteristics>,
    ) -> Result<Self> {
        Ok(Self {
            name,
            columns: vec![column.clone()],
            included: Vec::new(),
            is_primary,
            nulls_not_distinct: false,
            deferral: deferral(said)?,
        })
    }
}

/// CHECK.
#[derive(Debug)]
pub(in crate::session) struct DeclaredCheck {
    pub(in crate::session) name: Option<Ident>,
    /// The column in whose definition it stands.
    pub(in crate::session) column: Option<Ident>,
    pub(in crate::session) condition: Expr,
}

/// `DEFERRABLE INITIALLY DEFERRED` and its kin.
pub(in crate::session) fn deferral(said: Option<ConstraintCharacteristics>) -> Result<Deferral> {
    let Some(ConstraintCharacteristics { deferrable, initially, enforced }) = said else {
        return Ok(Deferral::Never);
    };
    if enforced == Some(false) {
        return stated_err!(FEATURE_NOT_SUPPORTED, "NOT ENFORCED is not supported");
    }
    match (deferrable, initially) {
        (Some(false), Some(DeferrableInitial::Deferred)) => {
            stated_err!(SYNTAX_ERROR, "constraint declared INITIALLY DEFERRED must be DEFERRABLE")
        }
        (_, Some(DeferrableInitial::Deferred)) => Ok(Deferral::InitiallyDeferred),
        (Some(true), _) => Ok(Deferral::InitiallyImmediate),
        (Some(false) | None, _) => Ok(Deferral::Never),
    }
}

/// Takes out TEMP and ON COMMIT.
fn take_temporary(create: &mut CreateTable) -> Result<Option<OnCommit>> {
    let on_commit = create.on_commit.take().map(|on_commit| match on_commit {
        AstOnCommit::PreserveRows => OnCommit::PreserveRows,
        AstOnCommit::DeleteRows => OnCommit::DeleteRows,
        AstOnCommit::Drop => OnCommit::Drop,
    });
    match (std::mem::take(&mut create.temporary), on_commit) {
        (true, on_commit) => Ok(Some(on_commit.unwrap_or_default())),
        (false, None) => Ok(None),
        (false, Some(_)) => {
            stated_err!(INVALID_TABLE_DEFINITION, "ON COMMIT can only be used on temporary tables")
        }
    }
}

impl DeclaredTable {
    /// Takes the declarations out of a statement.
    ///
    /// # Errors
    /// For unsupported constraints, two primary keys, and ON COMMIT of a permanent table.
    pub(in crate::session) fn take(create: &mut CreateTable) -> Result<Self> {
        let mut declared = Self { temporary: take_temporary(create)?, ..Self::default() };
        for column in &mut create.columns {
            declared.take_column(column)?;
        }
        for constraint in std::mem::take(&mut create.constraints) {
            declared.add(constraint, None)?;
        }
        if declared.keys.iter().filter(|key| key.is_primary).count() > 1 {
            return stated_err!(
                INVALID_TABLE_DEFINITION,
                "multiple primary keys for table '{}' are not allowed",
                create.name
            );
        }
        Ok(declared)
    }

    /// Takes the declarations of one column, the last one so far.
    pub(in crate::session) fn take_column(&mut self, column: &mut ColumnDef) -> Result<()> {
        let mut of_column = DeclaredColumn::default();
        if let Some(whole) = serial(&column.data_type) {
            column.data_type = whole;
            of_column.identity =
                Some(DeclaredIdentity { kind: IdentityKind::Serial, options: Vec::new() });
        }
        let mut is_null = false;
        for option in std::mem::take(&mut column.options) {
            let name = option.name;
            match option.option {
                ColumnOption::Null => is_null = true,
                ColumnOption::NotNull => of_column.not_null = true,
                ColumnOption::Default(value) => {
                    if of_column.default.is_some() {
                        return stated_err!(
                            SYNTAX_ERROR,
                            "column '{}' has both DEFAULT and GENERATED",
                            column.name
                        );
                    }
                    of_column.default = Some(value);
                }
                ColumnOption::PrimaryKey(key) => {
                    let (name, said) = (name.or(key.name), key.characteristics);
                    self.keys.push(DeclaredKey::of_column(name, &column.name, true, said)?);
                }
                ColumnOption::Unique(key) => {
                    let (name, said) = (name.or(key.name), key.characteristics);
                    self.keys.push(DeclaredKey::of_column(name, &column.name, false, said)?);
                }
                ColumnOption::Comment(mark) if mark == NULLS_NOT_DISTINCT => {
                    if let Some(unique) = self.keys.last_mut() {
                        unique.nulls_not_distinct = true;
                    }
                }
                ColumnOption::Check(CheckConstraint { name: own, expr, .. }) => {
                    let (name, column) = (name.or(own), Some(column.name.clone()));
                    self.checks.push(DeclaredCheck { name, column, condition: *expr });
                }
                ColumnOption::Generated {
                    generated_as,
                    sequence_options,
                    generation_expr: None,
                    ..
                } => {
                    let kind = match generated_as {
                        GeneratedAs::Always => IdentityKind::Always,
                        _ => IdentityKind::ByDefault,
                    };
                    let options = sequence_options.unwrap_or_default();
                    of_column.identity = Some(DeclaredIdentity { kind, options });
                }
                ColumnOption::Generated { generation_expr: Some(expr), .. } => {
                    if of_column.default.is_some() {
                        return stated_err!(
                            SYNTAX_ERROR,
                            "column '{}' has both DEFAULT and GENERATED",
                            column.name
                        );
                    }
                    of_column.default = Some(as_default(expr));
                }
                ColumnOption::ForeignKey(mut key) => {
                    key.columns = vec![column.name.clone()];
                    self.foreign_keys.push(DeclaredForeignKey::from_constraint(key, name)?);
                }
                other => {
                    return not_impl_err!(
                        "{other} of column '{}' is not supported; expected NOT NULL, DEFAULT, PRIMARY KEY, \
                         UNIQUE, CHECK, REFERENCES or GENERATED",
                        column.name
                    );
                }
            }
        }
        if of_column.identity.is_some() && of_column.default.is_some() {
            return stated_err!(
                SYNTAX_ERROR,
                "column '{}' has both DEFAULT and IDENTITY",
                column.name
            );
        }
        of_column.not_null |= of_column.identity.is_some();
        if is_null && of_column.not_null {
            return stated_err!(
                SYNTAX_ERROR,
                "conflicting NULL/NOT NULL declarations for column '{}'",
                column.name
            );
        }
        self.columns.push(of_column);
        Ok(())
    }

    /// Adds a table constraint.
    pub(in crate::session) fn add(
        &mut self,
        constraint: TableConstraint,
        named: Option<Ident>,
    ) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let name = named.or(key.name);
                let declared = DeclaredKey::of_table(name, &key.columns, true)?;
                let deferral = deferral(key.characteristics)?;
                self.keys.push(DeclaredKey { deferral, ..declared });
            }
            TableConstraint::Unique(key) => {
                let name = named.or(key.name);
                let nulls_not_distinct = key.nulls_distinct == NullsDistinctOption::NotDistinct;
                let declared = DeclaredKey::of_table(name, &key.columns, false)?;
                let deferral = deferral(key.characteristics)?;
                self.keys.push(DeclaredKey { nulls_not_distinct, deferral, ..declared });
            }
            TableConstraint::Check(CheckConstraint { name, expr, .. }) => {
                let name = named.or(name);
                self.checks.push(DeclaredCheck { name, column: None, condition: *expr });
            }
            TableConstraint::ForeignKey(key) => {
                self.foreign_keys.push(DeclaredForeignKey::from_constraint(key, named)?);
            }
            other => {
                return not_impl_err!(
                    "{other}; expected PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY"
                );
            }
        }
        Ok(())
    }
}

/// The columns of a key, each named once.
fn names(columns: &[IndexColumn]) -> Result<Vec<Ident>> {
    let mut seen = HashSet::new();
    let mut names = Vec::with_capacity(columns.len());
    for column in columns {
        let Expr::Identifier(name) = &column.column.expr else {
            return plan_err!("a key consists of columns; '{column}' is an expression");
        };
        if !seen.insert(name.value.clone()) {
            return stated_err!(DUPLICATE_COLUMN, "column '{name}' appears twice in a key");
        }
        names.push(name.clone());
    }
    Ok(names)
}

/// The type of the numbers of SERIAL and similar types.
fn serial(data_type: &DataType) -> Option<DataType> {
    let DataType::Custom(name, arguments) = data_type else { return None };
    let [ObjectNamePart::Identifier(name)] = &name.0[..] else { return None };
    if !arguments.is_empty() {
        return None;
    }
    match name.value.to_ascii_lowercase().as_str() {
        "smallserial" | "serial2" => Some(DataType::SmallInt(None)),
        "serial" | "serial4" => Some(DataType::Integer(None)),
        "bigserial" | "serial8" => Some(DataType::BigInt(None)),
        _ => None,
    }
}
