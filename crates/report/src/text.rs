//! Recordings of all kinds as text for the terminal.

use std::borrow::Cow;

use recording::{Body, Recording};
use summary::Summary;

use crate::text::calls::calls_text;
use crate::text::check::check_text;
use crate::text::guests::guests_text;
use crate::text::imported::imported_text;
use crate::text::jitter::jitter_text;
use crate::text::latency::latency_text;
use crate::text::layout::doubts::doubts;
use crate::text::nohz::{nohz_stress_text, nohz_test_text};
use crate::text::noise::noise_text;
use crate::text::program::program_text;
use crate::text::run::run_text;
use crate::text::slices::slices_text;
use crate::text::ticks::ticks_text;
use crate::text::wakers::wakers_text;

pub(crate) mod calls;
pub(crate) mod cells;
pub(crate) mod check;
pub(crate) mod comparison;
pub(crate) mod explain;
pub(crate) mod facts;
pub(crate) mod guests;
pub(crate) mod history;
pub(crate) mod imported;
pub(crate) mod jitter;
pub(crate) mod latency;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod nohz;
pub(crate) mod noise;
pub(crate) mod program;
pub(crate) mod run;
pub(crate) mod slices;
pub(crate) mod ticks;
pub(crate) mod wakers;

/// The report of a recording with this summary, as printed by the measuring command.
pub fn text(recording: &Recording, summary: &Summary) -> String {
    match recording.printable() {
        Cow::Borrowed(recording) => text_of_printable(recording, summary),
        // Names in the summary have characters that a terminal interprets, too.
        Cow::Owned(changed) => text_of_printable(&changed, &Summary::of(&changed)),
    }
}

fn text_of_printable(recording: &Recording, summary: &Summary) -> String {
    /// The summary as one of that kind; that of another recording is replaced.
    macro_rules! own {
        ($kind:ident) => {{
            let Summary::$kind(own) = summary else {
                debug_assert!(false, "the summary is that of another recording");
                return text_of_printable(recording, &Summary::of(recording));
            };
            own
        }};
    }
    let facts = &recording.facts;
    let text = match &recording.body {
        Body::Ticks { spec, series } => ticks_text(facts, spec, series, own!(Ticks)),
        Body::Check { spec, series } => check_text(recording, spec, series, own!(Check)),
        Body::Noise { spec, series } => noise_text(spec, series, own!(Noise)),
        Body::Calls { series, .. } => calls_text(series, own!(Calls)),
        Body::Latency { spec, .. } => latency_text(facts, spec, own!(Latency)),
        Body::Run { spec, series } => run_text(spec, series, own!(Run)),
        Body::Wakers { spec, .. } => wakers_text(spec, own!(Wakers)),
        Body::NohzTest { .. } => nohz_test_text(own!(NohzTest)),
        Body::NohzStress { .. } => nohz_stress_text(own!(NohzStress)),
        Body::Jitter { spec, series } => jitter_text(facts, spec, series, own!(Jitter)),
        Body::Slices { spec, series } => slices_text(spec, series, own!(Slices)),
        Body::Guests { spec, .. } => guests_text(spec, own!(Guests)),
        Body::Program { .. } => program_text(own!(Program)),
        Body::Imported { spec, series } => {
            imported_text(recording, spec, series, own!(Imported))
        }
    };
    text + &doubts(&recording.doubts)
}

