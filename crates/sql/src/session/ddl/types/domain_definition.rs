//! What a domain may be: its base type, and the conditions and the default that fit it.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::{DataType as Arrow, Field, Schema};
use datafusion::common::{DFSchema, Result, not_impl_err};
use datafusion::logical_expr::ExprSchemable;
use datafusion::sql::sqlparser::ast::{DataType, Expr, TimezoneInfo};

use crate::session::ddl::table_definition::Queries;
use crate::session::plan::domains::is_value;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{SqlError, stated_err};
use atoll_sql_common::pg_type::{Checked, PgType, format_type};
use atoll_sql_common::user_type::DomainType;
use atoll_sql_parse::syntax::{sql_text, walk, walk_expressions_mut};
use atoll_sql_semantics::sql_to_plan::create_logical_expr;

impl StatementPlanner {
    /// Refuses base types that domains cannot have.
    pub(super) fn check_base(&self, base: &DataType) -> Result<()> {
        let refused = match base {
            DataType::Uuid | DataType::JSON | DataType::JSONB | DataType::Array(_) => true,
            DataType::Time(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => true,
            DataType::Custom(name, _) => {
                Checked::named(&name.to_string()).is_some()
                    || self.domain_named(name)?.is_some()
                    || self.user_type_named(name)?.is_some()
            }
            _ => false,
        };
        match refused {
            true => not_impl_err!(
                "a domain over {base} is not supported; use the type itself, with CHECK on the columns"
            ),
            false => self.base_of(&base.to_string()).map(drop),
        }
    }

    /// The type of the values of a domain.
    fn base_of(&self, base: &str) -> Result<Arrow> {
        let none = DFSchema::empty();
        let null = create_logical_expr(&self.state, &format!("CAST(NULL AS {base})"), &none)?;
        null.get_type(&none)
    }

    /// Refuses a condition that does not compute a truth value from VALUE alone.
    pub(super) fn check_condition(&self, condition: &Expr, domain: &DomainType) -> Result<()> {
        if walk(condition, &mut Queries).is_break() {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "cannot use subquery in check constraint of domain {}",
                domain.name
            );
        }
        let mut condition = self.without_domains(condition)?;
        let _ = walk_expressions_mut(&mut condition, &mut |expr| {
            if let Expr::Identifier(name) = expr
                && is_value(name)
            {
                name.value = "value".to_owned();
            }
            ControlFlow::<()>::Continue(())
        });
        let value = Field::new("value", self.base_of(&domain.base)?, true);
        let schema = DFSchema::try_from(Schema::new(vec![value]))?;
        let planned = create_logical_expr(&self.state, &sql_text(&condition), &schema)?;
        if planned.is_volatile() {
            return stated_err!(
                INVALID_OBJECT_DEFINITION,
                "a CHECK constraint of domain {} must give the same answer each time",
                domain.name
            );
        }
        match planned.get_type(&schema)? {
            Arrow::Boolean | Arrow::Null => Ok(()),
            other => stated_err!(
                DATATYPE_MISMATCH,
                "argument of CHECK must be type boolean, not type {}",
                format_type(PgType::from_data_type(&other).oid.into(), -1)
            ),
        }
    }

    /// Refuses a default that is not a value of the base type.
    pub(super) fn check_default_of_domain(
        &self,
        default: &Expr,
        domain: &DomainType,
    ) -> Result<()> {
        if walk(default, &mut Queries).is_break() {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "cannot use subquery in DEFAULT expression of domain {}",
                domain.name
            );
        }
        let none = DFSchema::empty();
        let plain = self.without_domains(default)?;
        let planned = create_logical_expr(&self.state, &sql_text(&plain), &none);
        let base = self.base_of(&domain.base)?;
        match planned.and_then(|planned| planned.cast_to(&base, &none)) {
            Ok(_) => Ok(()),
            Err(error) => {
                let SqlError { state, message, .. } = SqlError::new(error, "");
                Err(state.error(format!("DEFAULT {default} of domain {}: {message}", domain.name)))
            }
        }
    }
}
