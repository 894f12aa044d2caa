//! What is known of a machine: the answers to the subjects of conditions, from facts and from a
//! measurement of its OS noise.

pub(crate) mod losses;
mod named;

use std::collections::BTreeMap;

use facts::{Facts, Why};
use recording::{Code, Doubt};
use serde_json::Value;
use units::CpuSet;

use crate::machine::losses::Losses;
use crate::rule::condition::Answer;
use crate::rule::kernels::{self, Version};

/// Parts of the releases of distributions whose kernels have changes of later versions.
const BACKPORTED: [&str; 4] = [".el", ".amzn", "-default", "-android"];
/// The newest kernel that the rules were compared with.
const NEWEST: Version = (7, 3, u32::MAX);

/// A machine.
#[derive(Debug)]
pub struct Machine<'a> {
    facts: &'a Facts,
    page: BTreeMap<&'static str, Result<Value, Why>>,
    pub(crate) losses: Option<Losses>,
    cpus: Option<CpuSet>,
    /// Answers to what facts do not say.
    assumed: BTreeMap<&'static str, &'static str>,
}

impl<'a> Machine<'a> {
    /// A machine with these facts, with the noise that was measured there, if any. Advice is about these CPUs:
    /// `None` for those that are isolated, or else all but the first core.
    pub fn new(facts: &'a Facts, losses: Option<Losses>, cpus: Option<CpuSet>) -> Self {
        let page = facts.page();
        let page = page.entries().iter().map(|entry| {
            let value = entry.value.as_ref().map_err(|unknown| unknown.code);
            (entry.key, value.cloned())
        });
        Self {
            facts,
            page: page.collect(),
            losses,
            cpus: cpus.or_else(|| quiet_cpus(facts)),
            assumed: BTreeMap::new(),
        }
    }

    /// The same machine, for which this is assumed where its facts do not say it: a configuration alone
    /// does not tell where its kernel runs.
    #[must_use]
    pub fn assuming(mut self, subject: &'static str, value: &'static str) -> Self {
        self.assumed.insert(subject, value);
        self
    }

    /// Its facts.
    pub fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// The CPUs that are to have little noise; `None` if there is only one, or none is known.
    pub fn cpus(&self) -> Option<&CpuSet> {
        self.cpus.as_ref()
    }

    /// The version of its kernel.
    pub fn version(&self) -> Option<Version> {
        kernels::version(self.facts.kernel.release.get()?)
    }

    /// Reasons not to trust advice for it.
    pub fn doubts(&self) -> Vec<Doubt> {
        let release = self.facts.kernel.release.get();
        let has_changes =
            |release: &String| BACKPORTED.iter().any(|part| release.contains(part));
        let is_backported = release.is_some_and(has_changes);
        let is_new = self.version().is_some_and(|version| version > NEWEST);
        let doubts = [
            (
                is_backported,
                "the kernel of this distribution has changes of later versions: rules for other \
                 versions may hold for it",
            ),
            (is_new, "this kernel is newer than all rules"),
            (
                self.version().is_none(),
                "the kernel's version is not known: only rules for all kernels were judged",
            ),
        ];
        let doubts = doubts.into_iter().filter(|(applies, _)| *applies);
        doubts.map(|(_, text)| Doubt::new(Code::RulesUncertain, text)).collect()
    }

    /// What is known of a subject, or assumed.
    pub fn answer(&self, subject: &str) -> Answer {
        match (self.known(subject), self.assumed.get(subject)) {
            (Answer::Unknown, Some(value)) => Answer::Is((*value).to_owned()),
            (known, _) => known,
        }
    }

    fn known(&self, subject: &str) -> Answer {
        if let Some(option) = subject.strip_prefix("CONFIG_") {
            return self.option(option);
        }
        let answer = match subject.split_once('.') {
            Some(("boot", name)) => Some(self.parameter(name)),
            Some(("service", name)) => Some(self.service(name)),
            Some(("given", name)) => Some(self.given(name)),
            Some(("facts", key)) => Some(self.fact(key)),
            Some(("noise", name)) => Some(self.loss(|losses| losses.of_source(name))),
            Some(("idle", "timer_hz")) => Some(self.loss(|losses| losses.idle_hz)),
            Some(("gap", "max_us")) => Some(self.loss(|losses| losses.longest_us())),
            Some(("latency", _)) => Some(Answer::Unknown),
            Some(_) | None => None,
        };
        answer.or_else(|| self.named(subject)).unwrap_or_else(|| self.setting(subject))
    }

