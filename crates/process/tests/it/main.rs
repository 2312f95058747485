//! Processes started and looked at, on this machine and on simulated ones.

mod inspect;
mod inspect_live;
mod inspect_random;
mod inspect_tree;
mod inspect_union;
mod launch_plan;
mod launch_random;
mod launch_refusals;
