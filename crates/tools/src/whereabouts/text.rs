//! A look for people: the first screen says on which nodes a process lives.

use std::fmt::Write;
use std::time::Duration;

use atoll_process::inspect::{Method, NodeRow, PolicyUse, Process, ProcessMemory, Thread, Union};
use atoll_topology::{Bytes, CpuSet, NodeId};

use super::Look;
use super::session::WatchSession;
use super::table::{Alignment, lines, plain};

use Alignment::{Left, Right};

/// Threads up to which all are listed.
const THREADS_ALL: usize = 20;
/// Threads and processes listed at most.
const BUSIEST: usize = 10;
/// Nodes up to which memory by kind has a column for each.
const NODE_COLUMNS: usize = 8;
/// Longest list of cpus that is printed in full.
const CPUS_LENGTH: usize = 20;
/// Age from which on figures on memory say it.
const AGE_SHOWN: Duration = Duration::from_millis(100);
/// Columns where stdout is not a terminal.
const WIDTH: usize = 100;

/// The page. `is_whole` lists every thread and process; `width` is that of the terminal.
pub(super) fn page(
    session: &WatchSession,
    look: &Look,
    is_whole: bool,
    width: Option<usize>,
) -> String {
    let sections = [
        heading(session, look),
        nodes(look),
        warnings(look, width.unwrap_or(WIDTH)),
        kinds(look),
        policies(look),
        processes(session, look, is_whole),
        threads(look, is_whole),
        missing(look, width.unwrap_or(WIDTH)),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|part| !part.is_empty()).collect();
    sections.join("\n")
}

fn heading(session: &WatchSession, look: &Look) -> String {
    let snapshot = &look.snapshot;
    let who = match snapshot.processes.as_slice() {
        [process] => format!("{} (process {})", plain(&process.name), process.id.pid),
        processes => {
            format!("{}: {}", plain(&session.asked()), counted(processes.len() as u64, "process"))
        }
    };
    let threads = counted(snapshot.threads_total(), "thread");
    let mut text = format!("{who}, {threads}, {} resident", Bytes(snapshot.bytes()));
    if let (Some(bytes), [_, _, ..]) = (snapshot.proportional(), &*snapshot.processes) {
        let _ = write!(text, ", {} PSS", Bytes(bytes));
    }
    let swapped: u64 = memories(look).map(|memory| memory.swapped).sum();
    if swapped > 0 {
        let _ = write!(text, ", {} swapped out", Bytes(swapped));
    }
    text.push('\n');
    let age = snapshot.memory_age();
    let _ = match age < AGE_SHOWN {
        true => writeln!(text, "{}", method(look)),
        false => writeln!(text, "{}, {:.1} s ago", method(look), age.as_secs_f64()),
    };
    if let Some(cost) = look.cost {
        let read = snapshot.threads_read;
        let _ = writeln!(
            text,
            "watching costs {:.2} % of a cpu; {read} of {} threads read in this look",
            100.0 * cost,
            snapshot.threads_total()
        );
    }
    text
}

fn memories(look: &Look) -> impl Iterator<Item = &ProcessMemory> {
    look.snapshot.processes.iter().filter_map(|process| process.memory.as_ref())
}

/// How the memory was read.
fn method(look: &Look) -> String {
    let (mut pages, mut seen, mut worst) = (0, 0, 0.0_f64);
    let mut sampled = 0;
    let mut has_totals = false;
    for memory in memories(look) {
        match memory.method {
            Method::Sampled { looked, resident, error } => {
                (pages, seen, worst) = (pages + looked, seen + resident, worst.max(error));
                sampled += 1;
            }
            Method::Totals => has_totals = true,
            Method::Exact => {}
        }
    }
    if sampled > 0 {
        return format!(
            "memory sampled: {pages} addresses, {seen} resident; shares are exact to ±{:.1} points \
             (95 %)",
            100.0 * worst
        );
    }
    match has_totals {
        true => {
            "memory: the kernel's sums only (heap and stack count as anonymous, programs as files)"
                .to_owned()
        }
        false => "memory counted page by page (numa_maps)".to_owned(),
    }
}

fn node_name(node: Option<NodeId>) -> String {
    node.map_or_else(|| "?".to_owned(), |node| node.to_string())
}

fn nodes(look: &Look) -> String {
    let mut rows = vec![titles(&["node", "cpus", "threads", "CPU %", "memory", "resident here"])];
    let snapshot = &look.snapshot;
    let shown =
        snapshot.nodes.iter().filter(|row| row.node.is_some() || row.bytes + row.threads > 0);
    for row in shown {
        rows.push(vec![
            node_name(row.node),
            shortened(&row.cpus),
            row.threads.to_string(),
            percent(row.cpu_share),
            Bytes(row.bytes).to_string(),
            format!("{} {:>5.1} %", bar(row), 100.0 * row.share),
        ]);
    }
    let mut text = lines(&[Right, Left, Right, Right, Right, Left], &rows);
    let unread = snapshot.threads_total().saturating_sub(snapshot.threads().count() as u64);
    if unread > 0 {
        let _ = writeln!(text, "{unread} threads are not read yet");
    }
    text
}

