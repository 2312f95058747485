//! The arms in words.

use atoll_placement::Strategy;

/// What every arm means, for those that the report compares.
pub(super) fn meaning(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Default => {
            "no policy: the first touch decides, and automatic balancing moves pages where it is on \
             (what the report calls local)"
        }
        Strategy::Local => {
            "as default, by a policy of its own: automatic balancing leaves the process alone"
        }
        Strategy::Spread => "threads free, pages over all nodes in turn (the report's interleave)",
        Strategy::Subset(_) => {
            "threads and pages on the first nodes only (the report's conclusion)"
        }
        Strategy::Aligned => "threads and pages on one node",
        _ => "",
    }
}
