//! `advise --isolate`: which CPUs to isolate, and all that has to be set for them.

use ::advise::{IsolationPlan, Machine, NearDevice};
use ::facts::Root;
use ::report::PlannedMachine;
use recording::Recording;

use crate::args::Output;
use crate::command::advise::{AdviseArgs, Basis};
use crate::destination::Destination;
use crate::measured::Measured;
use crate::outcome::{Failure, Outcome};
use crate::reporting::{none, show};

#[derive(Debug, clap::Args)]
pub(crate) struct IsolationArgs {
    /// Plan the isolation of N CPUs: which ones (by topology, interrupts that cannot be moved, and with --from by
    /// noise), boot parameters, settings at run time, and the proof. Nothing is measured or changed.
    #[arg(
        long,
        help_heading = "Isolated CPUs",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["cpus", "config", "fail_on", "goal"],
    )]
    pub(crate) isolate: Option<u32>,
    /// Choose CPUs on the NUMA node of a device: a network interface, a disk, a GPU (card0), or a PCI address.
    #[arg(
        long,
        help_heading = "Isolated CPUs",
        value_name = "DEVICE",
        requires = "isolate",
        conflicts_with = "from"
    )]
    pub(crate) near: Option<String>,
}

/// Prints the plan.
pub(crate) fn run(
    args: &AdviseArgs,
    wanted: u32,
    basis: Basis,
    output: Output,
    files: &[Destination<'_>],
) -> Result<Outcome, Failure> {
    let near = args.isolation.near.as_deref().map(|name| near(args, name)).transpose()?;
    let Basis { facts, measured, mut doubts } = basis;
    let summary = measured.as_ref().map(Measured::summary);
    doubts.extend(Machine::new(&facts, None, None).doubts());
    let wanted = usize::try_from(wanted).map_err(Failure::bug)?;
    let plan = IsolationPlan::of(&facts, summary, wanted, near);
    let machine = PlannedMachine { facts: &facts, plan: &plan, doubts: &doubts };
    let (taken, tool) = (Recording::moment(), Recording::TOOL);
    let json = || ::report::isolation_plan_json(&machine, &taken, tool);
    show(output, files, json, || ::report::isolation_plan_document(&machine), none)?;
    Ok(if plan.choice.is_some() { Outcome::Done } else { Outcome::Refused })
}

/// The device, on this machine or on that of the tree.
fn near(args: &AdviseArgs, name: &str) -> Result<NearDevice, Failure> {
    let root = match &args.root {
        Some(dir) => Root::directory(dir)?,
        None => Root::live(),
    };
    let shown = units::printable(name).into_owned();
    let place = ::facts::near(&root, name).map_err(|unknown| {
        let hint = "hint: a network interface, a disk, a GPU, or a PCI address";
        Failure::usage(format!("failed to find {shown}: {unknown}; {hint}"))
    });
    Ok(NearDevice::new(shown.clone(), place?))
}
