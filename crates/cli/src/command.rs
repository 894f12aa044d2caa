//! The command line: one definition, from which help texts, errors, man pages and completions are
//! generated. Each command has a file: its options, the session, the report and the exit code.

mod advise;
mod check;
mod compare;
mod export;
mod exporter;
mod facts;
mod fleet;
mod generate;
mod guests;
mod history;
mod jitter;
mod latency;
mod measurement;
mod nohz;
mod noise;
mod repeat;
mod report;
mod restore;
mod run;
mod scale;
mod sim;
mod slices;
mod ticks;
mod top;
mod r#try;
mod wakers;
mod watch;

use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};

use crate::args::Output;
use crate::command::advise::AdviseArgs;
use crate::command::check::CheckArgs;
use crate::command::compare::CompareArgs;
use crate::command::export::ExportArgs;
use crate::command::exporter::ExporterArgs;
use crate::command::facts::FactsArgs;
use crate::command::fleet::FleetArgs;
use crate::command::generate::GenerateArgs;
use crate::command::guests::GuestsArgs;
use crate::command::history::HistoryArgs;
use crate::command::jitter::JitterArgs;
use crate::command::latency::LatencyArgs;
use crate::command::nohz::{NohzCommand, NohzPlace, NohzStressArgs, NohzTestArgs};
use crate::command::noise::NoiseArgs;
use crate::command::repeat::RepeatArgs;
use crate::command::report::ReportArgs;
use crate::command::run::RunArgs;
use crate::command::scale::ScaleArgs;
use crate::command::sim::SimCommand;
use crate::command::slices::SlicesArgs;
use crate::command::ticks::TicksArgs;
use crate::command::top::TopArgs;
use crate::command::r#try::TryArgs;
use crate::command::wakers::WakersArgs;
use crate::command::watch::WatchArgs;
use crate::lab;
use crate::lab::args::LabCommand;
use crate::outcome::{Failure, Outcome};
use crate::saved;

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  a limit was exceeded, a condition of compare --fail-if or --fail-if-worse
     holds, a repeated program failed, a lab cell failed, or a kernel does not
     build
  2  usage error, or unreadable input file
  3  not supported on this machine, or insufficient privileges
  4  measurement incomplete or unreliable; see the warnings
  70 internal error (bug)
With lab check --source: 125 if the source does not build or boot; 128 + N
instead of 2, 3, 4 and 70.";

/// The commands whose recordings can be repeated.
const MEASUREMENTS: &str = "check, noise, ticks, latency, jitter, slices, wakers, guests, nohz test, \
                        nohz stress or run";

