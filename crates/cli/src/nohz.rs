//! `nohz test` and `nohz stress`: whether the tick of a CPU stops, how long that takes, how often
//! it fails, and what prevents it.

use ::facts::{Facts, Root};
use measure::Spec;
use recording::{NohzSpec, Recording};
use units::{Cpu, Nanos};

use crate::args::{NohzCommand, NohzPlace, Output, Where};
use crate::destination;
use crate::isolating::{kept_free, tell_pick};
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(command: &NohzCommand, output: Output) -> Result<Outcome, Failure> {
    let (place, tries, stay) = match command {
        NohzCommand::Test(test) => (&test.place, Some(1), test.observe),
        NohzCommand::Stress(stress) => (&stress.place, stress.count, Nanos::ZERO),
    };
    let asked = Where { cpus: None, output: place.output.clone() };
    let output = destination::check(asked.destination(), output)?;
    let facts = Facts::read(&Root::live());
    let mut terminal = Terminal::new(output.quiet, None)?;
    let spec = |cpu| {
        let spec = spec(place, cpu, tries, stay);
        match command {
            NohzCommand::Test(_) => Spec::NohzTest(spec),
            NohzCommand::Stress(_) => Spec::NohzStress(spec),
        }
    };
    let pick = isolate::pick(place.cpu, &facts).map_err(|why| {
        measuring::mistake_or(&spec(place.cpu.unwrap_or(Cpu::new(0))), &facts, why)
    })?;
    let (cpu, spec) = (pick.cpu, spec(pick.cpu));
    // Checked before any setting is changed.
    measure::refuse(&spec, &facts)?;
    let claimed = place.claiming.claim_for(&spec, &cpu.into(), output.quiet)?;
    tell_pick(&pick, output.quiet);
    let mut recording =
        kept_free(cpu, place.free.at(place.fifo), &facts, output.quiet, || {
            let control = terminal.control();
            let recording = measure::run(&spec, &facts, &control, &mut terminal);
            terminal.clear();
            Ok(recording?)
        })?;
    claimed.doubt(&mut recording);
    let told =
        measuring::finish(&recording, &asked, output, || report::text(&recording))?;
    Ok(if failed(&recording) { Outcome::Exceeded } else { told })
}

fn spec(place: &NohzPlace, cpu: Cpu, tries: Option<u64>, stay_ns: Nanos) -> NohzSpec {
    NohzSpec {
        cpu,
        tries,
        limit_ns: place.limit,
        forced: place.forced,
        fifo: (place.fifo > 0).then_some(place.fifo),
        stay_ns,
        phases: None,
    }
}

/// Whether the tick failed to stop.
fn failed(recording: &Recording) -> bool {
    let series = recording.body.nohz();
    series.is_some_and(|series| series.tries.iter().any(|tried| !tried.entered))
}
