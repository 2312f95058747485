//! Functions over files in FROM, and names of files.
//!
//! `read_csv('a.csv', delim = ';')` becomes the name of a table that only this statement has: DataFusion's
//! table functions get no arguments by name and cannot wait for a file. The name of a file gets the alias
//! that DuckDB gives it: of `'dir/visits.csv'` that is `visits`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::common::{Column, Result, TableReference, plan_datafusion_err, plan_err};
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableAlias, TableFactor,
    VisitorMut,
};
use parking_lot::RwLock;

use super::listing;
use super::open::open;
use crate::check_files;
use crate::source::found::find;
use crate::source::is_pattern;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::names::{TableNames, resolve};
use atoll_sql_common::user_type::as_texts;
use atoll_sql_parse::syntax::{
    COPY_FROM, FileFunction, FileKind, FileOptions, OptionValue, kind_of_name, walk_mut,
};

/// The files and options that a call names.
struct FileCall {
    name: String,
    function: FileFunction,
    paths: Vec<String>,
    options: FileOptions,
}

impl FileCall {
    fn from_factor(factor: &TableFactor) -> Result<Option<Self>> {
        let TableFactor::Table { name, args: Some(args), .. } = factor else { return Ok(None) };
        let [part] = name.0.as_slice() else { return Ok(None) };
        let Some(ident) = part.as_ident() else { return Ok(None) };
        let Some(function) = FileFunction::named(&ident.value) else { return Ok(None) };
        let name = ident.value.to_ascii_lowercase();
        let (mut paths, mut options) = (None, FileOptions::default());
        for arg in &args.args {
            match named(arg) {
                Some((name, value)) => options.add(&name, OptionValue::from_expr(value)?)?,
                None if paths.is_none() => paths = Some(positional(&name, arg)?),
                None => {
                    return plan_err!(
                        "{name} has one argument without a name, a file or a list of files; write \
                         options as name = value"
                    );
                }
            }
        }
        let Some(paths) = paths else {
            return plan_err!(
                "{name} needs a file, a pattern such as 'dir/*.csv', or a list of them"
            );
        };
        if name.starts_with("read_ndjson") && options.get(&["format"]).is_none() {
            options.add("format", OptionValue::Text("newline_delimited".to_owned()))?;
        }
        Ok(Some(Self { name, function, paths, options }))
    }

    async fn table(
        &self,
        state: &SessionState,
        names: &dyn TableNames,
    ) -> Result<Arc<dyn TableProvider>> {
        match self.function {
            FileFunction::Copy => self.copied(state, names).await,
            FileFunction::Read(kind) => {
                open(state, &self.name, Some(kind), &self.paths, &self.options).await
            }
            FileFunction::Listing(listing) => {
                listing::table(listing, state, &self.name, &self.paths, &self.options)
            }
        }
    }
}

impl FileCall {
    /// The file of a COPY, read with the types of its target columns.
    async fn copied(
        &self,
        state: &SessionState,
        names: &dyn TableNames,
    ) -> Result<Arc<dyn TableProvider>> {
        let mut options = self.options.clone();
        let into = options.take("into").and_then(|it| it.text().map(str::to_owned));
        let columns = options.take("into_columns").and_then(|it| it.texts()).unwrap_or_default();
        let Some(into) = into else {
            return plan_err!("{COPY_FROM} is for COPY … FROM; use read_csv or another function");
        };
        let target = target_columns(state, names, &into, &columns).await?;
        let format = options.take("format").and_then(|it| it.text().map(str::to_ascii_lowercase));
        let kind = match format.as_deref() {
            None => self.paths.first().and_then(|path| kind_of_name(path)),
            Some("text") => {
                let text = |text: &str| OptionValue::Text(text.to_owned());
                // The look of a value decides nothing.
                let defaults = [
                    ("delimiter", text("\t")),
                    ("null", text("\\N")),
                    ("quote", text("")),
                    ("header", OptionValue::Bool(false)),
                    ("auto_detect", OptionValue::Bool(false)),
                ];
                options.is_text = true;
                for (name, value) in defaults {
                    if options.get(&[name]).is_none() {
                        options.add(name, value)?;
                    }
                }
                Some(FileKind::Csv)
            }
            Some(format) => match FileKind::named(format) {
                Some(kind) => Some(kind),
                None => {
                    return plan_err!(
                        "unknown COPY format '{format}'; expected one of csv, parquet, json, arrow, text"
                    );
                }
            },
        };
        options.target = Some(target);
        open(state, "COPY … FROM", kind, &self.paths, &options).await
    }
}

