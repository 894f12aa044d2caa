//! Running text with marked parts, so that a renderer can set numbers, names and commands apart, and
//! keep a number on the line of its unit.

use std::fmt::{self, Display};

use units::{Cpu, CpuSet};

/// What a part of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Words.
    Words,
    /// A number with its unit; never divided.
    Number,
    /// A name that the machine or the user has given.
    Name,
    /// A CPU, or a list of CPUs.
    Cpus,
    /// Something to type: a command, an option, a setting.
    Command,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) mark: Mark,
    pub(crate) text: String,
}

/// A text, of parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(Vec<Part>);

/// A text from a template, in which each `{}` stands for one of the parts.
///
/// ```ignore
/// text!("CPU {} lost {} of its time", cpu, number::share(lost))
/// ```
macro_rules! text {
    ($template:expr $(, $part:expr)* $(,)?) => {
        $crate::document::text::Text::of(
            $template,
            [$($crate::document::text::Text::from($part)),*],
        )
    };
}
pub(crate) use text;

impl Text {
    /// The template, in which each `{}` stands for one of the texts.
    pub(crate) fn of<const N: usize>(template: &str, texts: [Text; N]) -> Self {
        let mut words = template.split("{}");
        let mut all = Self::from(words.next().unwrap_or_default());
        debug_assert_eq!(words.clone().count(), N, "{template}");
        for (text, after) in texts.into_iter().zip(words) {
            all.push(text);
            all.push(after);
        }
        all
    }

    /// A text of one part.
    fn marked(mark: Mark, text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::default() } else { Self(vec![Part { mark, text }]) }
    }

    /// A name that the machine or the user has given.
    pub(crate) fn name(name: impl Into<String>) -> Self {
        Self::marked(Mark::Name, name)
    }

    /// A number with its unit.
    pub(crate) fn number(number: impl Into<String>) -> Self {
        Self::marked(Mark::Number, number)
    }

    /// Something to type.
    pub(crate) fn command(command: impl Into<String>) -> Self {
        Self::marked(Mark::Command, command)
    }

    /// Adds another text.
    pub(crate) fn push(&mut self, text: impl Into<Self>) {
        for part in text.into().0 {
            match self.0.last_mut() {
                Some(last) if last.mark == part.mark && part.mark == Mark::Words => {
                    last.text.push_str(&part.text);
                }
                _ => self.0.push(part),
            }
        }
    }

    /// The texts, with `between` between them.
    pub(crate) fn join(texts: impl IntoIterator<Item = Text>, between: &str) -> Self {
        let mut all = Self::default();
        for text in texts {
            if !all.is_empty() {
                all.push(between);
            }
            all.push(text);
        }
        all
    }

    /// The first `most` of the texts, and the number of the others.
    pub(crate) fn first(most: usize, mut texts: Vec<Text>, between: &str) -> Self {
        let others = texts.split_off(most.min(texts.len())).len();
        texts.extend((others > 0).then(|| text!("{} more", others.to_string())));
        Self::join(texts, between)
    }

    /// Whether it has no character.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.0
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.iter().map(|part| &*part.text).collect::<String>())
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        let mut parts = self.0.iter();
        parts.try_fold(*other, |rest, part| rest.strip_prefix(&*part.text)) == Some("")
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        Self::marked(Mark::Words, words)
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        Self::marked(Mark::Words, words)
    }
}

impl<T: Into<Text>> From<Option<T>> for Text {
    /// Nothing for `None`.
    fn from(text: Option<T>) -> Self {
        text.map_or_else(Self::default, Into::into)
    }
}

impl From<Cpu> for Text {
    fn from(cpu: Cpu) -> Self {
        Self::marked(Mark::Cpus, cpu.to_string())
    }
}

impl From<&CpuSet> for Text {
    fn from(cpus: &CpuSet) -> Self {
        Self::marked(Mark::Cpus, cpus.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that parts keep their marks, and words are joined.
    #[test]
    fn parts() {
        let share = Text::number("1.2 %");
        let name = Text::name("ksoftirqd/0");
        let text = text!("CPU {} lost {} to {}, too", Cpu::new(3), share, name);
        assert_eq!(text.to_string(), "CPU 3 lost 1.2 % to ksoftirqd/0, too");
        let marks: Vec<Mark> = text.parts().iter().map(|part| part.mark).collect();
        use Mark::{Cpus, Name, Number, Words};
        assert_eq!(marks, [Words, Cpus, Words, Number, Words, Name, Words]);
        let nested = text!("{}; {}{}", text!("a{}", "b"), Some("c"), None::<Text>);
        assert_eq!(nested, Text::from("ab; c"));
        assert_eq!(
            Text::join(["a", "", "b"].map(Text::from), ", ").to_string(),
            "a, , b"
        );
    }
}
