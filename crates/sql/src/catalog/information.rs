//! `information_schema`: DataFusion's, with SQL type names in `columns` and only views in `views`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, RecordBatch, StringArray, StringBuilder, UInt64Array, UInt64Builder,
    new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{
    CatalogProviderList, MemTable, SchemaProvider, Session as SessionTrait, TableProvider,
};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::{ExecutionPlan, collect};

use super::Catalogs;
use crate::table::PlacedTable;
use crate::table_text::is_generated;
use atoll_functions::sql_name;
use atoll_sql_common::functions::Functions;
use atoll_sql_common::names::PG_CATALOG_SCHEMA;
use atoll_sql_common::pg_type::type_name;
use atoll_sql_common::user_type::{UserTypes, enum_oid};

/// The table of columns.
const COLUMNS: &str = "columns";

/// The table of views.
const VIEWS: &str = "views";

/// The tables of functions.
const OF_FUNCTIONS: [&str; 2] = ["routines", "parameters"];

/// The schema over the names of one moment.
#[derive(Debug)]
pub(super) struct InformationSchema {
    names: Catalogs,
    others: InformationSchemaProvider,
}

impl InformationSchema {
    pub(super) fn new(names: Catalogs) -> Self {
        let others = InformationSchemaProvider::new(Arc::new(names.clone()));
        Self { names, others }
    }

    /// Names of the tables that DataFusion lacks.
    fn more_tables(&self) -> Vec<&'static str> {
        self.names.system().map_or_else(Vec::new, |system| system.information_tables())
    }

    async fn columns(&self, schema: SchemaRef) -> Result<RecordBatch> {
        let (mut columns, types) = (ColumnRows::default(), self.names.user_types());
        for catalog_name in self.names.catalog_names() {
            let Some(catalog) = self.names.catalog(&catalog_name) else { continue };
            for schema_name in catalog.schema_names() {
                let Some(schema) = catalog.schema(&schema_name) else { continue };
                for table_name in schema.table_names() {
                    if let Some(table) = schema.table(&table_name).await? {
                        columns.add(
                            [&catalog_name, &schema_name, &table_name],
                            table.as_ref(),
                            &types,
                        );
                    }
                }
            }
        }
        columns.batch(schema)
    }

    /// The views, with their texts under the names that DataFusion and PostgreSQL have.
    async fn views(&self) -> Result<RecordBatch> {
        const NAMES: [&str; 5] =
            ["table_catalog", "table_schema", "table_name", "definition", "view_definition"];
        const ANSWERS: [(&str, &str); 3] =
            [("check_option", "NONE"), ("is_updatable", "NO"), ("is_insertable_into", "NO")];
        let mut texts: [StringBuilder; 5] = Default::default();
        for catalog_name in self.names.catalog_names() {
            let Some(catalog) = self.names.catalog(&catalog_name) else { continue };
            for schema_name in catalog.schema_names() {
                let Some(schema) = catalog.schema(&schema_name) else { continue };
                for table_name in schema.table_names() {
                    let table = schema.table(&table_name).await?;
                    let Some(view) = table.filter(|table| table.table_type() == TableType::View)
                    else {
                        continue;
                    };
                    let text = view.get_table_definition();
                    let at = [&catalog_name, &schema_name, &table_name].map(|name| Some(&**name));
                    for (texts, value) in texts.iter_mut().zip(at.into_iter().chain([text; 2])) {
                        texts.append_option(value);
                    }
                }
            }
        }
        let columns = texts.map(|mut texts| Arc::new(texts.finish()) as ArrayRef);
        let rows = columns[0].len();
        let named = NAMES.into_iter().zip(columns);
        let answers = ANSWERS.into_iter().map(|(name, answer)| {
            (name, Arc::new(StringArray::from(vec![answer; rows])) as ArrayRef)
        });
        let nullable = named.chain(answers).map(|(name, values)| (name, values, true));
        Ok(RecordBatch::try_from_iter_with_nullable(nullable)?)
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let more = self.more_tables().into_iter().map(str::to_owned);
        self.others.table_names().into_iter().chain(more).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let system = self.names.system().cloned();
        if let Some(table) = system.and_then(|it| it.information_table(&self.names, name)) {
            return Ok(Some(table));
        }
        if name.eq_ignore_ascii_case(VIEWS) {
            let views = self.views().await?;
            return Ok(Some(Arc::new(MemTable::try_new(views.schema(), vec![vec![views]])?)));
        }
        let table = self.others.table(name).await?;
        match table {
            Some(table) if name.eq_ignore_ascii_case(COLUMNS) => {
                let schema = with_types(&table.schema());
                let rows = self.columns(Arc::clone(&schema)).await?;
                Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![rows]])?)))
            }
            Some(table) if OF_FUNCTIONS.iter().any(|known| name.eq_ignore_ascii_case(known)) => {
                Ok(Some(Arc::new(FunctionsTable(table))))
            }
            table => Ok(table),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.others.table_exist(name) || self.more_tables().contains(&name)
    }
}

/// A table that lists functions, those that sessions share included.
#[derive(Debug)]
struct FunctionsTable(Arc<dyn TableProvider>);

#[async_trait]
impl TableProvider for FunctionsTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    async fn scan(
        &self,
        session: &dyn SessionTrait,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = self.0.scan(session, None, &[], None).await?;
        let rows = collect(all, Functions::for_session(session).task_context()).await?;
        let rows = MemorySourceConfig::try_new_exec(&[rows], self.schema(), projection.cloned())?;
        Ok(rows)
    }
}