/// The columns that a COPY … FROM fills, with their types.
async fn target_columns(
    state: &SessionState,
    names: &dyn TableNames,
    table: &str,
    columns: &[String],
) -> Result<Vec<(String, DataType)>> {
    let normalize = state.config_options().sql_parser.enable_ident_normalization;
    let name = resolve(state, TableReference::parse_str_normalized(table, !normalize));
    let Some(found) = names.table(&name)? else {
        return Err(SqlState::missing_table(table));
    };
    let schema = found.schema();
    // Files hold the labels of ENUMs.
    let all = || schema.fields().iter().map(|it| (it.name().clone(), as_texts(it.data_type())));
    if columns.is_empty() {
        return Ok(all().collect());
    }
    let column = |text: &String| {
        let wanted = Column::from_qualified_name(text.as_str()).name;
        all()
            .find(|(name, _)| *name == wanted)
            .ok_or_else(|| plan_datafusion_err!("table '{}' has no column {text}", name.table))
    };
    columns.iter().map(column).collect()
}

/// The name and the value of `name = value`, `name := value` or `name => value`.
fn named(arg: &FunctionArg) -> Option<(String, &Expr)> {
    match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some((name.value.clone(), value))
        }
        FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(value),
            ..
        } => Some((name.value.clone(), value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        })) => match left.as_ref() {
            Expr::Identifier(name) => Some((name.value.clone(), right)),
            _ => None,
        },
        _ => None,
    }
}

fn positional(function: &str, arg: &FunctionArg) -> Result<Vec<String>> {
    let value = match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => OptionValue::from_expr(value)?,
        _ => OptionValue::Null,
    };
    match (&value, value.texts()) {
        (OptionValue::Text(_) | OptionValue::List(_), Some(texts)) => Ok(texts),
        _ => plan_err!("{function} needs a file name as text, or a list of them, found {arg}"),
    }
}

/// Replaces the functions over files that a statement calls by tables, and gives files an alias.
pub async fn expand(
    state: &SessionState,
    names: &dyn TableNames,
    allowed: bool,
    statement: &mut Parsed,
) -> Result<()> {
    let mut found = Factors { calls: Vec::new(), has_files: false, error: None };
    visit(statement, &mut found);
    if let Some(error) = found.error {
        return Err(error);
    }
    if found.calls.is_empty() && !found.has_files {
        return Ok(());
    }
    let mut tables = Vec::new();
    for (at, call) in found.calls.into_iter().enumerate() {
        check_files(allowed, &call.name)?;
        let table = call.table(state, names).await?;
        let name = shown(&call, at);
        names.hide(&name, table);
        tables.push((call.name, name));
    }
    let aliases = HashSet::new();
    let mut replaced = Replaced { tables: tables.into_iter(), aliases, names };
    visit(statement, &mut replaced);
    Ok(())
}

/// The name under which the table of a call is found, which plans show.
fn shown(call: &FileCall, at: usize) -> String {
    let paths = call.paths.join(", ");
    let paths: String = paths.chars().take(60).collect();
    match at {
        0 => format!("{}({paths})", call.name),
        _ => format!("{}({paths}) #{}", call.name, at + 1),
    }
}

