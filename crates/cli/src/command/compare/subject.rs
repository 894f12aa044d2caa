//! What is compared: files, folders and cells, by their names.

use std::path::Path;
use std::thread;

use recording::{Cell, Ending, Mode};
use summary::RunSet;

use crate::args::Output;
use crate::inputs::{exists, files_in, is_named, load, load_folder, load_set};
use crate::lab;
use crate::outcome::Failure;
use crate::saved;

/// What entries of the history begin with.
const HISTORY: &str = "history:";

/// The subjects of a comparison.
pub(crate) enum Subjects {
    /// Sets of recordings.
    Sets(Vec<RunSet>),
    /// Cells of exact mode.
    Cells(Vec<Cell>),
}

/// Reads what the user named.
pub(crate) fn read(names: &[String], output: Output) -> Result<Subjects, Failure> {
    if names.iter().filter(|name| *name == "-").count() > 1 {
        return Err(Failure::usage("standard input (-) can be named once only"));
    }
    let is_path = |name: &&String| {
        name.as_str() == "-" || exists(Path::new(name)) || name.starts_with(HISTORY)
    };
    match names.iter().filter(is_path).count() {
        0 => cells(names, output),
        paths if paths == names.len() => Ok(Subjects::Sets(sets(names)?)),
        _ => Err(Failure::usage(mixed(names, is_path))),
    }
}

/// The names that are no paths.
fn mixed(names: &[String], is_path: impl Fn(&&String) -> bool) -> String {
    let others: Vec<&str> =
        names.iter().filter(|name| !is_path(name)).map(String::as_str).collect();
    let others = others.join("', '");
    format!(
        "no such file: '{others}'; cells of the lab are compared with each other only: exact \
         numbers have no spread"
    )
}

/// Reads each set in a thread of its own.
fn sets(names: &[String]) -> Result<Vec<RunSet>, Failure> {
    let read = |name: &String| set(Path::new(name));
    thread::scope(|scope| {
        let readers: Vec<_> =
            names.iter().map(|name| scope.spawn(move || read(name))).collect();
        let joined = readers.into_iter().map(|reader| {
            reader.join().map_err(|_| Failure::bug("a thread panicked"))?
        });
        joined.collect()
    })
}

/// The entries of the history with these numbers: `12`, `1-20`.
fn entries(numbers: &str) -> Result<RunSet, Failure> {
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let number = |text: &str| {
        text.parse::<i64>().map_err(|_| {
            let form = format!("expected {HISTORY}NUMBER or {HISTORY}FIRST-LAST");
            Failure::usage(format!("'{HISTORY}{numbers}': {form}"))
        })
    };
    let (first, last) = (number(first)?, number(last)?);
    let history = saved::open()?;
    let mut set = RunSet::default();
    for entry in history.entries(first, last)? {
        set.add_numbers(&entry.run);
    }
    Ok(set)
}

/// One recording, those of a folder, or entries of the history.
fn set(name: &Path) -> Result<RunSet, Failure> {
    if let Some(numbers) = name.to_str().and_then(|name| name.strip_prefix(HISTORY)) {
        return entries(numbers);
    }
    if !name.is_dir() {
        return Ok(RunSet::single(&load(name)?));
    }
    if let Some(folder) = load_folder(name)? {
        return Ok(RunSet::single(&folder));
    }
    let files = files_in(name)?;
    match files.as_slice() {
        [file] => Ok(RunSet::single(&load(file)?)),
        several => load_set(several),
    }
}

/// Cells from the cache or a guest. Those of timed mode are measured, and compared as recordings.
fn cells(names: &[String], output: Output) -> Result<Subjects, Failure> {
    if let Some(name) = names.iter().find(|name| !is_cell_name(name)) {
        let text =
            format!("no such file, and not a cell (EXPERIMENT/NAME@KERNEL): '{name}'");
        return Err(Failure::usage(text));
    }
    let cell =
        |name: &String| lab::explain::cell(&lab::explain::other(&names[0], name), output);
    let cells: Vec<Cell> = names.iter().map(cell).collect::<Result<_, Failure>>()?;
    for (cell, name) in cells.iter().zip(names) {
        if let Ending::Lost { why, .. } = &cell.ending {
            return Err(Failure::refused(format!("'{name}' was lost: {why}")));
        }
    }
    if cells.iter().any(|cell| cell.mode == Mode::Exact) {
        return Ok(Subjects::Cells(cells));
    }
    let single = |cell: &Cell| {
        summary::answer(cell).map(|answer| RunSet::single(&answer.recording))
    };
    Ok(Subjects::Sets(cells.iter().filter_map(single).collect()))
}

fn is_cell_name(name: &str) -> bool {
    let is_file = is_named(Path::new(name));
    let is_row = name.contains('/') || name.contains('@');
    lab::explain::is_identity(name) || (is_row && !is_file)
}
