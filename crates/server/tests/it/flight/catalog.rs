use arrow_flight::sql::{
    CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo, SqlInfo,
};
use arrow_flight::{FlightDescriptor, IpcMessage};
use atoll_sql::arrow::array::{AsArray, RecordBatch};
use atoll_sql::arrow::datatypes::{DataType, Schema};

use super::{FlightClient, connect, fetch, text, update};
use crate::support::{TestServer, block_on};

async fn made(server: &TestServer) -> FlightClient {
    let mut client = connect(server).await;
    for sql in [
        "CREATE SCHEMA stock",
        "CREATE TABLE stock.item (b TEXT, a BIGINT, c DECIMAL(10,2), PRIMARY KEY (a, b))",
        "CREATE TABLE sale (id INT PRIMARY KEY)",
        "CREATE VIEW recent AS SELECT * FROM sale",
    ] {
        update(&mut client, sql).await.expect(sql);
    }
    client
}

fn tables(schema: Option<&str>, types: &[&str], include_schema: bool) -> CommandGetTables {
    CommandGetTables {
        catalog: Some("atoll".to_owned()),
        db_schema_filter_pattern: schema.map(str::to_owned),
        table_name_filter_pattern: None,
        table_types: types.iter().map(|it| (*it).to_owned()).collect(),
        include_schema,
    }
}

#[test]
fn tables_are_listed_with_their_columns() {
    let server = TestServer::start();
    block_on(async {
        let mut client = made(&server).await;
        let info = client.get_tables(tables(None, &["TABLE", "VIEW"], false)).await;
        let found = fetch(&mut client, info.expect("a ticket")).await.expect("tables");
        assert_eq!(
            text(&found),
            "atoll,public,recent,VIEW atoll,public,sale,TABLE atoll,stock,item,TABLE"
        );
        let info = client.get_tables(tables(Some("st%"), &[], true)).await.expect("a ticket");
        let found = fetch(&mut client, info).await.expect("a table");
        let columns = found[0].column(4).as_binary::<i32>().value(0).to_vec();
        let columns = Schema::try_from(IpcMessage(columns.into())).expect("a schema");
        let named: Vec<_> = columns.fields().iter().map(|it| (it.name(), it.data_type())).collect();
        assert_eq!(named[0], (&"b".to_owned(), &DataType::Utf8));
        assert_eq!(named[2], (&"c".to_owned(), &DataType::Decimal128(10, 2)));
        let name = "ARROW:FLIGHT:SQL:TYPE_NAME";
        assert_eq!(columns.field(1).metadata().get(name).expect("a name"), "bigint");
        let elsewhere =
            CommandGetTables { catalog: Some("x".to_owned()), ..tables(None, &[], false) };
        let info = client.get_tables(elsewhere).await.expect("a ticket");
        assert_eq!(text(&fetch(&mut client, info).await.expect("none")), "");
    });
}

#[test]
fn catalogs_schemas_and_kinds_of_tables_are_listed() {
    let server = TestServer::start();
    block_on(async {
        let mut client = made(&server).await;
        let info = client.get_catalogs().await.expect("a ticket");
        assert_eq!(text(&fetch(&mut client, info).await.expect("one")), "atoll");
        let command =
            CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: Some("%o%".to_owned()) };
        let info = client.get_db_schemas(command).await.expect("a ticket");
        let found = text(&fetch(&mut client, info).await.expect("schemas"));
        assert!(found.contains("atoll,stock") && !found.contains("public"), "{found}");
        let info = client.get_table_types().await.expect("a ticket");
        assert_eq!(
            text(&fetch(&mut client, info).await.expect("kinds")),
            "SYSTEM TABLE TABLE VIEW"
        );
    });
}

#[test]
fn keys_are_listed() {
    let server = TestServer::start();
    block_on(async {
        let mut client = made(&server).await;
        let command =
            CommandGetPrimaryKeys { catalog: None, db_schema: None, table: "item".to_owned() };
        let info = client.get_primary_keys(command).await.expect("a ticket");
        assert_eq!(
            text(&fetch(&mut client, info).await.expect("a key")),
            "atoll,stock,item,a,item_pkey,1 atoll,stock,item,b,item_pkey,2"
        );
        let (catalog, db_schema, table) = (None, None, "item".to_owned());
        let exported = CommandGetExportedKeys { catalog, db_schema, table };
        let info = client.get_exported_keys(exported).await.expect("a ticket");
        assert_eq!(text(&fetch(&mut client, info).await.expect("none")), "");
        let (catalog, db_schema, table) = (None, None, "item".to_owned());
        let imported = CommandGetImportedKeys { catalog, db_schema, table };
        let info = client.get_imported_keys(imported).await.expect("a ticket");
        assert_eq!(text(&fetch(&mut client, info).await.expect("none")), "");
        let info = client.get_cross_reference(CommandGetCrossReference::default()).await;
        assert_eq!(text(&fetch(&mut client, info.expect("a ticket")).await.expect("none")), "");
    });
}

#[test]
fn capabilities_are_listed() {
    let server = TestServer::start();
    block_on(async {
        let mut client = connect(&server).await;
        let asked = vec![SqlInfo::FlightSqlServerName, SqlInfo::FlightSqlServerTransaction];
        let info = client.get_sql_info(asked).await.expect("a ticket");
        let found = text(&fetch(&mut client, info).await.expect("two"));
        assert!(found.contains("Atoll") && found.contains('2'), "{found}");
        let info = client.get_sql_info(Vec::new()).await.expect("a ticket");
        let all = fetch(&mut client, info).await.expect("all");
        assert!(all.iter().map(RecordBatch::num_rows).sum::<usize>() > 30);
        let command = CommandGetXdbcTypeInfo { data_type: Some(-5) };
        let info = client.get_xdbc_type_info(command).await.expect("a ticket");
        let found = fetch(&mut client, info).await.expect("a type");
        assert_eq!(found[0].column(0).as_string::<i32>().value(0), "bigint");
    });
}

#[test]
fn columns_are_described_without_running_a_statement() {
    let server = TestServer::start();
    block_on(async {
        use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
        use prost::Message;
        let mut client = made(&server).await;
        let query = "SELECT a, b FROM stock.item".to_owned();
        let command = CommandStatementQuery { query, transaction_id: None };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let found = client.inner_mut().get_schema(descriptor).await.expect("columns");
        let found = Schema::try_from(found.into_inner()).expect("a schema");
        assert_eq!(found.fields().len(), 2);
    });
}