/// Measure OS noise and scheduling jitter on Linux, attribute it to its sources, isolate CPUs
/// reversibly, and compare kernels exactly.
///
/// Without a command, `noisefloor check` is run.
#[derive(Debug, Parser)]
#[command(name = "noisefloor", version, after_help = EXIT_CODES, max_term_width = 80)]
#[command(styles = Styles::plain(), disable_help_subcommand = true)]
#[command(override_usage = "noisefloor [OPTIONS] [COMMAND]")]
pub(crate) struct Args {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Output options.
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Overview of this machine: settings, OS noise, its sources, what to do next.
    ///
    /// Counts timer interrupts while noisefloor sleeps, then runs a busy loop on all CPUs at once
    /// and records every gap. Takes about 12 seconds and changes no setting.
    #[command(after_help = "\
Examples:
  sudo noisefloor check                    # with the causes
  sudo noisefloor check --full             # all of the report
  sudo noisefloor check -o check.html      # also as a page with pictures
  noisefloor check --max-noise-ppm 5000 --max-gap 1ms   # exit code 1 if noisy
  srun noisefloor check -q -o out/%h.json               # a file for each host")]
    Check(CheckArgs),
    /// What to change for a goal, why, and at what price.
    ///
    /// Compares settings, boot parameters, the kernel's configuration, and a check of 8 seconds with rules for
    /// this kernel. Rules that act on measured noise come first. Changes no setting, except with --prove and for
    /// a COMMAND; then all are restored.
    #[command(after_help = "\
Examples:
  sudo noisefloor advise
  sudo noisefloor advise --prove --budget 10m   # measured gains instead of expected ones
  sudo noisefloor advise --goal realtime -c 2-3 --full
  noisefloor advise --from check.json --goal benchmark
  noisefloor advise --isolate 4 --near eth0
  sudo noisefloor advise -- ./bench   # what makes its run times differ, and what helps
  noisefloor advise --config /boot/config-6.12.0 --goal vm-guest --fail-on important
  sudo noisefloor advise --emit systemd files      # files that make the changes last
  noisefloor advise --verify files                 # which of them are in force")]
    Advise(AdviseArgs),
    /// Kernel settings, each with the file it was read from.
    #[command(after_help = "\
Examples:
  noisefloor facts
  sudo noisefloor facts --json
  sudo noisefloor facts -o facts.md   # as Markdown, for a report of a bug
  noisefloor facts --record tree   # copy the files read, to send or to compare
  noisefloor facts --root tree     # read that copy instead of this machine")]
    Facts(FactsArgs),
    /// Timer interrupts per second on each CPU, live, beside CONFIG_HZ.
    #[command(after_help = "\
Example: five seconds of CPUs 0 to 3
  noisefloor ticks -n 5 -c 0-3")]
    Ticks(TicksArgs),
    /// OS noise: time a busy loop loses to interrupts, threads and the hypervisor.
    ///
    /// One thread per CPU reads the time stamp counter in a loop. If two readings are further
    /// apart than an ordinary iteration, something else used the CPU: a gap.
    #[command(after_help = "\
Examples:
  noisefloor noise -c 1 -d 60
  sudo noisefloor noise -d 60 -o noise.json -o noise.html
  sudo noisefloor noise -c 3 --fifo 50 --unthrottled --max-gap 50us
  sudo noisefloor noise -d 1h --stop-above 50us --trace gap.json")]
    Noise(NoiseArgs),
    /// Variation of a workload's run time on one CPU.
    ///
    /// Runs a workload repeatedly, as a real-time task. The jitter of a test is the time of its
    /// slowest loop minus that of its fastest. The short options are those of Intel's tif_jitter,
    /// so -h is not help.
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  sudo noisefloor jitter                       # 20 seconds of TIF's workload
  sudo noisefloor jitter -a 3 -d1 -H my.hgrm   # a minute, for HdrHistogram's plots
  sudo noisefloor jitter -t 100 --workload memory:64M
  noisefloor jitter --fifo 0 --workload exec:./mine.so
  sudo noisefloor jitter -D 1 --stop-above 20us --keep 10"
    )]
    Jitter(JitterArgs),
    /// Timer wake-up latency.
    ///
    /// One thread per CPU sleeps until a fixed time in each interval, and reads the clock when it
    /// wakes up. Timer expiries missed while the thread is late are samples, too.
    #[command(after_help = "\
Examples:
  noisefloor latency -c 1 -i 250us           # an ordinary task on CPU 1
  sudo noisefloor latency --fifo 80 -d 60    # real-time tasks
  sudo noisefloor latency --fifo 80 --dma-latency 0   # as cyclictest does
  noisefloor latency --timer timerfd --max-late 1ms
  sudo noisefloor latency -d 1h --stop-above 100us --on-stop 'cat >late.json'")]
    Latency(LatencyArgs),
    /// Time slices of CPU-bound processes, and what ends them.
    ///
    /// Starts processes that spin and processes that wake up 1,000 times a second, and reads the
    /// CPU time and the involuntary context switches of each. If the scheduler can be traced
    /// (eBPF: root), it also reports single slices and what ended them. With --step, rounds
    /// alternate between current settings and each variant; settings are restored afterwards.
    #[command(after_help = "\
Examples:
  sudo noisefloor slices 16 -o slices.html
  sudo noisefloor slices --step WAKEUP_PREEMPTION=off --step base_slice_ns=3000000
  noisefloor slices 16 --classic -d 10       # the columns of the 2009 report")]
    Slices(SlicesArgs),
    /// The threads that wake up most often, for how long they run, and which threads they preempt.
    ///
    /// Counts on the whole machine, in the kernel (eBPF: root, or CAP_BPF and CAP_PERFMON; Linux
    /// 5.18). A wake-up by a timer or a device is attributed to the interrupt or softirq, not to the
    /// thread that was interrupted.
    #[command(after_help = "\
