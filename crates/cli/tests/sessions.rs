//! Sessions of the command line, as users would type them: the files in `sessions/`.

/// Check that every session prints and returns the contents of its file.
#[test]
fn sessions() {
    trycmd::TestCases::new()
        .env("NOISEFLOOR_CLAIMS", std::process::id().to_string())
        .env("LC_ALL", "C.UTF-8")
        .case("tests/sessions/*.trycmd");
}
