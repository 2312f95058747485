//! The built binary, run as users run it.
//!
//! - `topo`, `help`: what they print can be read, by programs too.
//! - `modes`: every output mode over values that are awkward to write, and in bulk.
//! - `scripts`: `-c`, `-f`, stdin and files: order, errors with their lines, exit codes, streams.
//! - `commands`: each dot command does what its help says.
//! - `data`: databases in directories, damaged ones too.
//! - `limits`: memory and threads stay within their limits.
//! - `interrupts`: Ctrl-C and closed pipes.
//! - `ends`: whatever ends the process, files are complete and no temporary files remain.
//! - `lab`: tables and workers on an emulated machine of four nodes.
//! - `serve`: settings of the server, from flags, variables and files.
//! - `soak`: clients of a server that is killed and started again.
//! - `shell`: the interactive shell, on a pseudo-terminal.
//! - `demo`: all parts at a small scale, with the facts that prove them.

mod commands;
mod data;
mod demo;
mod ends;
mod help;
mod interrupts;
mod lab;
mod limits;
mod modes;
mod scripts;
mod serve;
mod shell;
mod soak;
mod support;
mod topo;