Examples:
  sudo noisefloor wakers                 # all threads, for 5 seconds
  sudo noisefloor wakers -c 3 -d 60      # threads that wake up on CPU 3
  sudo noisefloor wakers -p 1234 -n 5    # a process, and the threads it wakes")]
    Wakers(WakersArgs),
    /// What the kernel and other threads take from a program that runs already.
    ///
    /// For each thread of a process, a systemd unit, a container or a cgroup: its time on CPUs, how long
    /// it waited for one and what had the CPU meanwhile, and how long interrupts took; the longest
    /// delays, each with the threads that ran instead. The program is not touched: sums are made in the
    /// kernel (eBPF: root, or CAP_BPF and CAP_PERFMON; Linux 5.18). New threads, processes and cgroups
    /// are followed. Runs for days in constant memory.
    #[command(after_help = "\
Examples:
  sudo noisefloor watch -p 1234
  sudo noisefloor watch -u nginx -d 60 --max-wait 5ms
  sudo noisefloor watch --cgroup /kubepods.slice -d 24h --log delays.jsonl \\
      --log-above 10ms                   # a flight recorder")]
    Watch(WatchArgs),
    /// Live view of what uses each CPU: programs, kernel threads, interrupts, the hypervisor.
    ///
    /// Shows for each CPU its timer interrupts, the time of programs, kernel threads and interrupts, the
    /// hypervisor and used-up CPU quotas, the longest interruption, and how long threads waited in the run
    /// queue; below, what used the CPUs: by systemd unit, container or program. h shows the keys. Nothing
    /// spins: sums are made in the kernel (eBPF: root, or CAP_BPF and CAP_PERFMON; Linux 5.11), without it
    /// the counters of /proc are read. If standard output is no terminal, a report is printed at the end.
    #[command(after_help = "\
Examples:
  sudo noisefloor top
  sudo noisefloor top -i 500ms --record top.json   # save what it shows
  noisefloor report top.json
  sudo noisefloor top -d 10 | cat                  # a report of 10 seconds")]
    Top(TopArgs),
    /// Counters of what uses each CPU, served to Prometheus over HTTP.
    ///
    /// Time of programs, kernel threads, interrupts, the hypervisor and used-up CPU quotas, timer interrupts,
    /// context switches, waits in the run queue and the longest interruptions, of each CPU; and the time of what
    /// uses the CPUs most, by program, unit or container. Nothing is measured with a busy loop: sums are made in
    /// the kernel (eBPF: root, or CAP_BPF and CAP_PERFMON; Linux 5.11), without it the counters of /proc are
    /// read. They are read when /metrics is requested; other measurements are not disturbed. Runs until Ctrl-C
    /// or SIGTERM. The metrics are listed in docs/exporter.md.
    #[command(after_help = "\
Examples:
  sudo noisefloor exporter --listen 127.0.0.1:9924
  curl -s http://127.0.0.1:9924/metrics
  sudo noisefloor exporter --listen unix:/run/noisefloor.sock --sources 100")]
    Exporter(ExporterArgs),
    /// CPU time and wake-ups of the virtual machines on this host, and what idle ones could save.
    ///
    /// What the host would save is computed as if each idle guest woke up as rarely as the best one.
    /// Finds the guests of QEMU, Firecracker and cloud-hypervisor by the names of their threads and
    /// programs, and reads the counters of their threads in /proc twice. Idle guests are compared
    /// with the one that wakes up least often: a periodic tick (nohz=off) wakes each vCPU CONFIG_HZ
    /// times per second. Needs no privileges, unless /proc is mounted with hidepid=. Exit code 3:
    /// there is no guest.
    #[command(after_help = "\
Example: fail a script if an idle guest wakes up more than 200 times a second
  noisefloor guests -d 30 --max-wakeups 200

