//! The SQL engine as a user meets it.
//!
//! - `tpch`: all 22 queries give the committed answers (made with another engine), under every
//!   strategy and on machines of several shapes.
//! - `logic`: the sqllogictest suite, on one node, on uneven nodes, and in data directories that are opened anew.
//! - `variants`: its queries once more, with expressions beside their casts, names that clash and so on.
//! - `placement`: chunks and pipelines are where EXPLAIN and the knowledge base say.
//! - `kept_texts`: statements sent as text, whose plans are kept, do what they do when planned anew.
//! - `knowledge`: figures of the machine come out of SQL with their source and age.
//! - `concurrency`: threads that share a session see whole statements of one another.
//! - `limits`: short memory, cancelled queries and failing statements do no harm.
//! - `memory`: the memory limit is kept, and what spills gets on with little.
//! - `reference`: operators agree with slow readable ones on seeded hostile data.
//! - `states`: errors have the codes of PostgreSQL.
//! - `statements`: long and deep statements, and panics of the planner, end as an answer or an error.
//! - `grouping`, `group_batches`: GROUP BY by the primitives gives the groups of DataFusion's operators,
//!   in batches of one and two rows and by any number of workers too.
//! - `files`: formats survive the way out and back, and a COPY that fails changes nothing.
//! - `compatibility`: the page on compatibility is what its examples give.
//! - `calls`: random calls of functions and operators are refused or answered, and never panic.
//! - `changes`: DELETE and UPDATE give what a list of rows gives.
//! - `csv`, `parquet`: what foreign files hold is right or refused by name.
//! - `hostile_files`: files that are cut, mixed up or named oddly are read or told.
//! - `exchange`: pandas, Polars and DuckDB read what COPY writes, and the other way round.
//! - `prepared`: statements that are prepared once give what they give when they are run anew.
//! - `point_rows`: rows that are written by their key without operators are those that operators write.
//! - `locking`: rows that queries lock, and moments that transactions see.
//! - `foreign_keys`: no row refers to one that is not there, whatever sessions do.
//! - `sessions`: sessions of one database change the same rows and tables.
//! - `temporary`: temporary tables are of one session, and no file tells of them.
//! - `functions`: what can be called is listed, its examples are true, and the page of it is fresh.
//! - `names`: columns of results and tags of statements are called as people expect.
//! - `floats`: zeros and NaNs of any bits in files answer as those of tables do.
//! - `upstream`: DataFusion by itself still answers wrongly where a file here works around it.

mod calls;
mod changes;
mod common;
mod compatibility;
mod concurrency;
mod csv;
mod directories;
mod exchange;
mod files;
mod floats;
mod foreign_keys;
mod functions;
mod group_batches;
mod grouping;
mod hostile_files;
mod kept_texts;
mod knowledge;
mod limits;
mod locking;
mod logic;
mod memory;
mod names;
mod parquet;
mod placement;
mod point_rows;
mod pools;
mod prepared;
mod reference;
mod sessions;
mod shared_histories;
mod shared_scans;
mod statements;
mod states;
mod temporary;
mod tpch;
mod upstream;
mod variants;
