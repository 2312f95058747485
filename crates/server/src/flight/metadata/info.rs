//! The server's capabilities (GetSqlInfo).

use std::sync::LazyLock;

use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    SqlInfo, SqlNullOrdering, SqlOuterJoinsSupportLevel, SqlSupportedCaseSensitivity,
    SqlSupportedGroupBy, SqlSupportedSubqueries, SqlSupportedTransaction, SqlSupportedUnions,
    SqlTransactionIsolationLevel, SupportedSqlGrammar,
};

use atoll_sql::arrow::ARROW_VERSION;

use super::failed;
use crate::wire::ErrorFields;

/// Unquoted identifiers are folded to lower case; case-preserving quoted ones have no ordinal.
const LOWERCASE: i32 = SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32;
const AS_QUOTED: i32 = SqlSupportedCaseSensitivity::SqlCaseSensitivityUnknown as i32;

const READ_COMMITTED: i32 = SqlTransactionIsolationLevel::SqlTransactionReadCommitted as i32;

/// The info, built once.
static INFO: LazyLock<Result<SqlInfoData, ErrorFields>> =
    LazyLock::new(|| builder().build().map_err(failed));

/// The server's capabilities.
pub(in crate::flight) fn info() -> Result<&'static SqlInfoData, ErrorFields> {
    INFO.as_ref().map_err(Clone::clone)
}

fn builder() -> SqlInfoDataBuilder {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Atoll");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, ARROW_VERSION);
    for (name, is_so) in [
        (SqlInfo::FlightSqlServerReadOnly, false),
        (SqlInfo::FlightSqlServerSql, true),
        (SqlInfo::FlightSqlServerSubstrait, false),
        (SqlInfo::FlightSqlServerCancel, true),
        (SqlInfo::FlightSqlServerBulkIngestion, true),
        (SqlInfo::FlightSqlServerIngestTransactionsSupported, true),
        (SqlInfo::SqlDdlCatalog, false),
        (SqlInfo::SqlDdlSchema, true),
        (SqlInfo::SqlDdlTable, true),
        (SqlInfo::SqlAllTablesAreSelectable, false),
        (SqlInfo::SqlSupportsColumnAliasing, true),
        (SqlInfo::SqlNullPlusNullIsNull, true),
        (SqlInfo::SqlSupportsTableCorrelationNames, true),
        (SqlInfo::SqlSupportsDifferentTableCorrelationNames, false),
        (SqlInfo::SqlSupportsExpressionsInOrderBy, true),
        (SqlInfo::SqlSupportsOrderByUnrelated, true),
        (SqlInfo::SqlSupportsLikeEscapeClause, true),
        (SqlInfo::SqlSupportsNonNullableColumns, true),
        (SqlInfo::SqlSupportsIntegrityEnhancementFacility, false),
        (SqlInfo::SqlCatalogAtStart, true),
        (SqlInfo::SqlSelectForUpdateSupported, true),
        (SqlInfo::SqlStoredProceduresSupported, false),
        (SqlInfo::SqlCorrelatedSubqueriesSupported, true),
        (SqlInfo::SqlTransactionsSupported, true),
        (SqlInfo::SqlDataDefinitionCausesTransactionCommit, false),
        (SqlInfo::SqlDataDefinitionsInTransactionsIgnored, false),
        (SqlInfo::SqlSavepointsSupported, true),
    ] {
        info.append(name, is_so);
    }
    for (name, text) in [
        (SqlInfo::SqlIdentifierQuoteChar, "\""),
        (SqlInfo::SqlSearchStringEscape, "\\"),
        (SqlInfo::SqlExtraNameCharacters, ""),
        (SqlInfo::SqlSchemaTerm, "schema"),
        (SqlInfo::SqlCatalogTerm, "database"),
    ] {
        info.append(name, text);
    }
    for (name, ordinal) in [
        (SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::Savepoint as i32),
        (SqlInfo::FlightSqlServerStatementTimeout, 0),
        (SqlInfo::FlightSqlServerTransactionTimeout, 0),
        (SqlInfo::SqlIdentifierCase, LOWERCASE),
        (SqlInfo::SqlQuotedIdentifierCase, AS_QUOTED),
        (SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32),
        (SqlInfo::SqlOuterJoinsSupportLevel, SqlOuterJoinsSupportLevel::SqlFullOuterJoins as i32),
        (SqlInfo::SqlDefaultTransactionIsolation, READ_COMMITTED),
    ] {
        info.append(name, ordinal);
    }
    masks(&mut info);
    info
}

/// Enumeration sets as bitmasks.
fn masks(info: &mut SqlInfoDataBuilder) {
    let bits = |members: &[i32]| members.iter().fold(0, |bits, member| bits | 1 << member);
    let levels = [
        SqlTransactionIsolationLevel::SqlTransactionReadUncommitted as i32,
        READ_COMMITTED,
        SqlTransactionIsolationLevel::SqlTransactionRepeatableRead as i32,
        SqlTransactionIsolationLevel::SqlTransactionSerializable as i32,
    ];
    let grammars =
        [SupportedSqlGrammar::SqlMinimumGrammar as i32, SupportedSqlGrammar::SqlCoreGrammar as i32];
    let groups = [SqlSupportedGroupBy::SqlGroupByUnrelated as i32];
    let subqueries = [
        SqlSupportedSubqueries::SqlSubqueriesInComparisons as i32,
        SqlSupportedSubqueries::SqlSubqueriesInExists as i32,
        SqlSupportedSubqueries::SqlSubqueriesInIns as i32,
        SqlSupportedSubqueries::SqlSubqueriesInQuantifieds as i32,
    ];
    let unions = [SqlSupportedUnions::SqlUnion as i32, SqlSupportedUnions::SqlUnionAll as i32];
    for (name, members) in [
        (SqlInfo::SqlSupportedTransactionsIsolationLevels, &levels[..]),
        (SqlInfo::SqlSupportedGrammar, &grammars),
        (SqlInfo::SqlSupportedGroupBy, &groups),
        (SqlInfo::SqlSupportedSubqueries, &subqueries),
        (SqlInfo::SqlSupportedUnions, &unions),
    ] {
        info.append(name, bits(members));
    }
}
