use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use recording::{Algorithm, Pattern};

use super::{base, nanos, program, span, trace, with, with_parts};
use crate::ranks::cpus::Cpus;
use crate::ranks::{Assigned, Program, Trace};

fn any_program() -> impl Strategy<Value = Program> {
    let pattern = prop::sample::select(Pattern::ALL);
    let algorithm = prop::sample::select(Algorithm::ALL);
    let sizes = (1u64..40, 1u64..4, 1u64..60, 0u64..8, 1u64..80);
    (pattern, algorithm, sizes).prop_map(
        |(pattern, algorithm, (compute, steps, bytes, gap, eager))| {
            let mut program = program(pattern);
            program.algorithm = Some(algorithm);
            (program.compute, program.steps, program.bytes) =
                (nanos(compute), steps, bytes);
            program.network.gap_ns = nanos(gap);
            program.network.byte_gap_ns = nanos(gap / 4);
            program.network.byte_overhead_ns = nanos(gap % 2);
            program.network.eager_bytes = eager;
            program
        },
    )
}

fn without_waiting(mut program: Program) -> Program {
    program.network.eager_bytes = program.bytes;
    program
}

type Detours = Vec<(u64, u64)>;

fn any_detours() -> impl Strategy<Value = Detours> {
    prop::collection::vec((0u64..200, 0u64..12), 0..8)
}

fn traces(all: &[Detours]) -> Vec<Trace> {
    // Longer than all detours.
    all.iter().map(|detours| trace(300, detours)).collect()
}