/// Ten characters long.
fn bar(row: &NodeRow) -> String {
    let full = (10.0 * row.share).round() as usize;
    format!("{}{}", "█".repeat(full.min(10)), "·".repeat(10 - full.min(10)))
}

fn kinds(look: &Look) -> String {
    let snapshot = &look.snapshot;
    let mut by_size: Vec<&NodeRow> = snapshot.nodes.iter().filter(|row| row.bytes > 0).collect();
    by_size.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    let mut columns: Vec<Option<NodeId>> =
        by_size.iter().take(NODE_COLUMNS).map(|row| row.node).collect();
    columns.sort_by_key(|node| (node.is_none(), *node));
    let mut title = titles(&["memory"]);
    title.extend(columns.iter().map(|node| format!("node {}", node_name(*node))));
    title.push("all nodes".to_owned());
    let mut rows = vec![title];
    for (kind, bytes) in &snapshot.memory {
        let mut row = vec![kind.words().to_owned()];
        let size = |node| bytes.get(node).map_or("-".to_owned(), |size| Bytes(*size).to_string());
        row.extend(columns.iter().map(size));
        row.push(Bytes(bytes.values().sum()).to_string());
        rows.push(row);
    }
    if rows.len() == 1 {
        return String::new();
    }
    let mut sides = vec![Right; columns.len() + 2];
    sides[0] = Left;
    let mut text = lines(&sides, &rows);
    let huge: Option<u64> = memories(look).map(|memory| memory.huge_transparent).sum();
    if let Some(huge) = huge {
        let _ = writeln!(text, "of it in transparent huge pages: {}", Bytes(huge));
    }
    text.push_str(&union(snapshot.union));
    text
}

/// How what several processes map as one was counted.
fn union(union: Union) -> String {
    let how = match union {
        Union::None => return String::new(),
        Union::Exact => "every page that one of them has mapped".to_owned(),
        Union::Sampled { looked, resident, error_bytes } => format!(
            "sampled, {looked} pages, {resident} resident; exact to ±{} (95 %)",
            Bytes(error_bytes)
        ),
        Union::Maximum => "of some of it, the most that one of them has (see below)".to_owned(),
        Union::Each => {
            return "what several processes map as one counts in each of them (see below)\n"
                .to_owned();
        }
    };
    format!("shared mappings count once: {how}\n")
}

fn policies(look: &Look) -> String {
    let mut sum: Vec<PolicyUse> = Vec::new();
    for policy in memories(look).filter_map(|memory| memory.policies.as_ref()).flatten() {
        match sum.iter_mut().find(|known| known.policy == policy.policy) {
            Some(known) => {
                known.mappings += policy.mappings;
                known.bytes = known.bytes.saturating_add(policy.bytes);
            }
            None => sum.push(policy.clone()),
        }
    }
    let listed: Vec<String> = sum
        .iter()
        .map(|policy| {
            let mappings = counted(policy.mappings, "mapping");
            format!("{} ({mappings}, {})", plain(&policy.policy), Bytes(policy.bytes))
        })
        .collect();
    let mut text = String::new();
    if !listed.is_empty() {
        let _ = writeln!(text, "policies of mappings: {}", listed.join(", "));
    }
    let mut own: Vec<(&str, u64)> = Vec::new();
    for (_, thread) in look.snapshot.threads() {
        let Some(policy) = thread.policy.as_deref() else { continue };
        match own.iter_mut().find(|(known, _)| *known == policy) {
            Some((_, count)) => *count += 1,
            None => own.push((policy, 1)),
        }
    }
    let own: Vec<String> = own
        .iter()
        .map(|(policy, count)| format!("{} ({})", plain(policy), counted(*count, "thread")))
        .collect();
    if !own.is_empty() {
        let _ = writeln!(text, "policies of threads:  {}", own.join(", "));
    }
    let _ = writeln!(text, "automatic balancing:  {}", balancing(look));
    text
}

fn balancing(look: &Look) -> String {
    let balancing = &look.snapshot.balancing;
    let moved: Vec<u64> =
        look.snapshot.threads().filter_map(|(_, thread)| thread.pages_migrated).collect();
    let state = match balancing.mode {
        None => return "not in this kernel".to_owned(),
        Some(0) => "off",
        Some(1) => "on",
        Some(_) => "on, for memory tiers",
    };
    let mut text = state.to_owned();
    if !moved.is_empty() {
        let _ = write!(text, "; {} pages moved for these threads", moved.iter().sum::<u64>());
    }
    if let (Some(faults), Some(local)) = (balancing.hint_faults, balancing.hint_faults_local)
        && faults > 0
    {
        let share = 100.0 * local as f64 / faults as f64;
        let _ = write!(text, "; whole machine: {faults} hint faults, {share:.0} % local");
    }
    text
}

