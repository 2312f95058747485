//! Whole plans under the rule: where it puts exchanges and homes, that rows do not change, and that every
//! partition of every scan really runs at its home.

use std::sync::Arc;

use async_trait::async_trait;
use atoll_runtime::Runtime;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};

use super::homes::home_of;
use super::rule::PlaceOnHomes;
use super::testing::{TestSource, one_node, random_partitions, schema, sorted_rows, two_nodes};
use crate::rules::RuleList;

/// Queries whose plans gather partitions in every way.
const QUERIES: [&str; 12] = [
    "SELECT * FROM t",
    "SELECT k, count(*) FROM t GROUP BY k",
    "SELECT count(*) FROM t",
    "SELECT k, s FROM t ORDER BY k, s",
    "SELECT t.k, u.s FROM t JOIN u ON t.k = u.k",
    "SELECT t.k, u.s FROM t LEFT JOIN u ON t.s = u.s WHERE t.k > 10",
    "SELECT t.k, one.s FROM t JOIN one ON t.k = one.k",
    "SELECT count(*) FROM t, one WHERE t.k < one.k",
    "SELECT k FROM one UNION ALL SELECT k FROM t",
    "SELECT k FROM one UNION SELECT k FROM t",
    "SELECT k FROM t WHERE k > (SELECT avg(k) FROM u)",
    "SELECT k, s, row_number() OVER (PARTITION BY k ORDER BY s) FROM (SELECT DISTINCT k, s FROM t)",
];

#[derive(Debug)]
struct TestTable(TestSource);

#[async_trait]
impl TableProvider for TestTable {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(projection) = projection else { return Ok(self.0.plan()) };
        let columns = projection.iter().map(|&at| {
            let name = schema().field(at).name().clone();
            let column = Arc::new(Column::new(&name, at))
                as Arc<dyn datafusion::physical_expr::PhysicalExpr>;
            (column, name)
        });
        Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), self.0.plan())?))
    }
}

/// Tables `t` and `u` of 4 partitions and `one` of one; all scans record where they run.
struct Tables {
    context: SessionContext,
    sources: Vec<TestSource>,
}

impl Tables {
    fn new(runtime: &Runtime, placed: bool) -> Self {
        let config = SessionConfig::new().with_target_partitions(4).with_batch_size(128);
        let mut state = SessionStateBuilder::new().with_default_features().with_config(config);
        if placed {
            let places = Arc::new(PlaceOnHomes::new(runtime.clone()));
            let rules = RuleList::new().datafusion_through("EnsureCooperative").ours([places]);
            state = state.with_physical_optimizer_rules(rules.datafusion_rest());
        }
        let context = SessionContext::new_with_state(state.build());
        let mut sources = vec![];
        for (seed, (name, partitions)) in [("t", 4), ("u", 4), ("one", 1)].into_iter().enumerate() {
            let source = TestSource::new(runtime, random_partitions(partitions, seed as u64));
            context.register_table(name, Arc::new(TestTable(source.clone()))).unwrap();
            sources.push(source);
        }
        Self { context, sources }
    }

    async fn plan(&self, query: &str) -> String {
        let frame = self.context.sql(query).await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        displayable(plan.as_ref()).indent(false).to_string()
    }

    async fn rows(&self, query: &str) -> Vec<String> {
        sorted_rows(&self.context.sql(query).await.unwrap().collect().await.unwrap())
    }
}

#[tokio::test]
async fn every_scan_of_every_query_runs_at_home_and_the_rows_are_the_same() {
    let runtime = two_nodes();
    for query in QUERIES {
        let placed = Tables::new(&runtime, true);
        let plain = Tables::new(&runtime, false);
        assert_eq!(placed.rows(query).await, plain.rows(query).await, "{query}");
        for (partition, here) in placed.sources.iter().flat_map(TestSource::polls) {
            let home = Some(home_of(&runtime, partition));
            assert_eq!(here, home, "{query}\n{}", placed.plan(query).await);
        }
    }
}

#[tokio::test]
async fn explain_analyze_runs_at_home_too() {
    let runtime = two_nodes();
    let tables = Tables::new(&runtime, true);
    let report = tables.rows("EXPLAIN ANALYZE SELECT k, count(*) FROM t GROUP BY k").await;
    assert!(report[0].contains("bytes_remote="), "{report:?}");
    assert!(report[0].contains("HomeExec: homes=[0,0,1,1]"), "{report:?}");
    for (partition, here) in tables.sources[0].polls() {
        assert_eq!(here, Some(home_of(&runtime, partition)));
    }
}

#[tokio::test]
async fn a_grouped_query_has_an_exchange_in_the_middle_and_homes_on_top() {
    let tables = Tables::new(&two_nodes(), true);
    let plan = tables.plan("SELECT k, count(*) FROM t GROUP BY k").await;
    assert!(plan.starts_with("HomeExec: homes=[0,0,1,1]\n"), "{plan}");
    let exchange = "ExchangeExec: partitioning=Hash([k@0], 4), input_partitions=4, homes=[0,0,1,1]";
    assert!(plan.contains(exchange), "{plan}");
    assert!(!plan.contains("RepartitionExec"), "{plan}");
}

#[tokio::test]
async fn operators_that_merge_partitions_have_homes_below() {
    let tables = Tables::new(&two_nodes(), true);
    let plan = tables.plan("SELECT k FROM t ORDER BY k").await;
    let lines: Vec<&str> = plan.lines().map(str::trim).collect();
    let merge = lines.iter().position(|line| line.starts_with("SortPreservingMergeExec")).unwrap();
    assert_eq!(lines[merge + 1], "HomeExec: homes=[0,0,1,1]", "{plan}");
    assert_eq!(lines[0], "HomeExec: homes=[0]", "{plan}");
}

#[tokio::test]
async fn with_one_pool_plans_stay_unchanged() {
    let runtime = one_node();
    for query in QUERIES {
        let plan = Tables::new(&runtime, true).plan(query).await;
        assert_eq!(plan, Tables::new(&runtime, false).plan(query).await);
    }
}