proptest! {
    /// Compare the end of each of several parts of work, after pauses, with a count of single moments; the free
    /// moments in between are as many as the work.
    #[test]
    fn time_is_conserved(
        detours in any_detours(),
        window in 60u64..250,
        phase in 0u64..250,
        parts in prop::collection::vec((0u64..300, 1u64..300), 1..6),
    ) {
        let spans = detours.iter().map(|(start, length)| span(*start, *length));
        let Some(trace) = Trace::new(nanos(window), spans) else { return Ok(()) };
        let is_detour = |at: u64| {
            let at = (at + phase) % window;
            detours.iter().any(|(start, length)| (*start..start + length).contains(&at))
        };
        let noise = trace.detours().map(|detour| detour.length.get()).sum::<u64>();
        prop_assert_eq!(noise, (0..window).filter(|at| is_detour(at + window - phase % window)).count() as u64);
        let (mut place, _) = trace.begin(0, nanos(phase));
        let mut at = 0;
        for (pause, work) in parts {
            at += pause;
            let from = i64::try_from(at).unwrap();
            let (end, next) = trace.finish(&mut place, from, i64::try_from(work).unwrap());
            let [end, next] = [end, next].map(i64::unsigned_abs);
            let (mut expected, mut done) = (at, 0);
            while done < work {
                done += u64::from(!is_detour(expected));
                expected += 1;
            }
            let count = (at..expected).filter(|at| !is_detour(*at)).count() as u64;
            prop_assert_eq!((end, count), (expected, work));
            // The next detour does not begin before it.
            prop_assert!(next >= end);
            prop_assert!((end..next.min(end + 600)).all(|at| !is_detour(at)));
            at = expected;
        }
    }

    /// Compare the end of work, after pauses, of a CPU with two traces with a count of single moments in which
    /// each detour begins at its moment, and is done before any work.
    #[test]
    fn time_of_two_traces_is_conserved(
        all in prop::collection::vec(prop::collection::vec((0u64..200, 1u64..12), 0..5), 2),
        phases in prop::collection::vec(0u64..300, 2),
        parts in prop::collection::vec((0u64..300, 1u64..300), 1..6),
    ) {
        let traces = traces(&all);
        let mut cpus = Cpus::each(&[0, 1].map(|part| (&traces[part..=part], nanos(phases[part]))));
        let (mut at, mut now, mut pending) = (0, 0, 0);
        let mut is_first = true;
        let mut arrives = |now: u64| -> u64 {
            let of = |(trace, phase): (&Trace, &u64)| -> u64 {
                let at = (now + phase) % 300;
                let begun = trace.detours().filter(|one| one.start.get() == at);
                let begun: u64 = begun.map(|one| one.length.get()).sum();
                let inside = trace.detours().find(|one| one.start.get() < at && at < one.end().get());
                let rest = inside.map_or(0, |one| one.end().get() - at);
                begun + if is_first { rest } else { 0 }
            };
            let sum = traces.iter().zip(&phases).map(of).sum();
            is_first = false;
            sum
        };
        for (pause, work) in parts {
            let from = at + pause;
            let mut done = 0;
            while done < work {
                pending += arrives(now);
                let is_free = pending == 0;
                pending = pending.saturating_sub(1);
                done += u64::from(is_free && now >= from);
                now += 1;
            }
            at = cpus.busy(0, i64::try_from(from).unwrap(), i64::try_from(work).unwrap()).unsigned_abs();
            prop_assert_eq!(at, now);
        }
    }

    /// Check that it does not matter which trace is the first, and that one without detours changes nothing.
    #[test]
    fn order_of_traces(
        program in any_program(),
        (own, common) in (1usize..9).prop_flat_map(|ranks| {
            let some = || prop::collection::vec(any_detours(), ranks);
            (some(), some())
        }),
    ) {
        let (own, common) = (traces(&own), traces(&common));
        let both = with_parts(&program, &[&own, &common]);
        prop_assert_eq!(with_parts(&program, &[&common, &own]), both);
        let none = vec![trace(300, &[]); own.len()];
        prop_assert_eq!(with_parts(&program, &[&own, &none]), with(&program, &own));
        prop_assert_eq!(with_parts(&program, &[&none, &own]), with(&program, &own));
    }

    /// Check that another detour of any rank never ends a run earlier. It can where senders wait for neighbours
    /// that receive in the order of arrival: another order releases some of them earlier.
    #[test]
    fn noise_is_never_faster(
        program in any_program().prop_map(|program| match program.pattern {
            Pattern::Halo2d | Pattern::Halo3d => without_waiting(program),
            Pattern::Bsp | Pattern::Allreduce | Pattern::Pipeline => program,
        }),
        all in prop::collection::vec(any_detours(), 1..9),
        (rank, more) in (0usize..9, (0u64..200, 1u64..40)),
    ) {
        let before = with(&program, &traces(&all));
        let mut all = all;
        let rank = rank % all.len();
        all[rank].push(more);
        prop_assert!(with(&program, &traces(&all)) >= before);
        prop_assert!(before >= base(&program, all.len()));
    }

    /// Check that ranks can be exchanged: all with the same noise in any order; neighbours in a ring or in a
    /// round with theirs.
    #[test]
    fn permutations(
        program in any_program(),
        all in prop::collection::vec(any_detours(), 8),
        by in 0usize..8,
    ) {
        let own = with(&program, &traces(&all));
        let mut moved = all.clone();
        match (program.pattern, program.algorithm) {
            (Pattern::Bsp, _) | (Pattern::Allreduce, Some(Algorithm::Ring | Algorithm::Dissemination)) => {
                moved.rotate_left(by);
            }
            (Pattern::Allreduce, Some(Algorithm::RecursiveDoubling)) => {
                moved = (0..8).map(|rank| all[rank ^ by].clone()).collect();
            }
            _ => return Ok(()),
        }
        prop_assert_eq!(own, with(&program, &traces(&moved)));
    }

    /// Check that a trace without detours is as none at all, and that ranks with one trace and one moment are as
    /// the same CPU for all of them.
    #[test]
    fn equal_noise(program in any_program(), detours in any_detours(), ranks in 1usize..9, seed: u64) {
        let quiet = vec![trace(300, &[]); ranks];
        prop_assert_eq!(with(&program, &quiet), base(&program, ranks));
        let machines = [vec![trace(300, &detours)]];
        let noise = |ranks_per_node, coscheduled| {
            let noise = Assigned { machines: &machines, ranks_per_node, coscheduled, seed };
            program.run(ranks, &[noise], &AtomicBool::new(false))
        };
        // All on one node, or each on its own.
        let common = Assigned { machines: &machines, ranks_per_node: 1, coscheduled: true, seed };
        let moment = common.of_rank(0).1;
        prop_assert!((0..ranks as u64).all(|rank| common.of_rank(rank).1 == moment));
        prop_assert_eq!(noise(1, true), noise(1, true));
        let node = Assigned { ranks_per_node: ranks as u64, coscheduled: false, ..common };
        let first = node.of_rank(0).1;
        prop_assert!((0..ranks as u64).all(|rank| node.of_rank(rank).1 == first));
    }
}
