//! `top`: a live view of what uses the CPUs of this machine.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use ::facts::{Facts, Root};
use recording::{Spec, TopSpec};
use session::{Event, Observer, Plan};
use units::Nanos;

use crate::args::{Output, Saving, outputs, some_seconds};
use crate::file_pattern::file_name;
use crate::measured::Measured;
use crate::measuring::finish;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::remarks::{self, Remarks};
use crate::terminal::Terminal;
use crate::top_screen::TopScreen;

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Length of an interval, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "2", value_parser = some_seconds)]
    pub(crate) interval: Nanos,
    /// Duration, in seconds or with a unit (1h) [default: until q or Ctrl-C].
    #[arg(short, long, value_name = "TIME", value_parser = some_seconds)]
    pub(crate) duration: Option<Nanos>,
    /// Save what is shown to FILE, for `noisefloor report`: at most 600 intervals, longer ones for a long
    /// time; or write its report: FILE.html, FILE.md. Can be repeated.
    #[arg(long, short = 'o', visible_alias = "output", value_name = "FILE", value_parser = file_name())]
    pub(crate) record: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) saving: Saving,
}

pub(crate) fn run(args: &TopArgs, output: Output) -> Result<Outcome, Failure> {
    let files = outputs(&args.record);
    let output = output.beside(files.clone())?;
    let spec = TopSpec { interval_ns: args.interval, duration_ns: args.duration };
    let plan = Plan::new(Spec::Top(spec), Facts::read(&Root::live()));
    let release = plan.facts.kernel.release.get().map_or("?", String::as_str);
    let machine = format!("Linux {release}");
    let claimed = plan.claim(&mut Remarks { quiet: output.quiet })?;
    let terminal = Terminal::new(output.quiet, None)?;
    let control = terminal.control();
    if !(output.is_text() && has_live_terminal()) {
        let mut terminal = terminal;
        if args.duration.is_none() {
            terminal.remark("measuring until Ctrl-C: a view needs a terminal");
        }
        let measured = Measured::new(claimed.run(&control, &mut terminal)?);
        return finish(&measured, &files, output);
    }
    let screen = TopScreen::open(&machine, control.stop.clone())?;
    let mut live = Live { screen, messages: Vec::new() };
    let measured = claimed.run(&control, &mut live);
    let Live { screen, messages } = live;
    let closed = screen.close();
    messages.iter().for_each(say);
    let measured = Measured::new(measured?);
    measured.recording().doubts.iter().for_each(say);
    let outcome = finish(&measured, &files, Output { has_report: false, ..output })?;
    closed.map(|()| outcome)
}

/// Whether a view can be shown, and keys can be read.
fn has_live_terminal() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb
}

/// Shows intervals; messages are printed when the view has been left.
struct Live {
    screen: TopScreen,
    messages: Vec<String>,
}

impl Observer for Live {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Interval(sample) => self.screen.update(sample),
            Event::Waiting { .. }
            | Event::LeftBehind(_)
            | Event::TraceLeftBehind(_)
            | Event::Refused(_)
            | Event::Started
            | Event::Measurement(_)
            | Event::Delay(_)
            | Event::Finished
            | Event::Returned(_)
            | Event::NotRestored(_) => self.messages.extend(remarks::text(event)),
        }
    }
}
