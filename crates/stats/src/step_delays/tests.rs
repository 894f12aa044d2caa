use proptest::prelude::*;

use super::*;

fn span(start: u64, length: u64) -> Span {
    Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
}

fn delays(window: u64, gaps: &[Span], step: u64) -> StepDelays {
    StepDelays::of(span(0, window), gaps, Nanos::from_nanos(step)).unwrap()
}

fn parts(of: &StepDelays) -> Vec<(u64, u64)> {
    of.parts().map(|(delay, starts)| (delay.get(), starts.get())).collect()
}

fn longest(of: &StepDelays, cpus: u64) -> u64 {
    of.mean_of_longest(cpus).unwrap().get()
}

/// Check the delays of steps around one gap, by hand: 10 moments before it, and each moment in it.
#[test]
fn one_gap() {
    let found = delays(100, &[span(40, 8)], 10);
    // In the gap, 1 to 8 remain (taken as 8 to 1); before it, the whole of it.
    let expected =
        [(0, 82), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (8, 11)];
    assert_eq!(parts(&found), expected);
    assert!((found.hit(1).unwrap().get() - 180_000.0).abs() < 1e-6);
    // (8*10 + 36) / 100
    assert_eq!(found.mean(), Some(Nanos::from_nanos(1)));
    assert_eq!((longest(&found, 1), longest(&found, 1_000_000)), (1, 8));
}

/// Check gaps that begin in the time by which others made a step longer, at the window's end, and steps that
/// are longer than the window.
#[test]
fn several_gaps() {
    let found = delays(100, &[span(40, 8), span(50, 20)], 10);
    assert_eq!(parts(&found).last(), Some(&(28, 8 + 1)));
    let around = delays(100, &[span(95, 4)], 10);
    assert_eq!(parts(&around), [(0, 86), (1, 1), (2, 1), (3, 1), (4, 11)]);
    // 96 free in each window: three times all of its gaps, and then as above.
    let long = delays(100, &[span(95, 4)], 3 * 96 + 10);
    assert_eq!(parts(&long), [(12, 86), (13, 1), (14, 1), (15, 1), (16, 11)]);
}

/// Check windows without gaps, without free time and without length, and steps without length.
#[test]
fn degenerate() {
    let quiet = delays(100, &[], 10);
    assert_eq!((parts(&quiet), longest(&quiet, 1 << 40)), (vec![(0, 100)], 0));
    assert_eq!(quiet.hit(1_000), Some(Ppm::new(0.0)));
    let of = |window, gaps: &[Span], step| {
        StepDelays::of(span(0, window), gaps, Nanos::from_nanos(step))
    };
    assert_eq!(of(100, &[span(0, 100)], 10), None);
    assert_eq!(of(0, &[], 10), None);
    assert_eq!(of(100, &[], 0), None);
    let none = StepDelays::default();
    assert_eq!((none.mean(), none.hit(2), none.mean_of_longest(3)), (None, None, None));
}

/// Check the bounds against known values: H(64) = 4.744 and H(1024) = 7.509; that the longest of two is that of
/// the definition; and that probabilities add up.
#[test]
fn bounds() {
    for (number, expected) in
        [(1.0, 1.0), (2.0, 1.5), (64.0, 4.744), (1024.0, 7.509), (16384.0, 10.281)]
    {
        assert!((harmonic(number) - expected).abs() < 1e-3, "{number}");
    }
    let found =
        StepDelays::from_parts([(0, 3), (1_000, 1)].map(|(delay, starts)| {
            (Nanos::from_nanos(delay), Nanos::from_nanos(starts))
        }));
    // 1 - (3/4)^2
    assert_eq!(longest(&found, 2), 438);
    assert_eq!(found.hit(2), Some(Ppm::new(437_500.0)));
    assert_eq!(found.exponential_longest(4), Some(Nanos::from_nanos(1_000)));
    assert_eq!(found.exponential_longest(8), Some(Nanos::from_nanos(1_500)));
}

/// Check the numbers of the research notes: noise of 2.5 %, a phase of 1 ms, independent CPUs.
#[test]
fn periodic_noise() {
    for (hz, length, expected) in [
        (1_000, 25, [25_900, 47_600, 50_000]),
        (100, 250, [28_100, 249_900, 250_000]),
        (10, 2_500, [56_200, 1_851_000, 2_500_000]),
    ] {
        let period = 1_000_000_000 / hz;
        let gaps: Vec<Span> =
            (0..hz).map(|at| span(at * period, length * 1_000)).collect();
        let found = delays(1_000_000_000, &gaps, 1_000_000);
        for (cpus, expected) in [1, 64, 1 << 20].into_iter().zip(expected) {
            let of = longest(&found, cpus) as f64;
            assert!((of / f64::from(expected) - 1.0).abs() < 0.03, "{hz}, {cpus}: {of}");
        }
    }
}

fn overlap(gaps: &[Span]) -> bool {
    gaps.windows(2).any(|pair| pair[0].end() >= pair[1].start)
}

proptest! {
    /// Compare with steps begun at each moment, with gaps in any order that overlap and exceed the window.
    #[test]
    fn as_brute_force(
        gaps in prop::collection::vec((0u64..120, 0u64..8), 0..12),
        window in 1u64..100,
        step in 1u64..150,
    ) {
        let gaps: Vec<Span> = gaps.into_iter().map(|(start, length)| span(start, length)).collect();
        let is_gap = |at: u64| gaps.iter().any(|gap| (gap.start.get()..gap.end().get()).contains(&at));
        let within = |at: u64| is_gap(at % window);
        let of = StepDelays::of(span(0, window), &gaps, Nanos::from_nanos(step));
        // The origin has no meaning.
        let later: Vec<Span> =
            gaps.iter().map(|gap| span(gap.start.get() + 7, gap.length.get())).collect();
        let moved = StepDelays::of(span(7, window), &later, Nanos::from_nanos(step));
        prop_assert_eq!(&of, &moved);
        if (0..window).all(within) {
            prop_assert_eq!(of, None);
            return Ok(());
        }
        let mut expected = std::collections::BTreeMap::new();
        let mut sum = 0;
        for start in 0..window {
            let (mut at, mut done) = (start, 0);
            while done < step {
                done += u64::from(!within(at));
                at += 1;
            }
            let delay = at - start - step;
            *expected.entry(index(delay)).or_insert(0) += 1;
            sum += delay;
        }
        let of = of.unwrap();
        prop_assert_eq!(of.time().get(), window);
        // Moments are points of a line here, and steps of it there: each gap has two ends.
        if of.longest().unwrap().get() < 64 && !overlap(&gaps) {
            let count = |delay: u64| *expected.get(&index(delay)).unwrap_or(&0);
            for (delay, starts) in parts(&of) {
                let most = 2 * gaps.len() as u64 + 1;
                prop_assert!(starts.abs_diff(count(delay)) <= most, "{} {}", delay, starts);
            }
        }
        let mean = of.parts().map(|(delay, starts)| delay.get() * starts.get()).sum::<u64>();
        let ends = (gaps.len() as u64 + 1) * 8;
        prop_assert!(mean.abs_diff(sum) <= window + ends + mean / 16, "{} {}", mean, sum);
    }
}
