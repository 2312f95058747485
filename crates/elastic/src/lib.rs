//! Elastic allocation of cores (Dominico 2018): gives another program only the cores that it needs, near the pages that
//! it accesses.
//!
//! | Module | Contents |
//! |---|---|
//! | [`adapter`] | a DBMS's own thread knob and counter, by its client |
//! | [`actuate`] | assigning and releasing cores: control groups, units, affinity; journal and undo |
//! | [`config`] | the configuration file for several targets |
//! | [`decide`] | observations into decisions: the net, the mode, and whether acts paid |
//! | [`mode`] | dense, sparse and adaptive: the choice of the next core |
//! | [`monitor`] | measurements of a target, direct or by a declared fallback |
//! | [`net`] | the Predicate/Transition net: which acts are right, as data |
//! | [`session`] | a managed target; several that share a machine |
//! | [`trace`] | observations and decisions, as CSV and as a picture |
//!
//! It is a separate crate because it does not need the engine, and a server of any kind can be its target.

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
