//! The reader of Kconfig files.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::build::kconfig::{Definition, Expression, Symbol, Type};

/// How deeply files include others; deeper ones include themselves.
const DEPTH_MAX: usize = 32;

/// Reads a file of the tree and all that it includes.
pub(super) fn read(tree: &Path, file: &str) -> HashMap<String, Symbol> {
    let mut reader =
        Reader { tree, symbols: HashMap::new(), blocks: Vec::new(), choices: 0 };
    reader.file(file, 0);
    reader.symbols
}

/// A block, with the conditions of all that is in it.
struct Block {
    /// Its number, if it is a choice.
    choice: Option<usize>,
    depends: Vec<Expression>,
}

/// What a line of attributes belongs to.
enum Entry {
    None,
    /// A comment, whose attributes have no effect.
    Other,
    /// The innermost block.
    Block,
    Option(String, Definition),
}

struct Reader<'a> {
    tree: &'a Path,
    symbols: HashMap<String, Symbol>,
    blocks: Vec<Block>,
    /// The number of choices so far.
    choices: usize,
}

impl Reader<'_> {
    fn file(&mut self, file: &str, depth: usize) {
        let Ok(bytes) = fs::read(self.tree.join(file)) else { return };
        if depth > DEPTH_MAX {
            return;
        }
        let text = String::from_utf8_lossy(&bytes).replace("\\\n", " ");
        let mut entry = Entry::None;
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let words = strip_comment(line.trim());
            let (keyword, rest) =
                words.split_once(char::is_whitespace).unwrap_or((words, ""));
            let rest = rest.trim();
            match keyword {
                "help" | "---help---" => skip_help(&mut lines),
                "source" => {
                    self.end(&mut entry);
                    let file = quoted(rest).replace("$(SRCARCH)", "x86");
                    self.file(&file, depth + 1);
                }
                "config" | "menuconfig" | "choice" | "menu" | "if" | "comment"
                | "endchoice" | "endmenu" | "endif" => {
                    self.end(&mut entry);
                    entry = self.begin(keyword, rest);
                }
                _ => self.attribute(&mut entry, keyword, rest),
            }
        }
        self.end(&mut entry);
    }

    /// Begins or ends a block or an option.
    fn begin(&mut self, keyword: &str, rest: &str) -> Entry {
        let mut block = |choice, depends| {
            self.blocks.push(Block { choice, depends });
        };
        match keyword {
            "config" | "menuconfig" => {
                let depends = self.blocks.iter().flat_map(|b| b.depends.clone());
                let depends = depends.collect();
                let choice = self.blocks.iter().find_map(|block| block.choice);
                let definition = Definition { depends, choice, ..Definition::default() };
                return Entry::Option(rest.to_owned(), definition);
            }
            "if" => block(None, Expression::parse(rest).into_iter().collect()),
            "menu" | "choice" => {
                let choice = (keyword == "choice").then_some(self.choices);
                self.choices += usize::from(choice.is_some());
                self.blocks.push(Block { choice, depends: Vec::new() });
                return Entry::Block;
            }
            "comment" => return Entry::Other,
            _ => drop(self.blocks.pop()),
        }
        Entry::None
    }

    fn attribute(&mut self, entry: &mut Entry, keyword: &str, rest: &str) {
        let depends =
            || (keyword == "depends").then(|| rest.strip_prefix("on ")).flatten();
        match entry {
            Entry::None | Entry::Other => {}
            Entry::Block => {
                let condition = depends().and_then(Expression::parse);
                if let (Some(block), Some(condition)) =
                    (self.blocks.last_mut(), condition)
                {
                    block.depends.push(condition);
                }
            }
            Entry::Option(name, definition) => {
                if let Some(condition) = depends() {
                    definition.depends.extend(Expression::parse(condition));
                    return;
                }
                let own = name.clone();
                let symbol = self.symbols.entry(own.clone()).or_default();
                match keyword {
                    "prompt" => definition.prompt(rest),
                    "range" => symbol.range = Some(rest.to_owned()),
                    "select" => {
                        let (target, when) = condition(rest);
                        let target = self.symbols.entry(target.to_owned()).or_default();
                        target.selected_by.push((own, when));
                    }
                    _ => {
                        let Some(kind) = type_of(keyword) else { return };
                        symbol.kind = Some(kind);
                        if !keyword.starts_with("def_") && !rest.is_empty() {
                            definition.prompt(rest);
                        }
                    }
                }
            }
        }
    }

    /// Keeps a definition that is complete.
    fn end(&mut self, entry: &mut Entry) {
        if let Entry::Option(name, definition) = std::mem::replace(entry, Entry::None) {
            self.symbols.entry(name).or_default().definitions.push(definition);
        }
    }
}

impl Definition {
    fn prompt(&mut self, rest: &str) {
        self.has_prompt = true;
        self.visible = condition(rest).1;
    }
}

fn type_of(keyword: &str) -> Option<Type> {
    match keyword {
        "bool" | "def_bool" => Some(Type::Bool),
        "tristate" | "def_tristate" => Some(Type::Tristate),
        "int" => Some(Type::Int),
        "hex" => Some(Type::Hex),
        "string" => Some(Type::Text),
        _ => None,
    }
}

/// A value, and the condition behind `if`; a text in quotes may contain that word.
fn condition(text: &str) -> (&str, Option<Expression>) {
    let after = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].find(quote).map_or(0, |end| end + 2),
        _ => 0,
    };
    match text[after..].find("if ") {
        Some(at) => {
            let at = after + at;
            (text[..at].trim(), Expression::parse(&text[at + 3..]))
        }
        None => (text, None),
    }
}

/// The text without its comment.
fn strip_comment(line: &str) -> &str {
    let mut quote = None;
    for (index, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return line[..index].trim_end(),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    line
}

fn quoted(text: &str) -> &str {
    text.trim_matches('"')
}

/// Skips a help text: the lines that are indented as much as its first one.
fn skip_help(lines: &mut std::iter::Peekable<std::str::Lines<'_>>) {
    let mut indent = None;
    while let Some(line) = lines.peek() {
        if !line.trim().is_empty() {
            let own = indentation(line);
            if own == 0 || own < *indent.get_or_insert(own) {
                return;
            }
        }
        lines.next();
    }
}

/// The number of columns before a line's text.
fn indentation(line: &str) -> usize {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            '\t' => columns = (columns / 8 + 1) * 8,
            ' ' => columns += 1,
            _ => break,
        }
    }
    columns
}
