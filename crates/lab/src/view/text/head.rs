//! Command, machine and settings, and why there are no counts.

use atoll_simulation::Counting;

use super::super::nothing::why_nothing;
use super::super::words::{counted, digits, line};
use crate::record::RunRecord;

/// The command, the machine and what differs from the real one.
pub(super) fn head(record: &RunRecord) -> String {
    let (run, setup) = (&record.run, &record.report.setup);
    let (nodes, cpus) = (counted(setup.nodes.len(), "node"), counted(setup.cpus.len(), "cpu"));
    let wall = digits(run.wall_seconds);
    let boot = digits(run.boot_seconds);
    let mut lines = vec![
        line(&run.command.join(" ")),
        format!("  on {} in the lab: {nodes}, {cpus}; exit code {}", line(&run.machine), run.code),
        format!("  counted: {}; {}", counting(record), balancing(run.balancing)),
        format!(
            "  atoll {}, QEMU {}, Linux {}; {wall} s, {boot} s of them booting",
            line(&record.atoll),
            line(&run.qemu_version),
            line(&run.kernel_release),
        ),
    ];
    lines.extend(run.notes.iter().map(|note| format!("  {}", line(note))));
    if run.cache_divisor > 1 {
        lines.push(format!("  caches: 1/{} of the machine's", run.cache_divisor));
    }
    lines.extend(why_nothing(record).map(|why| format!("\n{why}")));
    lines.join("\n") + "\n"
}

fn counting(record: &RunRecord) -> &'static str {
    match record.report.setup.counting {
        Counting::User => "all of user space",
        Counting::Region => "open regions in user space",
        Counting::Within => "open regions in user space, which alone the caches see",
    }
}

fn balancing(balancing: Option<bool>) -> &'static str {
    match balancing {
        Some(true) => "automatic balancing on",
        Some(false) => "automatic balancing off",
        None => "automatic balancing as the kernel has it",
    }
}