fn warnings(look: &Look, width: usize) -> String {
    let mut text = String::new();
    for warning in &look.warnings {
        text.push_str(&wrapped("! ", &warning.what, width));
        for mend in &warning.mend {
            let _ = writeln!(text, "    {mend}");
        }
    }
    text
}

fn missing(look: &Look, width: usize) -> String {
    let line = |missing: &atoll_process::inspect::Missing| {
        wrapped("not shown: ", &format!("{}; it takes {}", missing.what, missing.need), width)
    };
    look.snapshot.missing.iter().map(line).collect()
}

/// A sentence after a mark, on as many lines as it takes.
fn wrapped(mark: &str, sentence: &str, width: usize) -> String {
    let indent = " ".repeat(mark.chars().count());
    let mut text = String::new();
    let mut line = mark.to_owned();
    for word in sentence.split(' ') {
        let is_empty = line.trim_end().chars().count() <= mark.trim_end().chars().count();
        if !is_empty && line.chars().count() + word.chars().count() > width {
            let _ = writeln!(text, "{}", line.trim_end());
            line.clone_from(&indent);
        }
        let _ = write!(line, "{word} ");
    }
    let _ = writeln!(text, "{}", line.trim_end());
    text
}

fn processes(session: &WatchSession, look: &Look, is_whole: bool) -> String {
    let mut processes: Vec<&Process> = look.snapshot.processes.iter().collect();
    if processes.len() < 2 {
        return String::new();
    }
    let bytes = |process: &Process| process.memory.as_ref().map_or(0, ProcessMemory::resident);
    processes.sort_by(|a, b| {
        b.cpu_share().total_cmp(&a.cpu_share()).then_with(|| bytes(b).cmp(&bytes(a)))
    });
    let shown = if is_whole { processes.len() } else { BUSIEST };
    let mut rows = vec![titles(&["process", "name", "threads", "CPU %", "memory", "by node"])];
    for process in processes.iter().take(shown) {
        let nodes = process.nodes(&session.nodes);
        let mut nodes: Vec<&NodeRow> = nodes.iter().filter(|row| row.bytes > 0).collect();
        nodes.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        let share = |row: &&NodeRow| format!("{}: {:.0} %", node_name(row.node), 100.0 * row.share);
        rows.push(vec![
            process.id.pid.to_string(),
            format!("{}{}", plain(&process.name), state(process.state)),
            process.threads_total.to_string(),
            percent(process.cpu_share()),
            Bytes(bytes(process)).to_string(),
            nodes.iter().take(4).map(share).collect::<Vec<_>>().join(", "),
        ]);
    }
    let mut text = lines(&[Right, Left, Right, Right, Right, Left], &rows);
    if processes.len() > shown {
        let _ = writeln!(text, "… and {} more: --threads lists all", processes.len() - shown);
    }
    text
}

fn threads(look: &Look, is_whole: bool) -> String {
    let mut threads: Vec<(&Process, &Thread)> = look.snapshot.threads().collect();
    let count = threads.len();
    let shown = if is_whole || count <= THREADS_ALL { count } else { BUSIEST };
    let order = |(_, a): &(&Process, &Thread), (_, b): &(&Process, &Thread)| {
        let key = |thread: &Thread| thread.cpu_share.unwrap_or(0.0);
        key(b).total_cmp(&key(a)).then_with(|| b.migrations.cmp(&a.migrations))
    };
    if shown < count {
        threads.select_nth_unstable_by(shown, order);
        threads.truncate(shown);
    }
    threads.sort_by(order);
    let mut rows = vec![titles(&[
        "thread",
        "name",
        "cpu",
        "node",
        "may run on",
        "CPU %",
        "migrations",
        "switches",
        "preempted",
    ])];
    for (_, thread) in threads {
        let number = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
        rows.push(vec![
            thread.tid.to_string(),
            format!("{}{}", plain(&thread.name), state(thread.state)),
            thread.cpu.to_string(),
            node_name(thread.node),
            shortened(&thread.cpus_allowed),
            thread.cpu_share.map_or("-".to_owned(), percent),
            number(thread.migrations),
            number(thread.switches_voluntary),
            number(thread.switches_involuntary),
        ]);
    }
    let sides = [Right, Left, Right, Right, Left, Right, Right, Right, Right];
    let mut text = lines(&sides, &rows);
    if count > shown {
        let _ = writeln!(text, "… and {} more: --threads lists all", count - shown);
    }
    text
}

/// States that explain why nothing moves.
fn state(state: char) -> &'static str {
    match state {
        'Z' | 'X' => " (ended)",
        'T' | 't' => " (stopped)",
        'D' => " (waits for a device)",
        _ => "",
    }
}

fn titles(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn counted(count: u64, what: &str) -> String {
    let ending = if what.ends_with('s') { "es" } else { "s" };
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}{ending}") }
}

/// A long list is cut after a comma.
fn shortened(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    if list.len() <= CPUS_LENGTH {
        return list;
    }
    let head = list[..CPUS_LENGTH - 2].rsplit_once(',').map_or("", |(head, _)| head);
    format!("{head},… ({})", cpus.len())
}
