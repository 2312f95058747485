//! The paper's figures, and the arithmetic that compares ours with them.

use atoll_experiments::published::Published;
use atoll_experiments::reproduce::{Calibration, Counted, Point, PublishedComparison, text};
use atoll_experiments::{Arm, CpuRoute, Group, Home, Kind, Operation};
use atoll_topology::{Bytes, CpuId, NodeId};

const MB: u64 = 1 << 20;

/// An arm whose accesses wait this many ns each.
pub(super) fn counted(
    experiment: u8,
    operation: Operation,
    mb: u64,
    setting: &str,
    wait: f64,
) -> Counted {
    let way = CpuRoute(vec![CpuId(0)]);
    let group = Group { home: Home::On(NodeId(0)), threads: vec![way] };
    let migrations = setting.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    Counted {
        arm: Arm {
            experiment,
            name: String::new(),
            setting: setting.to_owned(),
            operation,
            kind: Kind::Independent,
            size: Bytes(mb * MB),
            size_run: Bytes(mb * MB / 64),
            groups: vec![group],
            migrations,
            processes: false,
            shares_cache: false,
            region: None,
        },
        accesses: 1000,
        hits_unshared: 700,
        hits_shared: 100,
        misses: 200,
        from_caches: 0,
        from_remote_memory: 0,
        wait_ns: wait * 1000.0,
        busiest_ns: 0.0,
        busiest: String::new(),
        series: vec![Point { accesses: 1000, hit_rate: Some(0.8) }],
    }
}

/// Every arm of table 1, waiting 20 ns in the small array and 120 in the large one, the contrast twice
/// as long.
pub(super) fn all() -> Vec<Counted> {
    let mut arms = Vec::new();
    for row in &Published::kiefer_2013().rows {
        let wait = if row.mb() == 16 { 20.0 } else { 120.0 };
        let (experiment, operation) = (row.experiment, row.operation);
        arms.push(counted(experiment, operation, row.mb(), &row.baseline.setting, wait));
        arms.push(counted(experiment, operation, row.mb(), &row.contrast.setting, 2.0 * wait));
    }
    arms
}

#[test]
fn the_data_file_has_every_figure_with_its_origin() {
    let published = Published::kiefer_2013();
    assert_eq!(published.rows.len(), 14);
    let rows = |experiment| published.rows.iter().filter(move |row| row.experiment == experiment);
    assert_eq!([1, 2, 3, 4].map(|experiment| rows(experiment).count()), [2, 4, 4, 4]);
    assert!(published.rows.iter().all(|row| row.origin.contains("table 1") && row.ratio() > 1.0));
    assert!(published.rows.iter().all(|row| matches!(row.mb(), 16 | 128)));
    assert_eq!(published.figures.len(), 6);
    assert_eq!(published.percent("hit_rate_round_robin"), Some(33.0));
    assert_eq!(published.percent("nothing"), None);
    assert_eq!(published.run.accesses, 4_000_000_000);
    let sum: f64 = published.rows.iter().map(|row| row.baseline.ns + row.contrast.ns).sum();
    assert!((sum - 736.4).abs() < 0.05, "the sum of table 1: {sum}");
}

#[test]
fn two_times_give_the_two_parameters() {
    let small = counted(2, Operation::Read, 16, "", 20.0);
    let large = counted(2, Operation::Read, 128, "", 120.0);
    // 100 ns more wait take 20 ns more time: five under way; of 11 ns, 20 / 5 are wait.
    let calibration = Calibration::solve((&small, 11.0), (&large, 31.0)).unwrap();
    assert!((calibration.in_flight - 5.0).abs() < 1e-9, "{calibration:?}");
    assert!((calibration.fixed_ns - 7.0).abs() < 1e-9, "{calibration:?}");
    assert!((calibration.time(&large).upper - 31.0).abs() < 1e-9);
}

#[test]
fn counts_that_no_parameters_explain_are_an_error() {
    let arm = |wait| counted(2, Operation::Read, 16, "", wait);
    for (small, large) in [(20.0, 20.0), (120.0, 20.0), (100.0, 120.0), (0.0, f64::NAN)] {
        let solved = Calibration::solve((&arm(small), 11.0), (&arm(large), 31.0));
        assert!(solved.is_err(), "{small} {large}: {solved:?}");
    }
    assert!(PublishedComparison::try_from_counts(&[], Published::kiefer_2013()).is_err());
}

