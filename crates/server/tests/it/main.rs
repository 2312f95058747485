//! A server in the test's process, and clients of it.
//!
//! - `statements`: the simple protocol: several statements, transactions, error positions.
//! - `prepared`: the extended protocol: binary values in and out, portals in portions.
//! - `ranges`: ranges in binary form.
//! - `ends`: cancelled statements, vanished clients, a stopping server.
//! - `advisory`: advisory locks between sessions.
//! - `backup`: backups of a database while clients write.
//! - `catalog`: queries about schemas, types and rights.
//! - `clients`: psql, pgbench and drivers of other languages.
//! - `console`: the web page, its API, and a browser that uses it.
//! - `copy`: rows to and from clients, as text and CSV.
//! - `declared_types`: the types of parameters in the answers.
//! - `dump`: pg_dump and pg_restore, between servers and from PostgreSQL.
//! - `flight`: Arrow Flight SQL: log-ins, rows, transactions, ingestion, metadata.
//! - `logic`: the sqllogictest suite of the engine, over the protocol.
//! - `homes`: sessions on the threads of a node.
//! - `login`: passwords, and the rights of roles.
//! - `logs`: slow statements and the audit log, without passwords.
//! - `rules`: who may log in from where.
//! - `rights`: what roles may read, change and define.
//! - `settings`: PostgreSQL's settings, and their effects.
//! - `metrics`: metrics and health checks over HTTP.
//! - `notifications`: LISTEN and NOTIFY between sessions.
//! - `temporal_styles`: DateStyle and IntervalStyle.
//! - `tls`: certificates and keys: required, invalid, and reloaded.
//! - `traces`: spans of statements, as a collector receives them.
//! - `watching`: system tables about sessions, statements and locks.
//! - `hostile`: bytes that are not the protocol.

mod advisory;
mod backup;
mod catalog;
mod clients;
mod console;
mod copy;
mod cursors;
mod declared_types;
mod dump;
mod encodings;
mod ends;
mod flight;
mod homes;
mod hostile;
mod logic;
mod login;
mod logs;
mod metrics;
mod named_statements;
mod notifications;
mod prepared;
mod ranges;
mod rights;
mod rules;
mod settings;
mod statements;
mod support;
mod temporal_styles;
mod tls;
mod traces;
mod watching;
