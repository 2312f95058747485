//! Pictures: well-formed, complete, and without values that are not numbers.

use std::collections::BTreeSet;

use atoll_experiments::published::Published;
use atoll_experiments::reproduce::{Calibration, Figures, PublishedComparison};
use atoll_experiments::{
    Achieved, ArmOutcome, CacheLoads, ExperimentManifest, ExperimentOptions, ExperimentResults,
    Operation, RepeatedFigure, Slice, Which, plan, plot,
};
use atoll_sys::Root;
use atoll_testkit::{machines, svg_texts as texts};

use super::reproduction::{all, counted};

fn has(texts: &[String], part: &str) -> bool {
    texts.iter().any(|text| text.contains(part))
}

/// Rings, which mark published figures.
fn rings(svg: &str) -> usize {
    svg.lines()
        .filter(|line| line.starts_with("<circle") && line.contains(r#"fill="none""#))
        .count()
}

fn compared() -> PublishedComparison {
    let mut arms = all();
    arms.push(counted(3, Operation::Read, 16, "3 migrations", 21.0));
    arms.push(counted(3, Operation::Read, 16, "200 migrations", 30.0));
    PublishedComparison::try_from_counts(&arms, Published::kiefer_2013()).unwrap()
}

/// Results of experiments on four nodes, all with the same time, with three slices for each arm.
fn results(experiments: &[u8], ns: f64) -> ExperimentResults {
    let machine = machines::four_nodes();
    let options = ExperimentOptions { repetitions: 3, ..ExperimentOptions::default() };
    let which = Which::Experiments(experiments.iter().copied().collect::<BTreeSet<u8>>());
    let plan = plan(&machine, &which, &options).unwrap();
    let slice = |ns, hit_rate| Slice { ns, hit_rate };
    let outcome = |arm| ArmOutcome {
        arm,
        accesses: 1000,
        ns: Some(RepeatedFigure { median: ns, min: ns / 2.0, max: ns * 2.0 }),
        runs_ns: vec![ns / 2.0, ns, ns * 2.0],
        achieved: Achieved::default(),
        cache: Some(CacheLoads { loads: 10, misses: 1 }),
        cache_missing: None,
        migrations_counted: None,
        switches_counted: None,
        series: vec![slice(ns, Some(0.9)), slice(ns, None), slice(ns, Some(0.7))],
        failure: None,
    };
    ExperimentResults {
        manifest: ExperimentManifest::new(&machine, &Root::live(), &options, false),
        arms: plan.arms.into_iter().map(outcome).collect(),
        rows: plan.rows,
        notes: plan.notes,
    }
}

#[test]
fn a_comparison_shows_every_row_and_every_published_figure() {
    let comparison = compared();
    let svg = plot::reproduction("A <paper> & \"its\" machine", "in the lab", &comparison);
    let texts = texts(&svg);
    for part in ["A <paper> & \"its\" machine", "in the lab", "Figure 2a", "Figure 2b", "Table 1"] {
        assert!(has(&texts, part), "{part}: {texts:?}");
    }
    for row in &comparison.rows {
        let ratios = format!("published {:.2}, ours {:.2}", row.ratio_published, row.ratio);
        assert!(has(&texts, &ratios) && has(&texts, &row.name), "{ratios}: {texts:?}");
    }
    assert!(has(&texts, "99 % → 78 %"), "{texts:?}");
    assert_eq!(comparison.figures.over_time.len(), 2);
    assert!(has(&texts, "0 migrations") && has(&texts, "3 migrations"), "{texts:?}");
    // A ring for each row of table 1, two hit rates, a time, and one in each of three keys.
    assert_eq!(rings(&svg), 14 + 2 + 1 + 3);
}

#[test]
fn a_hit_rate_is_drawn_at_its_height() {
    let ours = |share: f64| {
        let mut comparison = compared();
        comparison.rows.clear();
        comparison.rates.clear();
        comparison.figures.by_migrations.truncate(1);
        comparison.figures.by_migrations[0].hit_rate = Some(share);
        let svg = plot::reproduction("", "", &comparison);
        let dot =
            svg.lines().find(|line| line.starts_with("<circle") && line.contains(r#"r="3.6""#));
        let (_, rest) = dot.unwrap().split_once(r#"cy=""#).unwrap();
        rest.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    let (full, half, none) = (ours(1.0), ours(0.5), ours(0.0));
    assert!(full < half && half < none, "{full} {half} {none}");
    assert!((half - f64::midpoint(full, none)).abs() < 0.2, "{full} {half} {none}");
}

#[test]
fn missing_comparisons_are_left_out_and_an_empty_one_is_reported() {
    let arms: Vec<_> = all().into_iter().filter(|it| it.arm.experiment == 2).collect();
    let comparison = PublishedComparison::try_from_counts(&arms, Published::kiefer_2013()).unwrap();
    let shown = texts(&plot::reproduction("", "", &comparison));
    assert!(has(&shown, "Table 1") && !has(&shown, "Figure 2"), "{shown:?}");
    let nothing = PublishedComparison {
        calibration: Calibration { fixed_ns: 0.0, in_flight: 0.0 },
        rows: Vec::new(),
        rates: Vec::new(),
        figures: Figures::default(),
    };
    assert!(has(&texts(&plot::reproduction("", "", &nothing)), "Nothing was compared"));
}

#[test]
fn a_comparison_with_nan_values_is_still_drawn() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, -1.0] {
        let mut comparison = compared();
        for row in &mut comparison.rows {
            (row.ratio, row.ratio_lower) = (value, value);
        }
        for point in &mut comparison.figures.by_migrations {
            (point.hit_rate, point.time_relative) = (Some(value), value);
        }
        for point in comparison.figures.over_time.iter_mut().flat_map(|it| &mut it.points) {
            (point.accesses, point.hit_rate) = (u64::MAX, Some(value));
        }
        let svg = plot::reproduction("", "", &comparison);
        assert!(texts(&svg).len() > 30 && svg.len() < 100_000, "{value}: {}", svg.len());
    }
}

#[test]
fn a_run_shows_every_arm_with_its_spread_and_its_series() {
    let results = results(&[1, 2, 3, 4], 25.0);
    let svg = plot::results(&results);
    let texts = texts(&svg);
    let spreads = texts.iter().filter(|text| *text == "25 (12.5 – 50)").count();
    assert_eq!(spreads, results.arms.len());
    for row in &results.rows {
        assert!(has(&texts, &format!("Experiment {}: {}", row.experiment, row.name)), "{texts:?}");
    }
    // Times are one stroke; hit rates have a gap in the middle, so that both ends are dots. Of the
    // arms of a row five have looks of their own.
    let drawn: usize = results.rows.iter().map(|row| (1 + row.contrasts.len()).min(5)).sum();
    assert_eq!(svg.matches("<polyline").count(), drawn);
    assert_eq!(svg.matches("<circle").count(), 2 * drawn);
    assert!(has(&texts, "over the run 5 of 6 are shown"), "{texts:?}");
}

#[test]
fn a_slow_slice_does_not_flatten_the_others() {
    let mut results = results(&[1], 25.0);
    results.arms[0].series[1].ns = 90_000.0;
    let texts = texts(&plot::results(&results));
    assert!(has(&texts, "peaks cut, up to 90000"), "{texts:?}");
    assert!(has(&texts, "80") && !has(&texts, "100000"), "{texts:?}");
}

#[test]
fn runs_of_nothing_of_one_arm_and_of_failures_are_pictures() {
    let mut one = results(&[1], 25.0);
    one.rows.truncate(1);
    one.rows[0].contrasts.clear();
    one.arms.truncate(1);
    one.arms[0].arm.setting = "<b>&\u{1}".to_owned();
    one.arms[0].series.clear();
    let svg = plot::results(&one);
    assert!(has(&texts(&svg), "<b>&\u{fffd}") && !svg.contains("<polyline"), "{svg}");
    one.arms[0].failure = Some("no memory".to_owned());
    one.arms[0].ns = None;
    one.arms[0].cache_missing = Some("no counters".to_owned());
    let shown = texts(&plot::results(&one));
    assert!(has(&shown, "failed: no memory") && has(&shown, "no counters"), "{shown:?}");
    one.arms.clear();
    assert!(has(&texts(&plot::results(&one)), "No arm was run"));
}

#[test]
fn a_run_with_nan_times_is_still_drawn() {
    for ns in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 0.0, -1.0] {
        let svg = plot::results(&results(&[1, 4], ns));
        assert!(texts(&svg).len() > 20 && svg.len() < 100_000, "{ns}: {}", svg.len());
    }
}
