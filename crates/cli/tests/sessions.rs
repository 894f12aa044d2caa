//! Sessions of the command line, as anyone would type them: the files in `sessions/`.

/// Check that every session prints and returns what its file says.
#[test]
fn sessions() {
    trycmd::TestCases::new().case("tests/sessions/*.trycmd");
}
