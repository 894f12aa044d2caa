//! `nohz test` and `nohz stress`: whether the tick of a CPU stops, how long that takes, how often
//! it fails, and what prevents it.

use recording::{Body, NohzSpec, Recording, Spec};
use session::Plan;
use units::{Cpu, Nanos};

use crate::args::{NohzCommand, NohzPlace, Output, Where};
use crate::isolating::tell_pick;
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(command: &NohzCommand, output: Output) -> Result<Outcome, Failure> {
    let (place, tries, stay) = match command {
        NohzCommand::Test(test) => (&test.place, Some(1), test.observe),
        NohzCommand::Stress(stress) => (&stress.place, stress.count, Nanos::ZERO),
    };
    let asked = Where { cpus: None, output: place.output.clone() };
    let output = output.beside(asked.destination())?;
    let mut terminal = Terminal::new(output.quiet, None)?;
    let spec = |cpu| {
        let spec = spec(place, cpu, tries, stay);
        match command {
            NohzCommand::Test(_) => Spec::NohzTest(spec),
            NohzCommand::Stress(_) => Spec::NohzStress(spec),
        }
    };
    let (pick, plan) = Plan::pick(place.cpu, spec)?;
    let (access, isolation) = (place.claiming.access(), place.free.at(place.fifo));
    let isolation = Some(isolation.options());
    let plan = Plan { access, isolation, ..plan };
    let claimed = plan.claim(&mut terminal)?;
    tell_pick(&pick, output.quiet);
    let recording = claimed.run(&terminal.control(), &mut terminal)?;
    let text = || report::text(&recording);
    let outcome = measuring::finish(&recording, &asked, output, text)?;
    Ok(if failed(&recording) { Outcome::Exceeded } else { outcome })
}

fn spec(place: &NohzPlace, cpu: Cpu, tries: Option<u64>, observe_ns: Nanos) -> NohzSpec {
    NohzSpec {
        cpu,
        tries,
        limit_ns: place.limit,
        forced: place.forced,
        fifo: (place.fifo > 0).then_some(place.fifo),
        observe_ns,
        phases: None,
    }
}

/// Whether the tick failed to stop.
fn failed(recording: &Recording) -> bool {
    let (Body::NohzTest { series, .. } | Body::NohzStress { series, .. }) =
        &recording.body
    else {
        return false;
    };
    series.tries.iter().any(|tried| !tried.entered)
}
