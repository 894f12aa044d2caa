//! Tables of several widths.

use super::*;
use crate::document::table::cells;

/// Check that names in headings are cut such that they stay distinct, and words are not.
#[test]
fn long_headings() {
    let name = |end: &str| Column::number(Text::name(format!("{}{end}", "x".repeat(90))));
    let words = Column::words("a heading of more than twenty-two columns");
    let heads = heads(&Table::new([words, name("a"), name("b").above("y".repeat(90))]));
    let (x, y) = ("x".repeat(20), "y".repeat(21));
    assert_eq!(heads[0], ["", "", &format!("{y}…")]);
    let words = "a heading of more than twenty-two columns";
    assert_eq!(heads[1], [words, &format!("{x}…a"), &format!("{x}…b")]);
}

/// Check that the last column stands at the right margin, of the row's last line or of lines below it,
/// and that rows may have none.
#[test]
fn margins() {
    let mut rows = Table::new([Column::words(""), Column::prose(""), Column::margin()]);
    rows.row(cells!["one", "some words that are folded", "/a/file"]);
    rows.row(cells!["two", "more", "/a/long/name, /of/a/file"]);
    rows.row(cells!["three", "and more"]);
    let expected = " one    some words that are\n        folded      /a/file\n two    more\n   \
                    /a/long/name, /of/a/file\n three  and more\n";
    assert_eq!(table(&rows, 27), expected);
    rows.rows.pop();
    assert_eq!(table(&rows, 80).lines().count(), 2);
}

/// Check that names have their shorter form before they are cut.
#[test]
fn shorter_names() {
    let mut rows = Table::new([Column::name("", 4..=20), Column::number("")]);
    rows.row([Cell::or("wake-up latency", "latency"), "5 µs".into()]);
    for (width, expected) in [
        (22, " wake-up latency  5 µs\n"),
        (21, " latency  5 µs\n"),
        (13, " laten…  5 µs\n"),
    ] {
        assert_eq!(table(&rows, width), expected);
    }
}

/// Check that what rows have in common stands above them at the left, and is not cut as names are.
#[test]
fn groups() {
    let columns = [Column::group("of", 2..=12), Column::number("CPU")];
    let mut rows = Table::new(columns.into_iter().chain([Column::words("why")]));
    for cpu in ["7", "12"] {
        rows.row(cells!["gap, longest", cpu, "because of an interrupt"]);
    }
    let expected = " of, CPU  why\n gap, longest\n       7  because of an interrupt\n      \
                    12  because of an interrupt\n";
    assert_eq!(table(&rows, 36), expected);
}

/// Check that in blocks of columns those without folded cells have no empty lines.
#[test]
fn blocks() {
    let columns = [Column::words("of"), Column::number("ns"), Column::prose("why")];
    let mut rows = Table::new(columns);
    rows.row(cells!["gaps", "1,234,567", "a sentence that is folded"]);
    rows.row(cells!["loop", "9", "words"]);
    let expected = " of           ns\n gaps  1,234,567\n loop          9\n\n of    why\n gaps  a \
                    sentence that\n       is folded\n loop  words\n";
    assert_eq!(table(&rows, 30), expected);
}

/// Check that each block names its rows, with names as long as the number of blocks permits.
#[test]
fn blocks_with_names() {
    let columns = [Column::words(""), Column::name("source", 6..=20)];
    let numbers = ["gaps", "longest"].map(Column::number);
    let mut rows = Table::new(columns.into_iter().chain(numbers));
    rows.row(cells!["thread", "a-program-with-a-name", "130", "12.1 ms"]);
    let expected = "         source    gaps\n thread  a-progr…   130\n\n         source    \
                    longest\n thread  a-progr…  12.1 ms\n";
    assert_eq!(table(&rows, 26), expected);
}