/// The report of a recording, for tests.
#[cfg(test)]
pub(crate) fn text_of(recording: &Recording) -> String {
    text(recording, &Summary::of(recording))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::{self, GUEST, METAL, MUTE, latency as latency_example};
    use crate::text::layout::width::{folded, set_width};

    fn all() -> Vec<Recording> {
        let and_wide = |one: Recording| [one.clone(), example::wide(one)];
        let mut all = Vec::new();
        for (groups, counts) in [(GUEST, &[1, 5, 12][..]), (METAL, &[8]), (MUTE, &[1])] {
            for &count in counts {
                all.push(example::ticks(groups, count, 2));
                all.push(example::noise(groups, count));
                all.push(example::check(groups, count));
                all.push(example::blamed(example::noise(groups, count)));
                all.push(example::blamed(example::check(groups, count)));
                all.push(example::blamed(example::wide(example::noise(groups, count))));
                all.push(example::quiet(example::noise(groups, count)));
                all.push(example::quiet(example::check(groups, count)));
                all.push(example::wide(example::noise(groups, count)));
                all.push(example::wide(example::check(groups, count)));
            }
        }
        all.push(example::calls(GUEST));
        all.push(latency_example::latency(GUEST, 30));
        all.extend([GUEST, METAL].map(example::run));
        all.push(example::wide(latency_example::latency(GUEST, 101)));
        all.extend(and_wide(example::wakers(GUEST, 20)));
        all.extend(and_wide(example::guests(GUEST, 2)));
        all.extend(and_wide(example::jitter(GUEST)));
        all.extend([example::slices(GUEST, true), example::slices(METAL, false)]);
        all.push(example::ticks(GUEST, 101, 2));
        all.push(example::wide(example::noise(GUEST, 101)));
        all.push(example::check(GUEST, 101));
        all
    }

    /// Check that no report is wider than the terminal or has trailing spaces, with one CPU or 101,
    /// with wide numbers, and for a machine without known facts; and that a narrow one has the same
    /// words.
    #[test]
    fn fits_the_terminal() {
        let pages = || {
            [GUEST, METAL, MUTE].map(|groups| crate::facts_text(&example::facts(groups)))
        };
        for columns in [80, 40] {
            set_width(columns);
            for text in all().iter().map(text_of).chain(pages()) {
                let text = folded(&text);
                for line in text.lines() {
                    assert!(line.chars().count() <= columns, "{line}");
                    assert_eq!(line.trim_end(), line);
                }
            }
        }
    }

    /// Check `check` on a guest.
    #[test]
    fn check_on_a_guest() {
        assert_snapshot!(text_of(&example::check(GUEST, 2)), @r#"
        Quiet: 2 CPUs lost 0.156 % of the time: 0.0365 % to other threads (/proc);
        tracing the causes needs root, or CAP_BPF and CAP_PERFMON.
        A job of 1 ms is interrupted with a probability of 25.2 %; the run time of a
        benchmark of 1 s varies by ± 0.167 %; if 1000 such CPUs wait for the slowest
        after each step of 1 ms, a step takes 1.39 ms.

        Machine, recorded at 2026-11-20T06:30:12Z by noisefloor 0.1.0
          kernel      6.12.48+deb13-cloud-amd64, x86_64, Debian GNU/Linux 13 (trixie)
          tick        250 times a second (CONFIG_HZ), stops on idle CPUs only
          CPUs        online 0,1; isolated none; nohz_full none
          preemption  voluntary: at explicit preemption points
          clock       tsc
          hypervisor  KVM, which reports steal time

        Each CPU while idle (2 s), and while a busy loop ran on all of them (10 s)

               idle        busy loop            median  longest  1 ms job
         CPU  ticks  busy      ticks     lost      gap      gap      risk
           0   11/s   1 %      250/s  0.111 %  4.45 µs   5.8 µs    25.1 %
           1   12/s   1 %      250/s  0.200 %  4.51 µs  1.70 ms    25.2 %

        "ticks": timer interrupts. A gap is a period of more than 120 ns in which the
        loop did not run; "lost": the sum of all gaps. "risk": the probability that a
        job of 1 ms, started at a random moment, meets a gap.

        Findings, each with the next command to run
          1. The tick of Linux 6.12.48+deb13-cloud-amd64 interrupts a busy CPU 250 times
             a second (CONFIG_HZ). It stops on idle CPUs only. While idle, CPUs 0,1 have
             11 to 12 timer interrupts a second each. The tick stops while a CPU is
             idle: tickless idle works. While a busy loop runs, CPUs 0,1 have 250 timer
             interrupts a second each. This is HZ (250), as expected of a busy CPU.
             At boot: nohz_full=1 stops it there while one task runs.
             $ noisefloor ticks
          2. 1 boot parameter has no effect. divider=10: belongs to RHEL 5; today idle
             CPUs do not tick, and the rate is CONFIG_HZ.
             At boot: remove it, or set what is named in its place.
             $ noisefloor facts
          3. CPU 1 lost most: 0.200 % of its time, in 250 gaps a second. The median gap
             was 4.51 µs, the longest 1.70 ms. There were 250 timer interrupts a second:
             most gaps are probably timer interrupts. Other programs preempted the loop
             6 times and ran for 7.3 ms; 20.0 ms were lost in total.
             $ sudo noisefloor noise -c 1 -d 60
          4. The most frequent interrupt other than the timer's was virtio1-req.0 (IRQ
             36): 40.2 times a second on CPU 1.
             Now: noisefloor run -c 1 --irqs COMMAND moves it to other CPUs (root).
             $ cat /proc/irq/36/smp_affinity_list
          5. This is a guest of KVM. The hypervisor took 10 ms to 30 ms from CPU 1
             (steal time).
             Cannot be set: steal time depends on the host, not on settings of the
             guest.
             $ vmstat 1 5
          6. No CPU is isolated (isolcpus=, nohz_full=): all programs, interrupts and
             kernel threads may run on every CPU.
             At boot: isolcpus=1 keeps programs off CPU 1.
             $ cat /proc/cmdline
          7. 1 fact about the kernel can be read by root only.
             $ sudo noisefloor check

        Doubts (reasons not to trust a number)
          - 10 s are short for gaps that come once a minute
        "#);
    }

    /// Check `check` on a machine with isolated CPUs and unknown values.
    #[test]
    fn check_with_isolated_cpus() {
        assert_snapshot!(text_of(&example::quiet(example::check(METAL, 8))), @r#"
        8 CPUs lost 0.0452 % of the time; tracing the causes needs root, or CAP_BPF and
        CAP_PERFMON.
        A job of 1 ms is interrupted with a probability of 6.36 %; the run time of a
        benchmark of 1 s varies by ± 0.222 %; if 1000 such CPUs wait for the slowest
        after each step of 1 ms, a step takes 1.17 ms.

        Machine, recorded at 2026-11-20T06:30:12Z by noisefloor 0.1.0
          kernel      6.12.48-rt, x86_64
          tick        1000 times a second (CONFIG_HZ), stops on idle CPUs, and on CPUs
                      2-7 (nohz_full) while a single task runs there
          CPUs        online 0-7; isolated 2-7; nohz_full 2-7
          preemption  rt: at once, even in most critical sections
          clock       tsc
          hypervisor  none (bare metal)

        Each CPU while idle (2 s), and while a busy loop ran on all of them (10 s)

               idle        busy loop             median  longest  1 ms job
         CPU  ticks  busy      ticks      lost      gap      gap      risk
           0   11/s   1 %          ?   0.111 %  4.45 µs   5.8 µs    25.1 %
           1   12/s   1 %      250/s   0.200 %  4.51 µs  1.70 ms    25.2 %
           2   13/s   1 %     1.00/s  0.0124 %  4.12 µs  1.20 ms   0.101 %
           3   14/s   1 %     1.00/s  4.36 ppm  4.18 µs  5.98 µs  0.0906 %
           4   15/s   1 %     1.00/s  0.0124 %  4.24 µs  1.20 ms   0.101 %
           5   11/s   1 %     1.00/s  0.0125 %  4.31 µs  1.20 ms   0.101 %
           6   12/s   1 %     1.00/s  4.55 ppm  4.37 µs  6.17 µs  0.0906 %
           7   13/s   1 %     1.00/s  0.0125 %  4.43 µs  1.20 ms   0.101 %

        "ticks": timer interrupts. A gap is a period of more than 120 ns in which the
        loop did not run; "lost": the sum of all gaps. "risk": the probability that a
        job of 1 ms, started at a random moment, meets a gap.

        Findings, each with the next command to run
          1. The tick of Linux 6.12.48-rt interrupts a busy CPU 1000 times a second
             (CONFIG_HZ). It stops on idle CPUs, and on CPUs 2-7 (nohz_full) while a
             single task runs there. While idle, CPUs 0-7 have 11 to 15 timer interrupts
             a second each. The tick stops while a CPU is idle: tickless idle works.
             While a busy loop runs, CPU 1 has 250 timer interrupts a second. Below HZ
             (1000) although busy: the tick was stopped. CPUs 2-7 have 1.00 timer
             interrupts a second each. Far below HZ (1000) although not idle: nohz_full
             stops the tick.
             Now: it stops on CPUs 2-7 while one task runs there.
             $ sudo noisefloor nohz test
          2. CPU 1 lost most: 0.200 % of its time, in 250 gaps a second. The median gap
             was 4.51 µs, the longest 1.70 ms. There were 250 timer interrupts a second:
             most gaps are probably timer interrupts. Other programs preempted the loop
             6 times and ran for 7.3 ms; 20.0 ms were lost in total.
             $ sudo noisefloor noise -c 1 -d 60
          3. The most frequent interrupt other than the timer's was virtio1-req.0 (IRQ
             36): 40.2 times a second on CPU 1.
             Cannot be set: the kernel sets the affinity of this IRQ itself (a managed
             or per-CPU IRQ).
             $ cat /proc/irq/36/smp_affinity_list
          4. CPUs 2-7 are isolated or nohz_full. Of these, CPU 7 lost most: 0.0125 %; of
             the others, CPU 1 lost most: 0.200 %.
             $ noisefloor noise -c 7 -d 60
          5. 1 fact about the kernel can be read by root only.
             $ sudo noisefloor check

        Doubts (reasons not to trust a number)
          - 10 s are short for gaps that come once a minute
        "#);
    }

    /// Check `check` if nothing is known.
    #[test]
    fn check_on_an_unknown_machine() {
        assert_snapshot!(text_of(&example::quiet(example::check(MUTE, 1))), @r#"
        1 CPU lost 0.111 % of the time; tracing the causes needs root, or CAP_BPF and
        CAP_PERFMON.
        A job of 1 ms is interrupted with a probability of 25.1 %; the run time of a
        benchmark of 1 s varies by ± 0.000335 %; if 1000 such CPUs wait for the slowest
        after each step of 1 ms, a step takes 1.01 ms.

        Machine, recorded at 2026-11-20T06:30:12Z by noisefloor 0.1.0
          kernel      unknown: not read by the version that wrote this recording
          tick        unknown: not read by the version that wrote this recording
          CPUs        online unknown; isolated unknown; nohz_full unknown
          preemption  unknown: not read by the version that wrote this recording
          clock       unknown: not read by the version that wrote this recording
          hypervisor  unknown: not read by the version that wrote this recording

        Each CPU while idle (2 s), and while a busy loop ran on all of them (10 s)

               idle        busy loop            median  longest  1 ms job
         CPU  ticks  busy      ticks     lost      gap      gap      risk
           0   11/s   1 %          ?  0.111 %  4.45 µs   5.8 µs    25.1 %

        "ticks": timer interrupts. A gap is a period of more than 120 ns in which the
        loop did not run; "lost": the sum of all gaps. "risk": the probability that a
        job of 1 ms, started at a random moment, meets a gap.

        Findings, each with the next command to run
          1. The tick rate (CONFIG_HZ) of this kernel is unknown. While idle, CPU 0 has
             11 timer interrupts a second. CONFIG_HZ is unknown: no comparison is
             possible. While a busy loop runs, timer interrupts could not be counted.
             $ noisefloor ticks
          2. CPU 0 lost 0.111 % of its time, in 250 gaps a second. The median gap was
             4.45 µs, the longest 5.8 µs. Other programs did not run.
             $ sudo noisefloor noise -c 0 -d 60
          3. 1 fact about the kernel can be read by root only.
             $ sudo noisefloor check

        Doubts (reasons not to trust a number)
          - 10 s are short for gaps that come once a minute
        "#);
    }

    /// Check `noise` on two CPUs.
    #[test]
    fn noise_on_two_cpus() {
        assert_snapshot!(text_of(&example::noise(GUEST, 2)), @r#"
    OS noise on CPUs 0,1 in 10 s: time that a busy loop lost to interrupts, threads
    and the hypervisor. A gap is a period of more than 120 ns in which the loop did
    not run.

     CPU    noise  gaps  gaps/s   median      p99    p99.9  longest   loop
       0  0.111 %  2499     250  4.45 µs   5.8 µs   5.8 µs   5.8 µs  12 ns
       1  0.200 %  2505     250  4.51 µs  5.86 µs  1.50 ms  1.70 ms  12 ns

    "noise": share of the time in gaps; "median" to "longest": length of the gaps;
    "loop": duration of one loop iteration.

    Probability that a job of this length, started at a random moment, meets a gap

     CPU     1 µs    10 µs  100 µs    1 ms  10 ms
       0  0.136 %  0.361 %  2.61 %  25.1 %  100 %
       1  0.225 %  0.451 %  2.70 %  25.2 %  100 %

    /proc counters during the measurement

                                     CPU 0   CPU 1
      LOC Local timer interrupts     250/s   250/s
       36 virtio1-req.0                  -  40.2/s
      CAL Function call interrupts  3.10/s  3.10/s
     softirq SCHED                   240/s   240/s
     softirq RCU                     110/s   110/s
     softirq TIMER                  60.0/s  60.0/s
     involuntary context switches        0       6
     run queue wait time              0 ns  7.3 ms
     steal time                       0 ns   20 ms

    Doubts (reasons not to trust a number)
      - CPU 1 began 30 ms after the others, so not all of them spun at the same time
    "#);
    }

    /// Check the attribution of noise on two CPUs: of both together, and of each.
    #[test]
    fn noise_that_is_blamed() {
        let text = text_of(&example::blamed(example::noise(GUEST, 2)));
        let begin = text.find("Sources of noise").unwrap();
        let end = text.find("Probability that").unwrap();
        assert_snapshot!(&text[begin..end], @r#"
    Sources of noise, traced with eBPF at kernel tracepoints

     CPU  source                            gaps     time   share  longest
     all  timer    tick_nohz_handler        4998  15.4 ms  49.5 %  4.46 µs
     all  thread   kworker/u513… (4194303)     6  8.72 ms  28.0 %  1.70 ms
     all  softirq  SCHED                    5004  3.50 ms  11.3 %   700 ns
     all           unexplained              5004  3.50 ms  11.3 %   700 ns
       0  timer    tick_nohz_handler        2499  7.62 ms  68.5 %   4.4 µs
       0  softirq  SCHED                    2499  1.75 ms  15.7 %   700 ns
       0           unexplained              2499  1.75 ms  15.7 %   700 ns
       1  thread   kworker/u513… (4194303)     6  8.72 ms  43.6 %  1.70 ms
       1  timer    tick_nohz_handler        2499  7.77 ms  38.9 %  4.46 µs
       1  softirq  SCHED                    2505  1.75 ms  8.77 %   700 ns
       1           unexplained              2505  1.75 ms  8.77 %   700 ns

    "device" and "IPI": interrupts of devices and between CPUs. "time": the part of
    the gaps' time that is attributed to the source; "share": its share of all gaps'
    time. A gap may have several sources.

    CPU 0: 3.4 ms of steal time (read at each tick and context switch). 0 ns of it
    is proven to be in gaps ("steal" above), up to 345 µs more may be in unexplained
    gaps, and at least 3.06 ms is part of the time of threads and interrupts.
    CPU 1: 23.4 ms of steal time (read at each tick and context switch). 0 ns of it
    is proven to be in gaps ("steal" above), up to 345 µs more may be in unexplained
    gaps, and at least 23.1 ms is part of the time of threads and interrupts.

    CPU 0, unexplained: 100 % of its time is in gaps every 4.000 ms (the period of a
    250 Hz timer on the host).
    CPU 1, unexplained: 99.7 % of its time is in gaps every 4.000 ms (the period of
    a 250 Hz timer on the host).

    Time of interrupts before, between and after their tracepoints

     CPU  source                        time    entry   inside  exit
     all  timer   tick_nohz_handler  15.4 ms  3.00 ms  12.4 ms  0 ns

    "entry": before the first tracepoint of a gap: kernel entry and, in a guest,
    delivery of the interrupt by the hypervisor. "inside": between an event's
    tracepoints. "exit": after the event.
    "#);
    }

    /// Check that `check` reports the main sources of noise.
    #[test]
    fn check_that_is_blamed() {
        let text = text_of(&example::blamed(example::check(GUEST, 2)));
        let finding = text.split("  3. ").nth(1).unwrap();
        assert_snapshot!(finding.split("  4. ").next().unwrap(), @r#"
        CPU 1 lost most: 0.200 % of its time, in 250 gaps a second. The median gap
             was 4.51 µs, the longest 1.70 ms. Main sources: thread
             kworker/u513:15-events_unbound (4194303), 8.72 ms (43.6 % of its noise);
             timer tick_nohz_handler, 7.77 ms (38.9 % of its noise); softirq SCHED,
             1.75 ms (8.77 % of its noise). 8.77 % of its noise is unexplained.
             $ sudo noisefloor noise -c 1 -d 60
        "#);
    }

    /// Check that `noise` on many CPUs lists those with the most noise.
    #[test]
    fn noise_on_many_cpus() {
        assert_snapshot!(text_of(&example::noise(GUEST, 30)), @r#"
    OS noise on CPUs 0-29 in 10 s: time that a busy loop lost to interrupts, threads
    and the hypervisor. A gap is a period of more than 120 ns in which the loop did
    not run.

     CPU    noise  gaps  gaps/s   median      p99    p99.9  longest   loop
      29  0.366 %  2511     251  6.22 µs  7.57 µs  2.10 ms  2.30 ms  12 ns
      26  0.361 %  2511     251  6.04 µs  7.39 µs  2.10 ms  2.30 ms  12 ns
      23  0.357 %  2511     251  5.85 µs  7.20 µs  2.10 ms  2.30 ms  12 ns
      20  0.352 %  2511     251  5.67 µs  7.02 µs  2.10 ms  2.30 ms  12 ns
      17  0.348 %  2511     251  5.49 µs  6.84 µs  2.10 ms  2.30 ms  12 ns
      14  0.343 %  2511     251  5.30 µs  6.65 µs  2.10 ms  2.30 ms  12 ns
      11  0.339 %  2511     251  5.12 µs  6.47 µs  2.10 ms  2.30 ms  12 ns
       8  0.334 %  2511     251  4.94 µs  6.29 µs  2.10 ms  2.30 ms  12 ns
       5  0.329 %  2511     251  4.76 µs  6.11 µs  2.10 ms  2.30 ms  12 ns
       2  0.325 %  2511     251  4.57 µs  5.92 µs  2.10 ms  2.30 ms  12 ns
      28  0.241 %  2505     250  6.16 µs  7.51 µs  1.50 ms  1.70 ms  12 ns
      25  0.237 %  2505     250  5.98 µs  7.33 µs  1.50 ms  1.70 ms  12 ns
      22  0.232 %  2505     250  5.79 µs  7.14 µs  1.50 ms  1.70 ms  12 ns
      19  0.227 %  2505     250  5.61 µs  6.96 µs  1.50 ms  1.70 ms  12 ns
      16  0.223 %  2505     250  5.43 µs  6.78 µs  1.50 ms  1.70 ms  12 ns
      13  0.218 %  2505     250  5.24 µs  6.59 µs  1.50 ms  1.70 ms  12 ns
      These CPUs lost most; each of 14 more lost 0.214 % or less (see --json).

    "noise": share of the time in gaps; "median" to "longest": length of the gaps;
    "loop": duration of one loop iteration.

    Probability that a job of this length, started at a random moment, meets a gap

     CPU     1 µs    10 µs  100 µs    1 ms  10 ms
      29  0.391 %  0.617 %  2.88 %  25.5 %  100 %
      26  0.386 %  0.612 %  2.87 %  25.4 %  100 %
      23  0.382 %  0.608 %  2.87 %  25.4 %  100 %
      20  0.377 %  0.603 %  2.86 %  25.4 %  100 %
      17  0.373 %  0.599 %  2.86 %  25.4 %  100 %
      14  0.368 %  0.594 %  2.85 %  25.4 %  100 %
      11  0.364 %  0.590 %  2.85 %  25.4 %  100 %
       8  0.359 %  0.585 %  2.84 %  25.4 %  100 %
       5  0.354 %  0.580 %  2.84 %  25.4 %  100 %
       2  0.350 %  0.576 %  2.84 %  25.4 %  100 %
      28  0.266 %  0.492 %  2.75 %  25.3 %  100 %
      25  0.262 %  0.487 %  2.74 %  25.3 %  100 %
      22  0.257 %  0.483 %  2.74 %  25.3 %  100 %
      19  0.252 %  0.478 %  2.73 %  25.3 %  100 %
      16  0.248 %  0.473 %  2.73 %  25.3 %  100 %
      13  0.243 %  0.469 %  2.72 %  25.3 %  100 %

    /proc counters during the measurement, on the CPUs that lost most

                                     CPU 29   CPU 26   CPU 23   CPU 20
      LOC Local timer interrupts      250/s    250/s    250/s    250/s
       36 virtio1-req.0              80.4/s   80.4/s   80.4/s   80.4/s
      CAL Function call interrupts   3.10/s   3.10/s   3.10/s   3.10/s
     softirq SCHED                    240/s    240/s    240/s    240/s
     softirq RCU                      110/s    110/s    110/s    110/s
     softirq TIMER                   60.0/s   60.0/s   60.0/s   60.0/s
     involuntary context switches        12       12       12       12
     run queue wait time            14.6 ms  14.6 ms  14.6 ms  14.6 ms
     steal time                       40 ms    40 ms    40 ms    40 ms

    Doubts (reasons not to trust a number)
      - CPU 1 began 30 ms after the others, so not all of them spun at the same time
    "#);
    }

    /// Check `ticks` with columns.
    #[test]
    fn ticks_in_columns() {
        assert_snapshot!(text_of(&example::ticks(GUEST, 2, 3)), @r"
    Timer interrupts a second and busy time of each CPU, every 1 s
    Tick: 250 times a second (CONFIG_HZ); stops on idle CPUs only

                         CPU 0             CPU 1
        from     timer    busy     timer    busy
       0.0 s      11/s     1 %     250/s   100 %
       1.0 s      12/s     1 %     251/s   100 %
       2.0 s      13/s     1 %     250/s   100 %

    CPU 1: 250 timer interrupts a second, busy 100 % of the time. This is HZ (250),
    as expected of a busy CPU.
    CPU 0: 12 timer interrupts a second, busy 1 % of the time. The tick stops while
    a CPU is idle: tickless idle works.
    ");
    }

    /// Check `ticks` with cells.
    #[test]
    fn ticks_in_cells() {
        assert_snapshot!(text_of(&example::ticks(METAL, 8, 2)), @r"
    Timer interrupts a second and busy time of each CPU, every 1 s
    Tick: 1000 times a second (CONFIG_HZ); stops on idle CPUs, and on CPUs 2-7
    (nohz_full) while a single task runs there

        from    CPU    timer    busy    CPU    timer    busy    CPU    timer    busy
       0.0 s      0     11/s     1 %      1    250/s   100 %      2     13/s     1 %
                  3    250/s   100 %      4     15/s     1 %      5    250/s   100 %
                  6     17/s     1 %      7        ?       ?
       1.0 s      0     12/s     1 %      1    251/s   100 %      2     14/s     1 %
                  3    251/s   100 %      4     16/s     1 %      5    251/s   100 %
                  6     18/s     1 %      7        ?       ?

    CPU 1: 250 timer interrupts a second, busy 100 % of the time. Below HZ (1000)
    although busy: the tick was stopped.
    CPUs 3,5: 250 timer interrupts a second, busy 100 % of the time. Far below HZ
    (1000) although not idle: nohz_full stops the tick.
    CPUs 0,2,4,6: 11.5 to 17.5 timer interrupts a second, busy 1 % of the time. The
    tick stops while a CPU is idle: tickless idle works.
    CPU 7: an unknown number of timer interrupts. The CPU went online or offline, or
    its counter was reset.
    ");
    }

    /// Check that `ticks` on many CPUs lists those with the most timer interrupts.
    #[test]
    fn ticks_on_many_cpus() {
        assert_snapshot!(text_of(&example::ticks(GUEST, 256, 1)), @r"
    Timer interrupts a second and busy time of each CPU, every 1 s
    Tick: 250 times a second (CONFIG_HZ); stops on idle CPUs only

        from    CPU    timer    busy    CPU    timer    busy    CPU    timer    busy
       0.0 s      1    250/s   100 %      3    250/s   100 %      5    250/s   100 %
                  7    250/s   100 %    240    251/s     1 %    242    253/s     1 %
                244    255/s     1 %    246    257/s     1 %    248    259/s     1 %
                250    261/s     1 %    252    263/s     1 %    254    265/s     1 %
                and 244 CPUs with 250/s or less

    12 CPUs (228,230,232,234,236,238,240,...): 239 to 261 timer interrupts a second,
    busy 1 % of the time. This is HZ (250) although idle: something prevents the
    tick from stopping.
    CPUs 252,254: 263 to 265 timer interrupts a second, busy 1 % of the time. More
    than HZ (250): high-resolution timers of programs add to the tick.
    57 CPUs (114,116,118,120,122,124,126,...): 125 to 237 timer interrupts a second,
    busy 1 % of the time. Below HZ (250), but high for an idle CPU: timers wake it
    often.
    127 CPUs (1,3,5,7,9,11,13,15,17,19,21,...): 250 timer interrupts a second, busy
    100 % of the time. This is HZ (250), as expected of a busy CPU.
    57 CPUs (0,2,4,6,8,10,12,14,16,18,20,...): 11 to 123 timer interrupts a second,
    busy 1 % of the time. The tick stops while a CPU is idle: tickless idle works.
    CPU 255: an unknown number of timer interrupts. The CPU went online or offline,
    or its counter was reset.
    ");
    }
}