Example of a report
  2 guests (2 QEMU/TCG) with 4 vCPUs, observed for 10 s: CPU time 4.87 % of one
  CPU, 1394 wake-ups per second. 2 are idle.

    PID  guest  vCPUs      CPU  wakes/s  in vCPUs     each  invol/s   saves
   8753  web        2   3.99 %      566       318  35.2 µs      252  3.06 %
   8754  db         2  0.884 %      131      3.25  33.7 µs        0    best
  [...]")]
    Guests(GuestsArgs),
    /// Whether the tick of a CPU really stops (nohz_full), and what prevents it.
    #[command(subcommand)]
    Nohz(NohzCommand),
    /// Restore settings left behind by a killed run.
    ///
    /// Every setting is written to a journal before it is changed, and is restored when the run
    /// ends. After a killed run, this command or any later one restores it. A setting that another
    /// program has changed since, or that another run still needs, is not touched.
    #[command(after_help = "\
Example:
  sudo noisefloor restore")]
    Restore,
    /// Run a program on isolated CPUs and report what interrupted it.
    ///
    /// The program and its children run on these CPUs only, as ordinary tasks unless --fifo is
    /// given. Standard input, standard output and the exit code are the program's. When it has
    /// ended, the report is printed to standard error: how often it was preempted, by what, and,
    /// if events can be traced (root), the longest interruptions with their causes. With --json
    /// the JSON object is printed there instead, after the program's own messages; --json-to writes
    /// it to a file. Signals are forwarded; killing noisefloor also kills the program and its
    /// children, except for processes of another user.
    #[command(after_help = "\
Exit codes: that of the program; 128 + N if signal N ended it; 127 if it was not
found; 126 if it could not be executed; 2 or 3 if it was not started; 1 if an
interruption above --stop-above ended it, or with --keep if it then succeeded.

Examples:
  sudo noisefloor run ./compute
  sudo noisefloor run -c 2-5 --fifo 50 -o run.json -- ./compute --size 8
  noisefloor run make                      # without root
  sudo noisefloor run --stop-above 50us --trace hit.json ./app")]
    Run(RunArgs),
    /// What the noise of a recording costs many ranks that wait for each other, by simulation.
    ///
    /// Each rank computes for a step and then waits for others: in a barrier, an allreduce, for neighbours or
    /// in a pipeline. Its CPU replays the gaps of a recording from a random moment on. The report has the
    /// slowdown over the number of ranks, what remains of it without each source of noise, and analytic
    /// bounds. The same seed gives the same numbers on every machine. Messages cost what the model LogGOPS
    /// says.
    #[command(after_help = "\
Examples:
  sudo noisefloor check -o check.json && noisefloor scale check.json
  noisefloor scale check.json --ranks 1..65536 --pattern allreduce -o scale.html
  noisefloor scale node*.json --ranks 4096 --ranks-per-node 16 --compute 100us
  noisefloor scale noise.json --ranks 1024 --coscheduled
  noisefloor scale noise.json --ranks 1024 --coscheduled=kworker")]
    Scale(ScaleArgs),
    /// Print the report of a saved recording, or of a file of another tool.
    #[command(after_help = "\
Examples:
  noisefloor noise -d 60 -o before.json && noisefloor report before.json
  ssh node noisefloor noise -o - | noisefloor report -
  cyclictest -q -D 10 -h 400 --json=c.json && noisefloor report c.json
  noisefloor report a.json b.json -o page.html   # several on one page
  noisefloor report noise.json --picture noise-over-time -o noise.svg")]
    Report(ReportArgs),
    /// Recordings in the formats of other programs.
    ///
    /// csv: the metrics of each recording. hlog: a log of HdrHistogram, with the lengths of gaps,
    /// wake-up latencies or jitter in intervals of a second; those of several CPUs have tags (CPU0).
    /// benchmark-action: the metrics of which smaller values are better, for github-action-benchmark
    /// (customSmallerIsBetter); of a folder the medians. prometheus: the metrics for node_exporter's
    /// textfile collector.
    #[command(after_help = "\