    fn loss(&self, number: impl FnOnce(&Losses) -> Option<f64>) -> Answer {
        let number = self.losses.as_ref().and_then(number);
        number.map_or(Answer::Unknown, |number| Answer::Is(number.to_string()))
    }

    /// A sysctl, or a file.
    fn setting(&self, name: &str) -> Answer {
        let settings = &self.facts.settings;
        let Some((values, unread)) = settings.values.get().zip(settings.unread.get())
        else {
            return Answer::Unknown;
        };
        match values.get(name) {
            Some(value) => Answer::Is(value.clone()),
            None if unread.iter().any(|other| other == name) => Answer::Unknown,
            None => Answer::Absent,
        }
    }

    fn option(&self, name: &str) -> Answer {
        let value =
            self.facts.settings.options.get().and_then(|options| options.get(name));
        value.map_or(Answer::Unknown, |value| Answer::Is(value.clone()))
    }

    /// The last one of several counts.
    fn parameter(&self, name: &str) -> Answer {
        let Some(given) = self.facts.boot.given(name) else { return Answer::Unknown };
        match given.last() {
            None => Answer::Absent,
            Some(&"...") => Answer::Exists,
            Some(value) => Answer::Is((*value).to_owned()),
        }
    }

    /// The value that a file sets at boot.
    fn given(&self, name: &str) -> Answer {
        let Some(values) = self.facts.settings.configured.get() else {
            return Answer::Unknown;
        };
        values.get(name).map_or(Answer::Absent, |it| Answer::Is(it.value.clone()))
    }

    fn service(&self, name: &str) -> Answer {
        let Some(running) = self.facts.settings.services.get() else {
            return Answer::Unknown;
        };
        yes_or_no(running.iter().any(|other| other == name))
    }

    /// A fact by its key.
    fn fact(&self, key: &str) -> Answer {
        if let Some(answer) = self.derived(key) {
            return answer;
        }
        match self.page.get(key) {
            Some(Ok(value)) => plain(value),
            Some(Err(why)) => missing(*why),
            None => Answer::Unknown,
        }
    }
}

/// What a fact says that has no value.
pub(crate) fn missing(why: Why) -> Answer {
    match why {
        Why::Absent
        | Why::TooOld
        | Why::TooNew
        | Why::NotConfigured
        | Why::NotApplicable => Answer::Absent,
        Why::NotMounted
        | Why::NeedsRoot
        | Why::Lockdown
        | Why::NotExported
        | Why::Garbage
        | Why::NotRecorded => Answer::Unknown,
    }
}

pub(crate) fn yes_or_no(is_so: bool) -> Answer {
    Answer::Is(if is_so { "yes" } else { "no" }.to_owned())
}

/// A value of JSON as a condition compares it.
fn plain(value: &Value) -> Answer {
    Answer::Is(match value {
        Value::Null => return Answer::Absent,
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let texts =
                all.iter().map(|one| one.as_str().map_or(one.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(",")
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    })
}

/// The CPUs for which a machine can be quiet: those that are isolated, or else all but those of the first
/// core, or of one core all but the first.
fn quiet_cpus(facts: &Facts) -> Option<CpuSet> {
    let online = facts.cpus.online.get()?;
    let isolated = facts.set_apart().and(online);
    if !isolated.is_empty() {
        return Some(isolated);
    }
    let first: CpuSet = online.iter().take(1).collect();
    let mut cores = facts.cpus.cores.get().into_iter().flatten();
    let core = cores.find(|core| !core.and(&first).is_empty());
    let choices = [core.unwrap_or(&first), &first].map(|rest| online.without(rest));
    choices.into_iter().find(|others| !others.is_empty())
}