fn visit(statement: &mut Parsed, visitor: &mut dyn VisitorMut<Break = ()>) {
    let _: ControlFlow<()> = match statement {
        Parsed::Statement(ast) => walk_mut(ast, visitor),
        Parsed::Explain(explain) => {
            visit(&mut explain.statement, visitor);
            ControlFlow::Continue(())
        }
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query, visitor),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
}

/// Finds the calls.
struct Factors {
    calls: Vec<FileCall>,
    /// Whether a name may be that of a file.
    has_files: bool,
    error: Option<datafusion::common::DataFusionError>,
}

impl VisitorMut for Factors {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match FileCall::from_factor(factor) {
            Ok(call) => {
                self.has_files |= call.is_none() && may_be_file(factor);
                self.calls.extend(call);
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

fn may_be_file(factor: &TableFactor) -> bool {
    let TableFactor::Table { name, .. } = factor else { return false };
    let ident = name.0.first().and_then(|part| part.as_ident());
    ident.is_some_and(|ident| ident.quote_style.is_some() && is_file_name(&ident.value))
}

/// Replaces them by tables, in the same order.
struct Replaced<'a> {
    tables: std::vec::IntoIter<(String, String)>,
    aliases: HashSet<String>,
    names: &'a dyn TableNames,
}

impl VisitorMut for Replaced<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let is_call = matches!(FileCall::from_factor(factor), Ok(Some(_)));
        let TableFactor::Table { name, args, alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let wanted = if is_call {
            let Some((function, table)) = self.tables.next() else { return ControlFlow::Break(()) };
            *name = ObjectName::from(vec![Ident::with_quote('"', table)]);
            *args = None;
            Some(function)
        } else {
            file_alias(name, self.names)
        };
        if let Some(alias) = alias {
            self.aliases.insert(alias.name.value.clone());
        } else if let Some(wanted) = wanted
            // A second one keeps its long name; otherwise columns of the two would be ambiguous.
            && self.aliases.insert(wanted.clone())
        {
            let name = Ident::with_quote('"', wanted);
            *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}

/// The default alias of a file in FROM.
fn file_alias(name: &ObjectName, names: &dyn TableNames) -> Option<String> {
    let [part] = name.0.as_slice() else { return None };
    let ident = part.as_ident()?;
    ident.quote_style?;
    if !is_file_name(&ident.value) || names.is_table(&ident.value) {
        return None;
    }
    let stem = Path::new(&ident.value).file_name()?.to_str()?.split('.').next()?;
    (!stem.is_empty() && !is_pattern(stem)).then(|| stem.to_owned())
}

/// Whether a name in FROM without a table can only be a file name.
fn is_file_name(text: &str) -> bool {
    text.contains('/') || kind_of_name(text).is_some() || is_pattern(text) && text.contains('.')
}

/// Tables over files by their names in FROM.
#[derive(Debug, Default)]
pub struct FileNames {
    state: OnceLock<Weak<RwLock<SessionState>>>,
}

impl FileNames {
    /// The session whose settings apply.
    pub fn set_state(&self, state: Weak<RwLock<SessionState>>) {
        let _ = self.state.set(state);
    }
}

#[async_trait]
impl UrlTableFactory for FileNames {
    async fn try_new(&self, text: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let is_file = is_file_name(text) || text.contains('.') && Path::new(text).is_file();
        if !is_file {
            return Ok(None);
        }
        let state = self.state.get().and_then(Weak::upgrade);
        let Some(state) = state.map(|state| state.read().clone()) else { return Ok(None) };
        let paths = [text.to_owned()];
        let expected = kind_of_name(text);
        // The content decides if the ending says nothing.
        let expected = expected.filter(|_| find(&paths).is_ok_and(|files| files.len() == 1));
        open(&state, "FROM 'file'", expected, &paths, &FileOptions::default()).await.map(Some)
    }
}
