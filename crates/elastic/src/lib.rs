//! Elastic allocation of cores.
