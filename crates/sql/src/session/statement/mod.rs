//! Execution of statements from their text to their result, and utility statements.

pub(super) mod atoll_statement;
pub(super) mod block;
pub(super) mod command_tag;
pub(super) mod copy_in;
pub(super) mod execute;
pub(super) mod explain;
pub(super) mod export_script;
pub(super) mod ignored_ddl;
pub(super) mod lock_table;
pub(super) mod notify;
pub(super) mod parsed_statement;
pub(super) mod pool_statement;
pub(super) mod query_result;
pub(super) mod routine_call;
pub(super) mod running_query;
pub(super) mod show;
pub(super) mod split;
pub(super) mod statement_form;
pub(super) mod utility;
pub(super) mod vacuum;
