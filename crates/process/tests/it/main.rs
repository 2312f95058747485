//! Processes started and looked at, on this machine and on simulated ones.
