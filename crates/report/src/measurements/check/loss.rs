//! The finding about the CPU that lost most, in words: how much, and the causes as far as they are
//! known.

use advise::{Loss, TimerShare};
use recording::CulpritKind;
use summary::CulpritSummary;
use units::{Nanos, Ppm};

use crate::document::text::{Text, text};
use crate::kernel_facts::value::hypervisor;
use crate::measurements::noise::culprits::{name, of_kind};
use crate::number::{self, ShareUnit};

/// A smaller share of the noise is reported as less than 1 %.
const LITTLE: Ppm = Ppm::new(10_000.0);

/// The time that the worst CPU lost, and its causes as far as they are known.
pub(crate) fn loss(loss: &Loss) -> Text {
    if loss.gaps == 0 {
        return text!(
            "No time was lost in {}: the loop ran without a gap.",
            loss.elapsed_ns
        );
    }
    text!(
        "CPU {} lost {}{} of its time, in {} gaps a second. The median gap was {}, the longest {}. \
         {}",
        loss.cpu,
        if loss.cpus > 1 { "most: " } else { "" },
        number::known(loss.noise_ppm),
        number::known(loss.gaps_hz),
        number::any(loss.gap_ns_p50),
        number::any(loss.gap_ns_max),
        if loss.culprits.is_empty() { counted(loss) } else { sources(loss) },
    )
}

/// The largest sources of a CPU's noise, and what is unexplained.
fn sources(loss: &Loss) -> Text {
    let unit = ShareUnit::of(loss.culprits.iter().map(|culprit| culprit.noise_ppm));
    let sources = loss.culprits.iter().map(|culprit| source(culprit, unit));
    let unexplained = match loss.unexplained_ppm {
        Some(part) if part == Ppm::new(0.0) => "All of its noise is explained.".into(),
        Some(part) if part < LITTLE => {
            "Less than 1 % of its noise is unexplained.".into()
        }
        part => {
            text!("{} of its noise is unexplained.", number::known(part))
        }
    };
    let guest = loss.hypervisor.as_ref().map(|name| {
        text!(
            " This is a guest of {}: the hypervisor's own work leaves no event, so it may be part \
             of the unexplained time.",
            hypervisor(name)
        )
    });
    text!("Main sources: {}. {}{}", Text::join(sources, "; "), unexplained, guest)
}

fn source(culprit: &CulpritSummary, unit: ShareUnit) -> Text {
    let name = match culprit.kind == CulpritKind::Steal {
        true => "the hypervisor (steal)".into(),
        false => of_kind(culprit.kind, name(culprit)),
    };
    text!("{}, {} ({} of its noise)", name, culprit.ns, unit.known(culprit.noise_ppm))
}

/// The probable causes according to the totals of `/proc`, if events were not traced.
fn counted(loss: &Loss) -> Text {
    let programs = programs(loss);
    if loss.mostly_programs {
        return text!(
            "Most of the lost time went to other programs, which {}.",
            programs
        );
    }
    let timer = loss.timer_share.map(|share| {
        let share = match share {
            TimerShare::MoreThanGaps => {
                "more timer interrupts than gaps, so some caused no gap"
            }
            TimerShare::Most => "most gaps are probably timer interrupts",
            TimerShare::Half => "about half of the gaps are probably timer interrupts",
            TimerShare::Few => "most gaps have other causes",
        };
        let timer = number::known(loss.timer_hz);
        text!("There were {} timer interrupts a second: {}. ", timer, share)
    });
    text!("{}Other programs {}.", timer, programs)
}

/// How often and how long other programs ran, as the predicate of a sentence.
fn programs(loss: &Loss) -> Text {
    let times = match loss.preempted {
        1 => "once".into(),
        count => text!("{} times", count),
    };
    match loss.waited_ns {
        None | Some(Nanos::ZERO) if loss.preempted == 0 => "did not run".into(),
        Some(ran) => text!(
            "preempted the loop {} and ran for {}; {} were lost in total",
            times,
            ran,
            loss.noise_ns
        ),
        None => {
            text!("preempted the loop {}; this kernel does not count for how long", times)
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::{CpuNoise, CulpritKind as Kind};

    use super::*;
    use crate::example::{self, GUEST, METAL};
    use crate::measurements::check::findings::tests::{finding, noisy};

    /// Check that time lost mostly to other programs is reported, and that a kernel that does not
    /// count it differs from one without such a loss.
    #[test]
    fn other_programs() {
        let others = noisy(|cpu| cpu.proc.waited_ns = Some(Nanos::from_millis(19)));
        let text = finding(&others, "loss");
        assert!(text.contains("Most of the lost time went to other programs"), "{text}");
        let uncounted = noisy(|cpu| cpu.proc.waited_ns = None);
        assert!(finding(&uncounted, "loss").contains("does not count"));
        let none = noisy(|cpu| {
            (cpu.proc.preempted, cpu.proc.waited_ns) = (0, Some(Nanos::ZERO));
        });
        assert!(finding(&none, "loss").contains("Other programs did not run"));
    }

    /// Check how the rate of timer interrupts is compared with that of gaps.
    #[test]
    fn timer_against_gaps() {
        let timer = |count| {
            noisy(move |cpu| {
                let lines = cpu.proc.interrupts.iter_mut().flatten();
                lines.filter(|line| line.timer).for_each(|line| line.count = count);
            })
        };
        for (count, words) in [
            (2_500, "most gaps are probably timer interrupts"),
            (1_200, "about half of the gaps"),
            (50, "most gaps have other causes"),
            (25_000, "more timer interrupts than gaps"),
        ] {
            let text = finding(&timer(count), "loss");
            assert!(text.contains(words), "{count}: {text}");
        }
    }

    /// Check that a run without a gap is reported as such.
    #[test]
    fn silence() {
        let text = finding(&noisy(|cpu| cpu.gaps.clear()), "loss");
        assert_eq!(text, "No time was lost in 10 s: the loop ran without a gap.");
    }

    /// Check that the hypervisor is reported beside unexplained time only in a guest, if that is a
    /// tenth of the noise and 100 ppm of the time, and that a small share has no number.
    #[test]
    fn unexplained_in_a_guest() {
        let with = |groups: &str, unexplained: u64, change: fn(&mut CpuNoise)| {
            let mut recording = example::blamed(example::check(groups, 2));
            let noise = recording.body.noise_mut().unwrap();
            for cpu in &mut noise.cpus {
                change(cpu);
                let blamed = cpu.blamed.as_mut().unwrap();
                for share in &mut blamed.shares {
                    let is_it = blamed.culprits[share.culprit].kind == Kind::Unexplained;
                    share.ns = Nanos::from_nanos(if is_it { unexplained } else { 700 });
                }
            }
            finding(&recording, "loss")
        };
        let words = "the hypervisor's own work leaves no event";
        assert!(with(GUEST, 1_400, |_| ()).contains(words));
        assert!(!with(METAL, 1_400, |_| ()).contains(words));
        assert!(!with(GUEST, 100, |_| ()).contains(words));
        let long = |cpu: &mut CpuNoise| cpu.elapsed_ns = Nanos::from_secs(1_000);
        assert!(!with(GUEST, 1_400, long).contains(words));
        let little = with(GUEST, 1, |_| ());
        assert!(
            little.contains("Less than 1 % of its noise is unexplained."),
            "{little}"
        );
    }
}
