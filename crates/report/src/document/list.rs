//! Lists: lines, items, and steps with the commands that take them.

use crate::document::text::Text;

/// What stands before each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Nothing: each item is a line.
    None,
    /// A mark.
    Bullet,
    /// A number, from one.
    Number,
}

/// A list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List {
    pub(crate) lead: Lead,
    pub(crate) items: Vec<Item>,
}

/// An item: paragraphs, and the commands that do what they say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Item {
    pub(crate) paragraphs: Vec<Text>,
    pub(crate) commands: Vec<String>,
    /// A line that is not folded, such as a path.
    pub(crate) verbatim: Option<String>,
}

impl List {
    fn of(lead: Lead, items: impl IntoIterator<Item: Into<Item>>) -> Self {
        Self { lead, items: items.into_iter().map(Into::into).collect() }
    }

    /// Lines without a mark.
    pub(crate) fn lines(items: impl IntoIterator<Item: Into<Item>>) -> Self {
        Self::of(Lead::None, items)
    }

    /// Items with a mark each.
    pub(crate) fn bullets(items: impl IntoIterator<Item: Into<Item>>) -> Self {
        Self::of(Lead::Bullet, items)
    }

    /// Numbered items.
    pub(crate) fn numbered(items: impl IntoIterator<Item: Into<Item>>) -> Self {
        Self::of(Lead::Number, items)
    }
}

impl Item {
    /// An item of one paragraph.
    pub(crate) fn new(text: impl Into<Text>) -> Self {
        Self { paragraphs: vec![text.into()], ..Self::default() }
    }

    /// With another paragraph; an empty text adds none.
    pub(crate) fn and(mut self, text: impl Into<Text>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.paragraphs.push(text);
        }
        self
    }

    /// With the command that does what the item says, after those that it has.
    pub(crate) fn all_commands(self, commands: Vec<String>) -> Self {
        Self { commands, ..self }
    }

    /// With a command.
    pub(crate) fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// With a line that is not folded.
    pub(crate) fn verbatim(self, line: impl Into<String>) -> Self {
        Self { verbatim: Some(line.into()), ..self }
    }
}

impl From<Text> for Item {
    fn from(text: Text) -> Self {
        Self::new(text)
    }
}
