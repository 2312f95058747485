//! Elastic allocation of cores (Dominico 2018): another program gets only the cores that it needs, where
//! the pages are that it accesses.
//!
//! | Module | What it has |
//! |---|---|
//! | [`adapter`] | a DBMS's own thread knob and counter, by its client |
//! | [`actuate`] | cores given and taken: control groups, units, affinity; journal and undo |
//! | [`config`] | the file that names several targets |
//! | [`decide`] | observations into decisions: the net, the mode, and whether acts paid |
//! | [`mode`] | dense, sparse and adaptive: which core is the next one |
//! | [`monitor`] | what is seen of a target, real or by a fallback that says so |
//! | [`net`] | the Predicate/Transition net: which acts are right, as data |
//! | [`session`] | a target that is followed; several that share a machine |
//! | [`trace`] | what was seen and decided, as CSV and as a picture |
//!
//! It is a crate of its own because nothing of it needs the engine, and a server of any kind can be its
//! target.

#![forbid(unsafe_code)]

pub mod actuate;
pub mod adapter;
pub mod config;
pub mod decide;
mod journal;
pub mod mode;
pub mod monitor;
pub mod net;
pub mod session;
pub mod trace;
