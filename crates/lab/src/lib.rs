//! The lab: emulated NUMA machines with a real Linux kernel. Describe, boot, run, collect.

#![forbid(unsafe_code)]
