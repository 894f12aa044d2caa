//! Sessions of the command line, as anyone would type them: the files in `sessions/`.

/// Check that every session prints and returns what its file says.
#[test]
fn sessions() {
    trycmd::TestCases::new()
        .env("NOISEFLOOR_CLAIMS", std::process::id().to_string())
        .env("LC_ALL", "C.UTF-8")
        .case("tests/sessions/*.trycmd");
}
