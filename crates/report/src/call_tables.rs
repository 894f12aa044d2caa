//! Requests to the kernel side by side: one line for each, one column for each cell, in
//! as many blocks as the terminal's width makes necessary.

use crate::number;
use crate::paragraph::WIDTH;
use crate::table::{Side, Table, columns};

/// The space between two columns, and before the first.
const SPACE: usize = 2;

/// What one cell found.
#[derive(Debug)]
pub(crate) struct Column {
    /// The label of its kernel, and its name.
    pub(crate) head: [String; 2],
    /// Each request's name, and what it cost.
    pub(crate) cells: Vec<(String, String)>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|(_, cell)| cell);
        self.head.iter().chain(cells).map(|text| columns(text)).max().unwrap_or(0)
    }

    fn cell(&self, request: &str) -> String {
        let cell = self.cells.iter().find(|(name, _)| name == request);
        cell.map_or(number::NONE, |(_, cell)| cell).to_owned()
    }
}

/// The tables.
pub(crate) fn call_tables(columns: &[Column]) -> String {
    let requests = requests(columns);
    let width = requests.iter().map(|name| name.len()).max().unwrap_or(0);
    let tables: Vec<String> = blocks(columns, WIDTH - SPACE - width.max("request".len()))
        .iter()
        .map(|block| table(&requests, block))
        .collect();
    tables.join("\n")
}

/// Every request that any cell made, in the order in which they were first made.
fn requests(columns: &[Column]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in columns.iter().flat_map(|column| &column.cells) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// As many columns side by side as fit into that width.
fn blocks(columns: &[Column], width: usize) -> Vec<Vec<&Column>> {
    let mut blocks: Vec<Vec<&Column>> = Vec::new();
    let mut left = 0;
    for column in columns {
        let needs = SPACE + column.width();
        match blocks.last_mut() {
            Some(block) if needs <= left => block.push(column),
            _ => {
                blocks.push(vec![column]);
                left = width;
            }
        }
        left = left.saturating_sub(needs);
    }
    blocks
}

fn table(requests: &[&str], block: &[&Column]) -> String {
    let mut head = vec![("request", Side::Left)];
    head.extend(block.iter().map(|column| (column.head[1].as_str(), Side::Right)));
    let mut table = Table::new(SPACE, &head);
    let mut kernels = vec![""];
    kernels.extend(block.iter().map(|column| column.head[0].as_str()));
    table.above(&kernels);
    for request in requests {
        let cells = block.iter().map(|column| column.cell(request));
        table.row(std::iter::once((*request).to_owned()).chain(cells));
    }
    table.text()
}
