//! A server in the test's process, and clients of it.
//!
//! - `statements`: the simple protocol: several statements, transactions, errors with their places.
//! - `prepared`: the extended protocol: values in and out in binary form, portals in portions.
//! - `ends`: statements that are cancelled, clients that vanish, a server that stops.
//! - `advisory`: locks of numbers, between sessions.
//! - `backup`: copies of a database that clients write.
//! - `catalog`: what is asked about schemas, types and rights.
//! - `clients`: psql, pgbench and drivers of other languages.
//! - `console`: the web page, its requests, and a browser that uses it.
//! - `copy`: rows to and from clients, as text and CSV.
//! - `flight`: Arrow Flight SQL: log-ins, rows, transactions, ingestion, what drivers ask for.
//! - `logic`: the sqllogictest suite of the engine, over the protocol.
//! - `homes`: sessions on the threads of a node.
//! - `login`: passwords, and what roles may do.
//! - `logs`: slow statements, who did what, and that no password is in it.
//! - `rules`: who may try to log in from where.
//! - `rights`: what roles may read, change and define.
//! - `settings`: PostgreSQL's settings, and their effects.
//! - `metrics`: figures and health over HTTP.
//! - `tls`: certificates and keys: required, bad, and new ones.
//! - `traces`: spans of statements, as a collector gets them.
//! - `watching`: what system tables tell of sessions, statements and locks.
//! - `hostile`: bytes that are not the protocol.

mod advisory;
mod backup;
mod catalog;
mod clients;
mod console;
mod copy;
mod cursors;
mod ends;
mod flight;
mod homes;
mod hostile;
mod logic;
mod login;
mod logs;
mod metrics;
mod prepared;
mod rights;
mod rules;
mod settings;
mod statements;
mod support;
mod tls;
mod traces;
mod watching;
