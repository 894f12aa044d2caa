//! Writes the headers in `include/`, from the functions of the ABI and their comments: what
//! `cargo xtask header` runs. With `--check` it writes nothing, and fails where one is not
//! what it would write.
//!
//! Each header is made of some files of `src/`, in their order. What `# Safety` asks of a Rust
//! caller is not in them: C programs read it as a matter of course.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use cbindgen::{Builder, Config, DocumentationStyle, Language, Layout, Style};

/// One header: its file, the files of `src/` that it is made of, and what it begins with.
struct Header {
    file: &'static str,
    guard: &'static str,
    sources: &'static [&'static str],
    about: &'static str,
}

const HEADERS: [Header; 2] = [
    Header {
        file: "noisefloor.h",
        guard: "NOISEFLOOR_H",
        sources: &["version.rs", "guard.rs", "code.rs", "isolation.rs", "gaps.rs"],
        about: "\
/*
 * noisefloor: take a CPU for one thread, wait until its tick has stopped, measure what is
 * still lost there, and give everything back. Link with -lnoisefloor.
 *
 * A program isolates a CPU, and the thread that is to run there enters:
 *
 *     nf_options options = { .size = sizeof(options), .wishes = NF_UNTHROTTLED | NF_IRQS };
 *     nf_isolation *cpu;
 *     if (nf_isolate(&options, &cpu) < 0 || nf_enter(cpu, NF_FIFO | NF_MEMORY, 0) < 0)
 *         errx(1, \"%s\", nf_last_error());
 *     if (nf_wait(cpu, 1000000000, 0, NULL) < 0)
 *         warnx(\"%s\", nf_last_error());
 *     work();
 *     nf_release(cpu);
 *
 * Functions return a code: NF_OK or a number above it, or one below zero. Any thread may call
 * any of them, but not from a signal handler, and not in a child after fork() until it calls
 * exec(): what is isolated is the parent's. A handle that was released is refused, not
 * followed.
 *
 * Made by `cargo xtask header`; what is changed here is lost.
 */",
    },
    Header {
        file: "tif_helper.h",
        guard: "NOISEFLOOR_TIF_HELPER_H",
        sources: &["tif.rs"],
        about: "\
/*
 * The functions of Intel's Thread Isolation Framework (TIF), for programs that were written for
 * it: they compile unchanged, and link with -lnoisefloor. What is different: nohz_exit() puts
 * back what nohz_enter() found, and so does the process's end; lists of CPUs may begin with 0,
 * be long, and have strides; nothing is printed, and nf_last_error() of noisefloor.h says why
 * something failed.
 *
 * Made by `cargo xtask header`; what is changed here is lost.
 */",
    },
];

/// What structs are called in C.
const NAMES: [(&str, &str); 4] = [
    ("Isolation", "nf_isolation"),
    ("Options", "nf_options"),
    ("Gaps", "nf_gaps"),
    ("Summary", "nf_summary"),
];

fn main() -> ExitCode {
    let check = env::args().nth(1).as_deref() == Some("--check");
    let done: Result<Vec<()>, String> =
        HEADERS.iter().map(|header| header.run(check)).collect();
    match done {
        Ok(_) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("header: {text}");
            ExitCode::FAILURE
        }
    }
}

impl Header {
    fn run(&self, check: bool) -> Result<(), String> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(self.file);
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let text = self.text()?;
        if !check {
            return fs::write(&file, text).map_err(failed);
        }
        if fs::read_to_string(&file).map_err(failed)? == text {
            return Ok(());
        }
        Err(format!("{} is not what cargo xtask header makes", file.display()))
    }

    fn text(&self) -> Result<String, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut config = Config {
            language: Language::C,
            style: Style::Type,
            cpp_compat: true,
            include_guard: Some(self.guard.to_owned()),
            header: Some(self.about.to_owned()),
            no_includes: true,
            sys_includes: if self.file == "noisefloor.h" {
                vec!["stddef.h".to_owned(), "stdint.h".to_owned()]
            } else {
                Vec::new()
            },
            usize_is_size_t: true,
            tab_width: 4,
            documentation_style: DocumentationStyle::Doxy,
            ..Config::default()
        };
        config.function.args = Layout::Horizontal;
        let mut builder = Builder::new().with_config(config);
        for (rust, c) in NAMES {
            builder = builder.rename_item(rust, c);
        }
        for source in self.sources {
            builder = builder.with_src(folder.join(source));
        }
        let bindings = builder.generate().map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        bindings.write(&mut bytes);
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        Ok(comments(&text))
    }
}

/// The text with comments as people write them, which are one line where they fit into one,
/// and without the paragraphs for Rust's callers, which end theirs.
fn comments(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut inside: Option<Vec<&str>> = None;
    for line in text.lines() {
        match (line.trim_start(), &mut inside) {
            ("/**", _) => inside = Some(Vec::new()),
            ("*/", Some(told)) => {
                let blank = &line[..line.len() - " */".len()];
                lines.extend(comment(blank, told));
                inside = None;
            }
            (text, Some(told)) => told.push(text.trim_start_matches('*').trim_start()),
            _ => lines.push(code(line)),
        }
    }
    lines.join("\n") + "\n"
}

/// A line of code without a comment behind it, negative numbers in brackets.
fn code(line: &str) -> String {
    let line = line.split(" // ").next().unwrap_or(line).trim_end();
    match line.strip_prefix("#define ").and_then(|define| define.split_once(" -")) {
        Some((name, number)) => format!("#define {name} (-{number})"),
        None => line.to_owned(),
    }
}

fn comment(blank: &str, told: &[&str]) -> Vec<String> {
    let end = told.iter().position(|line| *line == "# Safety").unwrap_or(told.len());
    let told = match &told[..end] {
        [told @ .., ""] => told,
        told => told,
    };
    if let [alone] = told {
        return vec![format!("{blank}/* {alone} */")];
    }
    let middle =
        told.iter().map(|line| format!("{blank} * {line}").trim_end().to_owned());
    let first = [format!("{blank}/*")].into_iter();
    first.chain(middle).chain([format!("{blank} */")]).collect()
}