Examples:
  noisefloor export noise.json -o noise.hlog
  noisefloor export before -o before.csv
  noisefloor export runs --format benchmark-action -o output.json")]
    Export(ExportArgs),
    /// Repeated runs of a measurement, saved as a set for `noisefloor compare`.
    ///
    /// Each run is a process of its own. The report has the spread of each metric. With --step,
    /// runs with the current settings and with each variant alternate, so that a drift of the
    /// machine does not look like an effect of a setting. With --duet, two programs run at once, so that
    /// noise of the machine hits both. Ctrl-C ends the runs; those that have ended are reported.
    #[command(override_usage = "\
noisefloor repeat [OPTIONS] <MEASUREMENT>...
       noisefloor repeat [OPTIONS] --duet <CMD_A> <CMD_B>")]
    #[command(after_help = "\
Examples:
  noisefloor repeat -o before noise -c 1 -d 10
  sudo noisefloor repeat -n 20 -o sets --step preempt=full -- latency -d 5
  sudo noisefloor repeat --warmup 3 -- run ./bench --size 8
  noisefloor repeat -n 40 --duet './old --size 8' './new --size 8'")]
    Repeat(RepeatArgs),
    /// Effect of a setting on this machine: changed, measured in turn with the current one, restored.
    ///
    /// Runs with the current settings (or those of --vs) and with the given ones alternate in
    /// balanced random order, and are compared as by `compare`. Each setting is changed through the
    /// journal, and restored after each run, whatever ends it. The report says which settings are
    /// better, and what makes them last beyond the next boot. Most settings need root.
    #[command(after_help = "\
Examples:
  sudo noisefloor try vm.stat_interval=120 -- noise -c 1 -d 10
  sudo noisefloor try preempt=full --vs preempt=lazy -- latency -d 5
  sudo noisefloor try irqs=0 workqueues=0 thp=never --keep -- run ./bench")]
    Try(TryArgs),
    /// Whether sets of recordings, or cells of the lab, differ, and by how much.
    ///
    /// Each is compared with the first. Facts and parameters that differ come first; then each metric
    /// and each source of noise, with an interval of the difference and a verdict: lower, higher, no
    /// difference larger than some percentage, or not enough data, and how many more runs it takes. A
    /// folder is a set of runs; a single recording is divided into blocks; of a file of benchmarks its
    /// values are compared, name by name. Cells of the lab are exact: their differences have no interval.
    #[command(after_help = "\
Examples:
  noisefloor compare before after             # two folders of recordings
  noisefloor compare before after -o compared.html
  noisefloor compare a.json b.json --fail-if 'noise_ppm > +10%'
  noisefloor compare old.txt new.txt --fail-if-worse 5 --summary comment.md   # of go test -bench
  noisefloor compare target/criterion/main target/criterion/new --github
  noisefloor compare tick-cost/fifo@running @debian:6.12-cloud")]
    Compare(CompareArgs),
    /// How the noise of this machine changed over time, with its kernels and settings.
    ///
    /// Reads what was saved with --save. A series is divided where its level changes; changes of facts
    /// (kernel, boot parameters, governor) are listed beside. `compare history:1-20 history:21-40`
    /// compares entries.
    #[command(after_help = "\
Examples:
  noisefloor check --save && noisefloor history
  noisefloor history -o history.html
  noisefloor history --metric gap_ns_max --since 2026-11-01 --csv
  noisefloor history add result.json && noisefloor history --kind benchmarks
  noisefloor history prune --before 2026-01-01")]
    History(HistoryArgs),
    /// Which of many nodes are noisy, and why.
    ///
    /// Reads a recording, or the history, of each node. A node is noisy if its noise is too large for this fleet;
    /// chance calls a node of a quiet fleet noisy in one of twenty fleets, however large they are. The reasons are
    /// sources that take more of its time than of other nodes, and facts and labels that noisy nodes have and others
    /// have not: kernel, boot parameters, settings, racks. Files that cannot be read are counted (exit code 4).
    #[command(after_help = "\
