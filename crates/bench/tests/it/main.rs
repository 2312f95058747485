//! `bench`, all of it with few rows: what it prints is complete, and every result is right.

mod compare;
mod dbms;
mod elastic;
mod help;
mod kv;
mod lab;
mod placement;
mod primitives;
mod scan;
mod server;
mod sql;
mod store;
mod support;
mod tpch;