#[test]
fn threads_that_meet_at_one_controller_wait_for_each_other_and_a_single_one_does_not() {
    let calibration = Calibration { fixed_ns: 5.0, in_flight: 10.0 };
    let mut arm = counted(4, Operation::Read, 128, "", 100.0);
    arm.busiest_ns = 4000.0;
    let time = calibration.time(&arm);
    assert_eq!((time.lower, time.upper), (15.0, 15.0));
    // Four threads: 250 accesses each, so the controller serves 16 ns an access, 12 of them others'.
    arm.arm.groups[0].threads = vec![CpuRoute(vec![CpuId(0)]); 4];
    let time = calibration.time(&arm);
    assert_eq!((time.lower, time.upper), (16.0, 27.0));
}

#[test]
fn every_row_is_compared_and_only_two_baselines_are_fitted() {
    let comparison =
        PublishedComparison::try_from_counts(&all(), Published::kiefer_2013()).unwrap();
    assert_eq!(comparison.rows.len(), 14);
    let fitted: Vec<_> = comparison.rows.iter().filter(|row| row.is_calibrated).collect();
    assert_eq!(fitted.len(), 2);
    for row in &fitted {
        assert!((row.ours[0].upper - row.published[0]).abs() < 1e-9, "{row:?}");
    }
    let residual = |row: &atoll_experiments::reproduce::ComparedRow| {
        (row.ratio - 1.0) / (row.published[1] / row.published[0] - 1.0) - 1.0
    };
    assert!(comparison.rows.iter().all(|row| (row.residual - residual(row)).abs() < 1e-9));
}

#[test]
fn shares_are_compared_with_the_published_ones() {
    let mut arms = all();
    arms.push(counted(3, Operation::Read, 16, "200 migrations", 30.0));
    let comparison = PublishedComparison::try_from_counts(&arms, Published::kiefer_2013()).unwrap();
    assert_eq!(comparison.rates.len(), 6);
    let ours: Vec<f64> = comparison.rates.iter().map(|rate| rate.ours.unwrap()).collect();
    let expected = [80.0, 80.0, 80.0, 80.0, 87.5, 12.5];
    assert!(ours.iter().zip(expected).all(|(ours, it)| (ours - it).abs() < 1e-9), "{ours:?}");
}

#[test]
fn the_cost_of_a_migration_is_for_a_run_of_the_papers_length() {
    let mut arms = all();
    let mut most = counted(3, Operation::Read, 16, "200 migrations", 30.0);
    // One thread, 4096 lines, 4,096,000 accesses; 0.1 more of them miss than without migrations.
    most.accesses = 4_096_000;
    most.misses = 4_096_000 * 3 / 10;
    arms.push(most);
    let comparison = PublishedComparison::try_from_counts(&arms, Published::kiefer_2013()).unwrap();
    let reload = comparison.figures.reload.clone().unwrap();
    assert_eq!(reload.migrations, 200);
    assert!((reload.accesses_per_line - 1000.0).abs() < 1e-9);
    assert!((reload.misses_per_line - 0.5).abs() < 1e-9, "{reload:?}");
    assert!((reload.accesses_per_line_published - 4e9 / 262_144.0).abs() < 1e-6);
    let hits = 1.0 - 0.2 - 0.5 * 200.0 / (4e9 / 262_144.0);
    assert!((reload.hit_rate_at_length_published - hits).abs() < 1e-9);
    let text = text(&comparison);
    for part in ["Table 1", "Figure 2b", "200", "round-robin", "what the caches do not explain"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn arms_that_were_not_run_leave_their_rows_out() {
    let arms: Vec<Counted> = all().into_iter().filter(|it| it.arm.experiment == 2).collect();
    let comparison = PublishedComparison::try_from_counts(&arms, Published::kiefer_2013()).unwrap();
    assert_eq!(comparison.rows.len(), 4);
    assert!(comparison.rates.iter().all(|rate| rate.ours.is_none()));
    assert!(comparison.figures.reload.is_none());
    assert!(!text(&comparison).contains("NaN"));
}