Examples:
  srun noisefloor check -q -o out/%h.json     # one file for each node
  noisefloor fleet out
  noisefloor fleet out --labels racks.csv -o fleet.html
  noisefloor fleet out --metric gap_ns_max --full
  noisefloor fleet */history.db --json")]
    Fleet(FleetArgs),
    /// The same measurements on other kernels, in guests, exact to the instruction.
    #[command(subcommand)]
    Lab(LabCommand),
    /// The same measurements in virtual time, by the rules of a kernel's scheduler.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Write man pages or shell completions.
    #[command(hide = true)]
    Generate(GenerateArgs),
}

impl Command {
    /// Whether a measurement is saved with -o, and appended to the history; `None` for other commands.
    pub(crate) fn is_saved(&self) -> Option<(bool, bool)> {
        let saved = match self {
            Self::Check(CheckArgs { place, .. })
            | Self::Ticks(TicksArgs { place, .. })
            | Self::Noise(NoiseArgs { place, .. })
            | Self::Latency(LatencyArgs { place, .. }) => &place.saved,
            Self::Jitter(JitterArgs { saved, .. })
            | Self::Wakers(WakersArgs { saved, .. })
            | Self::Watch(WatchArgs { saved, .. })
            | Self::Guests(GuestsArgs { saved, .. })
            | Self::Slices(SlicesArgs { saved, .. })
            | Self::Nohz(
                NohzCommand::Test(NohzTestArgs {
                    place: NohzPlace { saved, .. }, ..
                })
                | NohzCommand::Stress(NohzStressArgs {
                    place: NohzPlace { saved, .. },
                    ..
                }),
            ) => saved,
            Self::Run(run) => return Some((!run.output.is_empty(), run.saving.save)),
            Self::Top(top) => return Some((!top.record.is_empty(), top.saving.save)),
            Self::Facts(_)
            | Self::Advise(_)
            | Self::Restore
            | Self::Scale(_)
            | Self::Fleet(_)
            | Self::Report(_)
            | Self::Export(_)
            | Self::Exporter(_)
            | Self::Compare(_)
            | Self::History(_)
            | Self::Repeat(_)
            | Self::Try(_)
            | Self::Lab(_)
            | Self::Sim(_)
            | Self::Generate(_) => return None,
        };
        Some((!saved.files().is_empty(), saved.saving.save))
    }
}

/// Runs a command.
pub(crate) fn run(command: Command, output: Output) -> Result<Outcome, Failure> {
    let save = command.is_saved().is_some_and(|(_, save)| save);
    let output = Output { save, ..output };
    if save {
        saved::check()?;
    }
    match command {
        Command::Check(check) => check::run(&check, output),
        Command::Advise(args) => advise::run(&args, output),
        Command::Facts(facts) => facts::run(&facts, output),
        Command::Ticks(ticks) => ticks::run(&ticks, output),
        Command::Noise(noise) => noise::run(&noise, output),
        Command::Jitter(jitter) => jitter::run(&jitter, output),
        Command::Latency(latency) => latency::run(&latency, output),
        Command::Wakers(wakers) => wakers::run(&wakers, output),
        Command::Watch(watch) => watch::run(&watch, output),
        Command::Top(top) => top::run(&top, output),
        Command::Exporter(exporter) => exporter::run(&exporter, output),
        Command::Guests(guests) => guests::run(&guests, output),
        Command::Slices(slices) => slices::run(&slices, output),
        Command::Scale(scale) => scale::run(&scale, output),
        Command::Run(run) => run::run(&run, output),
        Command::Nohz(command) => nohz::run(&command, output),
        Command::Restore => restore::run(output),
        Command::Report(report) => report::run(&report, output),
        Command::Export(export) => export::run(&export, output),
        Command::Repeat(repeat) => repeat::run(&repeat, output),
        Command::Try(args) => r#try::run(&args, output),
        Command::Compare(compare) => compare::run(&compare, output),
        Command::Fleet(fleet) => fleet::run(&fleet, output),
        Command::History(history) => history::run(&history, output),
        Command::Lab(command) => lab::run(&command, output),
        Command::Sim(command) => sim::run(&command, output),
        Command::Generate(generate) => generate::run(&generate),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Check that the definition is consistent.
    #[test]
    fn definition_is_sound() {
        Args::command().debug_assert();
    }
}
