//! The SQL engine from a user's point of view.
//!
//! - `tpch`: all 22 queries give the committed answers (made with another engine), under every
//!   strategy and on machines of several shapes.
//! - `logic`: the sqllogictest suite, on one node, on uneven nodes, and in data directories that are opened anew.
//! - `variants`: its queries once more, with expressions next to their casts, clashing names and so on.
//! - `placement`: chunks and pipelines are where EXPLAIN and the knowledge base report them.
//! - `kept_texts`: statements sent as text with cached plans give the same results as when planned anew.
//! - `knowledge`: SQL returns figures of the machine with their source and age.
//! - `concurrency`: threads that share a session see whole statements of one another.
//! - `limits`: short memory, cancelled queries and failing statements do no harm.
//! - `memory`: the memory limit is respected, and spilling operators make do with little.
//! - `reference`: operators agree with slow readable ones on seeded hostile data.
//! - `states`: errors have the codes of PostgreSQL.
//! - `statements`: long and deep statements, and panics of the planner, end as an answer or an error.
//! - `grouping`, `group_batches`: GROUP BY by the primitives gives the groups of DataFusion's operators,
//!   in batches of one and two rows and by any number of workers too.
//! - `windows`: Atoll's window operator gives the results of DataFusion's.
//! - `files`: formats survive a round trip, and a COPY that fails changes nothing.
//! - `compatibility`: the page on compatibility matches the results of its examples.
//! - `calls`: random calls of functions and operators are refused or answered, and never panic.
//! - `changes`: DELETE and UPDATE match a list of rows.
//! - `catalog`: `pg_catalog` and `information_schema` have the relations and columns of PostgreSQL.
//! - `merge`: MERGE matches a list of rows, from several sessions too.
//! - `materialized`: materialized views keep their rows and queries through restarts and exports.
//! - `csv`, `parquet`: contents of foreign files are correct or refused by name.
//! - `hostile_files`: files that are cut, mixed up or named oddly are read or reported.
//! - `indexes`: queries that an index serves give the answers of scans.
//! - `enums`: user-defined types outlive restarts and exports, and parameters are labels.
//! - `exchange`: pandas, Polars and DuckDB read what COPY writes, and the other way round.
//! - `plan_cache`: cached plans end when what they depend on changes.
//! - `prepared`: statements prepared once give the same results as when they are run anew.
//! - `point_rows`: rows written by their key without operators equal those that operators write.
//! - `locking`: rows that queries lock, and snapshots of transactions.
//! - `foreign_keys`: no row refers to a missing one, whatever sessions do.
//! - `serializable`: serializable transactions note what they read, however they read it.
//! - `sessions`: sessions of one database change the same rows and tables.
//! - `temporary`: temporary tables belong to one session, and no file contains them.
//! - `functions`: the list of functions is complete, its examples are correct, and its page is up to date.
//! - `names`: names of result columns and tags of statements are as users expect.
//! - `floats`: zeros and NaNs of any bits give the same results in files and in tables.
//! - `upstream`: DataFusion alone still answers wrongly where a file here works around it.

mod calls;
mod catalog;
mod changes;
mod common;
mod compatibility;
mod concurrency;
mod csv;
mod directories;
mod domains;
mod enums;
mod exchange;
mod files;
mod floats;
mod foreign_keys;
mod functions;
mod group_batches;
mod grouping;
mod hostile_files;
mod indexes;
mod kept_texts;
mod knowledge;
mod limits;
mod locking;
mod logic;
mod materialized;
mod memory;
mod merge;
mod names;
mod parquet;
mod partial_indexes;
mod placement;
mod plan_cache;
mod point_rows;
mod pools;
mod prepared;
mod reference;
mod serializable;
mod sessions;
mod shared_histories;
mod shared_scans;
mod statements;
mod states;
mod temporary;
mod tpch;
mod upstream;
mod variants;
mod windows;
