//! Parameters that no plan has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;

use crate::session::cache::point::parameter_fields;

/// Parameters in expressions outside the plan, such as those of ON CONFLICT, with their types if they are known.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct RuleParameters(Arc<Mutex<BTreeMap<String, Option<DataType>>>>);

impl RuleParameters {
    /// Notes a parameter: `$1`.
    pub(in crate::session) fn note(&self, name: &str, data_type: Option<DataType>) {
        let mut noted = self.0.lock();
        let known = noted.entry(name.to_owned()).or_default();
        *known = known.take().or(data_type);
    }

    pub(in crate::session) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The first one's name.
    pub(in crate::session) fn first(&self) -> Option<String> {
        self.0.lock().keys().next().cloned()
    }

    /// These and the parameters of a plan.
    pub(in crate::session) fn and_of(
        &self,
        plan: &LogicalPlan,
    ) -> Result<HashMap<String, Option<DataType>>> {
        let fields = parameter_fields(plan)?.into_iter();
        let mut all: HashMap<String, Option<DataType>> = fields
            .map(|(name, field)| (name, field.map(|field| field.data_type().clone())))
            .collect();
        for (name, data_type) in self.0.lock().iter() {
            let known = all.entry(name.clone()).or_default();
            *known = known.take().or_else(|| data_type.clone());
        }
        Ok(all)
    }
}