/// Columns of `columns` that PostgreSQL has and DataFusion lacks.
const OF_TYPES: [&str; 5] =
    ["udt_schema", "udt_name", "is_identity", "is_generated", "is_updatable"];

fn with_types(schema: &Schema) -> SchemaRef {
    let known = schema.fields().iter().map(|field| field.as_ref().clone());
    let more = OF_TYPES.into_iter().map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new(known.chain(more).collect::<Vec<_>>()))
}

/// The rows of `columns`.
#[derive(Default)]
struct ColumnRows {
    /// Catalog, schema and table of each.
    at: [StringBuilder; 3],
    names: StringBuilder,
    positions: UInt64Builder,
    defaults: StringBuilder,
    nullable: StringBuilder,
    types: StringBuilder,
    /// Those of `OF_TYPES`.
    of_types: [StringBuilder; 5],
    /// Digits, their base, and those after the point.
    digits: [UInt64Builder; 3],
}

impl ColumnRows {
    fn add(&mut self, at: [&str; 3], table: &dyn TableProvider, types: &UserTypes) {
        let definition = table.downcast_ref::<PlacedTable>().map(PlacedTable::definition);
        for (column, field) in table.schema().fields().iter().enumerate() {
            for (names, name) in self.at.iter_mut().zip(at) {
                names.append_value(name);
            }
            self.positions.append_value(column as u64 + 1);
            let default = definition.and_then(|definition| {
                // The numbers of an identity come from its sequence, not from a default; computed columns have none.
                let is_value = |default: &&str| {
                    definition.identities[column].is_none() && !is_generated(default)
                };
                definition.defaults[column].as_deref().filter(is_value)
            });
            self.defaults.append_option(default);
            let yes_or_no = |is: bool| if is { "YES" } else { "NO" };
            let is_computed = definition.is_some_and(|definition| {
                definition.defaults[column].as_deref().is_some_and(is_generated)
            });
            let is_identity =
                definition.is_some_and(|definition| definition.identities[column].is_some());
            let of_user = types.of_values(field.data_type());
            let of_types = [
                of_user.map_or(PG_CATALOG_SCHEMA, |of| &*of.schema).to_owned(),
                match of_user {
                    Some(of) if enum_oid(field.data_type()).is_none() => format!("_{}", of.name),
                    Some(of) => of.name.to_string(),
                    None => type_name(field),
                },
                yes_or_no(is_identity).to_owned(),
                if is_computed { "ALWAYS" } else { "NEVER" }.to_owned(),
                yes_or_no(definition.is_some()).to_owned(),
            ];
            for (texts, text) in self.of_types.iter_mut().zip(of_types) {
                texts.append_value(text);
            }
            self.add_field(field, of_user.is_some());
        }
    }

    fn add_field(&mut self, field: &Field, is_of_user: bool) {
        self.names.append_value(field.name());
        self.nullable.append_value(if field.is_nullable() { "YES" } else { "NO" });
        match (is_of_user, enum_oid(field.data_type())) {
            (true, Some(_)) => self.types.append_value("USER-DEFINED"),
            (true, None) => self.types.append_value("ARRAY"),
            _ => self.types.append_value(sql_name(field.data_type())),
        }
        for (digits, of_field) in self.digits.iter_mut().zip(digits(field.data_type())) {
            digits.append_option(of_field);
        }
    }

    fn batch(mut self, schema: SchemaRef) -> Result<RecordBatch> {
        let rows = self.positions.len();
        let [catalogs, schemas, tables] = self.at.map(|mut names| names.finish());
        let [precisions, bases, scales] = self.digits.map(|mut digits| digits.finish());
        let texts = |texts: StringArray| -> ArrayRef { Arc::new(texts) };
        let numbers = |numbers: UInt64Array| -> ArrayRef { Arc::new(numbers) };
        let of_types = OF_TYPES.iter().zip(self.of_types.each_mut());
        let of_types: Vec<_> =
            of_types.map(|(name, values)| (*name, texts(values.finish()))).collect();
        let known = [
            ("table_catalog", texts(catalogs)),
            ("table_schema", texts(schemas)),
            ("table_name", texts(tables)),
            ("column_name", texts(self.names.finish())),
            ("ordinal_position", numbers(self.positions.finish())),
            ("column_default", texts(self.defaults.finish())),
            ("is_nullable", texts(self.nullable.finish())),
            ("data_type", texts(self.types.finish())),
            ("numeric_precision", numbers(precisions)),
            ("numeric_precision_radix", numbers(bases)),
            ("numeric_scale", numbers(scales)),
        ];
        let column = |field: &Arc<Field>| {
            let found = known.iter().chain(&of_types).find(|(name, _)| name == field.name());
            found.map_or_else(
                || new_null_array(field.data_type(), rows),
                |(_, values)| Arc::clone(values),
            )
        };
        let columns = schema.fields().iter().map(column).collect();
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

fn digits(data_type: &DataType) -> [Option<u64>; 3] {
    let binary = |bits: u64| [Some(bits), Some(2), Some(0)];
    match data_type {
        DataType::Int8 | DataType::UInt8 => binary(8),
        DataType::Int16 | DataType::UInt16 => binary(16),
        DataType::Int32 | DataType::UInt32 => binary(32),
        DataType::Int64 | DataType::UInt64 => binary(64),
        DataType::Float32 => [Some(24), Some(2), None],
        DataType::Float64 => [Some(53), Some(2), None],
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            [Some((*precision).into()), Some(10), u64::try_from(*scale).ok()]
        }
        _ => [None; 3],
    }
}
