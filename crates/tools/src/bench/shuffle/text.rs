//! Results and predictions for people.

use super::live::{PlanRow, Results};
use super::predict::Prediction;

/// A run.
pub(super) fn results(results: &Results) -> String {
    let mut text = format!("{}\n\n{}", results.title(), results.manifest);
    text.push_str(
        "\nthreads  order   moved    steps   median GB/s  least   most  share of             local  convoys\n",
    );
    results.rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

fn line(row: &PlanRow) -> String {
    let all = row.reference_bandwidth.as_ref().map_or(0.0, |all| all.median);
    let share = row.share.map_or("-".to_owned(), |share| {
        format!("{:>5.1} % {} {all:.1}", share * 100.0, row.reference)
    });
    format!(
        "{:>7}  {:<6}  {:<7}  {:<5}  {:>11.2}  {:>5.2}  {:>5.2}  {share:<18} {:>5.1} %  {:>7.1}\n",
        row.threads,
        row.order,
        row.moved,
        row.coordination,
        row.bandwidth.median,
        row.bandwidth.least,
        row.bandwidth.most,
        row.local * 100.0,
        row.convoys,
    )
}

/// A prediction with the published figures.
pub(super) fn prediction(it: &Prediction) -> String {
    let mut text = format!("{}\n", it.title());
    it.notes.iter().for_each(|note| text.push_str(&format!("{note}\n")));
    let [header, snoop, meeting] = it.protocol;
    text.push_str(&format!(
        "a line of 64 bytes: header {header:.1}, snoop {snoop:.1}, reply {snoop:.1} bytes; where data of \
         another node meets: {:.1} % of the bandwidth\nall memory together: {:.1} GB/s\n",
        meeting * 100.0,
        it.memory
    ));
    text.push_str(&bars(it));
    text.push_str(&scaling(it));
    text.push_str(&aggregation(it));
    if !it.said.is_empty() {
        text.push_str("\nOther statements of the paper\n");
        it.said.iter().for_each(|said| text.push_str(&format!("  {said}\n")));
    }
    text
}

fn bars(it: &Prediction) -> String {
    let mut text = format!("\nBandwidth of {} threads (figure 6)\n", it.threads);
    text.push_str("  order   moved    steps   GB/s   published  deviation\n");
    for bar in &it.bars {
        let published = bar.published.map_or("-".to_owned(), |published| format!("{published:.0}"));
        let deviation = bar.deviation_percent;
        let deviation = deviation.map_or("-".to_owned(), |percent| format!("{percent:+.1} %"));
        text.push_str(&format!(
            "  {:<6}  {:<7}  {:<5}  {:>5.1}   {published:>9}  {deviation:>9}\n",
            bar.order, bar.moved, bar.coordination, bar.gbps
        ));
    }
    text
}

fn scaling(it: &Prediction) -> String {
    let mut text = "\nBandwidth by threads, GB/s (figure 7)\n".to_owned();
    text.push_str("  threads   naive    ring  migration\n");
    for row in &it.scaling {
        let (naive, ring, migration) = (row.naive, row.ring, row.migration);
        let line = format!("  {:>7}  {naive:>6.1}  {ring:>6.1}  {migration:>9.1}\n", row.threads);
        text.push_str(&line);
    }
    text
}

fn aggregation(it: &Prediction) -> String {
    let mut text = "\nAggregation by groups of a partition, GB/s (figure 10)\n".to_owned();
    text.push_str("     groups   naive    ring  migration  migration and copy\n");
    for row in &it.aggregation {
        text.push_str(&format!(
            "  {:>9}  {:>6.1}  {:>6.1}  {:>9.1}  {:>18.1}\n",
            row.groups, row.naive, row.ring, row.migration, row.migration_and_copy
        ));
    }
    let crossover = &it.crossover;
    let found = match crossover.groups {
        Some(groups) => format!("from {groups} groups of a partition on the ring is ahead"),
        None => "none is overtaken by the other".to_owned(),
    };
    text.push_str(&format!("  {found}"));
    if let (Some(published), Some(below)) = (crossover.published, crossover.published_ahead_below) {
        text.push_str(&format!("; published {published}, and migration ahead below {below}"));
        if let Some(ratio) = crossover.ratio {
            text.push_str(&format!(" (ours is {ratio:.2} times that)"));
        }
    }
    text.push('\n');
    text
}
