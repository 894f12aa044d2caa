//! `latency`: timer wake-up latency.

use recording::LatencySpec;
use recording::Spec;
use session::{Access, Plan};
use stats::Limits;
use units::CpuSet;

use crate::args::{LatencyArgs, Output};
use crate::isolating::Free;
use crate::measuring;
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &LatencyArgs, output: Output) -> Result<Outcome, Failure> {
    let output = output.beside(args.place.destination())?;
    let plan = Plan::choose(args.place.cpus.as_ref(), |cpus, _| spec(args, cpus))?;
    let isolation = Some(Free::from(args.kept_off).options());
    let plan = Plan { access: Access::Shared, isolation, ..plan };
    let recording = measuring::measure(plan, output)?;
    let text = || report::text(&recording);
    let outcome = measuring::finish(&recording, &args.place, output, text)?;
    let limits = Limits { late: args.max_late, ..Limits::default() };
    Ok(measuring::judge(outcome, &recording, limits))
}

fn spec(args: &LatencyArgs, cpus: CpuSet) -> Spec {
    Spec::Latency(LatencySpec {
        cpus,
        interval_ns: args.interval,
        duration_ns: args.duration,
        timer: args.timer.of_recording(),
        fifo: args.fifo,
    })
}
