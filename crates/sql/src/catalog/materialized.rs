//! Materialized views: a stored table has the rows, and the store keeps the query as a text in a hidden schema, as it
//! keeps comments.

use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, Relation, RelationName, StoredStatement};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::utils::quote_identifier;

use super::UnplannedView;
use crate::role::rights::Owned;
use atoll_sql_common::names::MATERIALIZED;

/// The beginning of the stored text, before the query: the name and the columns are those of the table.
const CREATE: &str = "CREATE VIEW v AS ";

/// The query of a materialized view.
#[derive(Clone, Debug)]
pub(crate) struct MaterializedView {
    pub(crate) view: UnplannedView,
    /// Whether its table has the rows of the query.
    pub(crate) is_populated: bool,
}

impl MaterializedView {
    /// The statement that creates a view of a query.
    pub(crate) fn statement(query: &str) -> String {
        format!("{CREATE}{query}")
    }

    /// A materialized view of such a statement under these settings.
    pub(crate) fn new(statement: String, options: &ConfigOptions, is_populated: bool) -> Self {
        let view = UnplannedView::new(statement, Arc::new(Schema::empty()), options);
        Self { view, is_populated }
    }

    /// The materialized view with a name; `None` for other relations.
    ///
    /// # Errors
    /// If its settings cannot be read.
    pub(crate) fn find(version: &DatabaseVersion, name: &RelationName) -> Result<Option<Self>> {
        if !version.has_schema(MATERIALIZED) {
            return Ok(None);
        }
        let Some(Relation::External(kept)) = version.relation(&Self::entry(name)) else {
            return Ok(None);
        };
        let (is_populated, options) = kept.options.split_once(' ').unwrap_or_default();
        let stored = StoredStatement { options: options.into(), ..(**kept).clone() };
        let view = UnplannedView::from_stored(&stored)?;
        Ok(Some(Self { view, is_populated: is_populated == "true" }))
    }

    /// The text that the store keeps.
    pub(crate) fn stored(&self) -> StoredStatement {
        let stored = self.view.stored();
        StoredStatement {
            options: format!("{} {}", self.is_populated, stored.options).into(),
            ..stored
        }
    }

    /// The name under which it is kept.
    pub(crate) fn entry(name: &RelationName) -> RelationName {
        Owned::Relation(name.clone()).entry_in(MATERIALIZED)
    }

    /// The text of the query.
    pub(crate) fn query(&self) -> &str {
        self.view.sql.strip_prefix(CREATE).unwrap_or(&self.view.sql)
    }

    /// The statement that creates it, under a name as written.
    pub(crate) fn create_text(&self, name: &str, columns: &Schema) -> String {
        let columns = columns.fields().iter().map(|field| quote_identifier(field.name()));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let data = if self.is_populated { "" } else { " WITH NO DATA" };
        format!("CREATE MATERIALIZED VIEW {name} ({columns}) AS {}{data}", self.query())
    }
}
