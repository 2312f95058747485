//! Functions and procedures as PostgreSQL's catalog describes them.

use atoll_sql_common::pg_type::{format_type, type_named};
use atoll_sql_parse::parse::{Parameter, Returns, Routine};

use super::oid::Oid;

/// The types `any`, `record` and `void`.
pub(super) const ANY: Oid = 2276;
const RECORD: Oid = 2249;
const VOID: Oid = 2278;

/// The OID of a type by its name in a definition.
pub(super) fn type_oid(text: &str) -> Oid {
    match text.to_lowercase().as_str() {
        "record" => RECORD,
        "void" => VOID,
        _ => type_named(text).unwrap_or(ANY),
    }
}

/// A type as PostgreSQL prints it.
fn type_text(text: &str) -> String {
    match type_oid(text) {
        ANY => text.to_owned(),
        oid => format_type(oid, -1),
    }
}

/// The mode of a parameter in `proargmodes`.
pub(super) fn mode(parameter: &Parameter) -> &'static str {
    match (parameter.is_in, parameter.is_out, parameter.is_of_table) {
        (_, _, true) => "t",
        (true, true, _) => "b",
        (false, _, _) => "o",
        _ => "i",
    }
}

/// The type of its result.
pub(super) fn result_oid(routine: &Routine) -> Oid {
    match &routine.returns {
        Returns::Nothing => VOID,
        Returns::One(of) | Returns::Many(of) => type_oid(of),
        Returns::Row | Returns::Rows => RECORD,
    }
}

/// The name of the type of its result, of its rows if there are several.
pub(super) fn result_type(routine: &Routine) -> String {
    match &routine.returns {
        Returns::Nothing => "void".to_owned(),
        Returns::One(of) | Returns::Many(of) => type_text(of),
        Returns::Row | Returns::Rows => "record".to_owned(),
    }
}

/// What `pg_get_function_result` returns.
pub(super) fn result(routine: &Routine) -> Option<String> {
    if routine.is_procedure {
        return None;
    }
    Some(match &routine.returns {
        Returns::Nothing => "void".to_owned(),
        Returns::One(of) => type_text(of),
        Returns::Many(of) => format!("SETOF {}", type_text(of)),
        Returns::Row => "record".to_owned(),
        Returns::Rows if routine.parameters.iter().any(|it| it.is_of_table) => {
            let columns = routine.parameters.iter().filter(|it| it.is_of_table);
            let columns = columns.map(|it| argument(it, false));
            format!("TABLE({})", columns.collect::<Vec<_>>().join(", "))
        }
        Returns::Rows => "SETOF record".to_owned(),
    })
}

/// What `pg_get_function_arguments` returns.
pub(super) fn arguments(routine: &Routine, has_defaults: bool) -> String {
    let listed = routine.parameters.iter().filter(|it| !it.is_of_table);
    let text = |it: &Parameter| match mode(it) {
        "i" if routine.is_procedure => format!("IN {}", argument(it, has_defaults)),
        _ => argument(it, has_defaults),
    };
    listed.map(text).collect::<Vec<_>>().join(", ")
}

fn argument(parameter: &Parameter, has_defaults: bool) -> String {
    let mut text = match mode(parameter) {
        "o" => "OUT ".to_owned(),
        "b" => "INOUT ".to_owned(),
        _ => String::new(),
    };
    if let Some(name) = &parameter.name {
        text.push_str(&atoll_sql_common::names::quote_identifier(name));
        text.push(' ');
    }
    text.push_str(&type_text(&parameter.of));
    if let Some(default) = parameter.default.as_ref().filter(|_| has_defaults) {
        text.push_str(" DEFAULT ");
        text.push_str(default);
    }
    text
}
