//! Programs of this machine in guests: the same integers again and from another folder, parts that
//! add up, services, and every way in which a program fails, each with its reason and output.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::site::{OLD, Site, named, text};

/// The instructions of a million passes of the loop are more than this, with the start of the
/// program less than that.
const WORK: std::ops::Range<u64> = 4_000_000..16_000_000;
/// An option for cells that never end by themselves.
const SOON: &str = "300ms";

/// Compiles the program of these tests; false, with the reason printed, where there is no compiler.
fn compile(to: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/programs.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(to).arg(source);
    let is_built = compiler.output().is_ok_and(|output| output.status.success());
    if !is_built {
        println!("skipped: no cc with a C library");
    }
    is_built
}

/// The cells of `lab cost` in a folder.
fn cost(site: &Site, folder: &Path, args: &[&str]) -> Vec<Value> {
    let one = ["lab", "cost", "--json", "--set", "variations=1", "-k", OLD];
    let mut command = site.tool(&one);
    let output = command.args(args).current_dir(folder).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all["cells"].as_array().unwrap().clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// The instructions of a group in both modes, which are those of its entries.
fn instructions(group: &Value) -> u64 {
    let all = number(&group["user_instructions"]) + number(&group["kernel_instructions"]);
    let entries = group["entries"].as_array().unwrap();
    let sum: u64 = entries.iter().map(|entry| number(&entry["instructions"])).sum();
    assert_eq!(sum, all, "{group}");
    all
}

/// Checks that the groups of a cell add up to the whole, and returns the group of that name.
fn group<'a>(cell: &'a Value, name: &str) -> &'a Value {
    let summary = &cell["summary"];
    let groups = summary["groups"].as_array().unwrap();
    let sum: u64 = groups.iter().map(instructions).sum();
    assert_eq!(sum, number(&summary["instructions"]), "{summary}");
    groups.iter().find(|group| group["name"] == name).unwrap()
}

/// Check that a program's integers are those of its known work, are the same if it is run again and
/// in another folder, that the parts add up to the whole, and that all of it can be explained.
#[test]
fn same_integers() {
    let Some(site) = Site::new() else { return };
    let [here, there] = ["here", "a/folder/elsewhere"].map(|name| {
        let folder = site.cache().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    });
    if !compile(&here.join("tool")) {
        return;
    }
    fs::copy(here.join("tool"), there.join("tool")).unwrap();
    let first = cost(&site, &here, &["--", "./tool"]);
    let again = cost(&site, &here, &["--fresh", "--", "./tool"]);
    let elsewhere = cost(&site, &there, &["--fresh", "--", "./tool"]);
    for other in [&again[0], &elsewhere[0]] {
        assert_eq!(other["summary"], first[0]["summary"]);
        assert_eq!(other["identity"], first[0]["identity"]);
        assert_eq!(other["doubts"], first[0]["doubts"]);
    }
    let summary = &first[0]["summary"];
    assert_eq!(summary["output"]["text"], "to do: work\nsum 499999500000\n");
    assert!(WORK.contains(&instructions(group(&first[0], "command"))), "{summary}");
    let getppid = group(&first[0], "command")["entries"].as_array().unwrap().iter();
    let getppid = getppid.map(|entry| entry["name"].as_str().unwrap());
    let all: Vec<_> = getppid.collect();
    assert!(all.contains(&"getppid"), "{all:?}");
    let identity = &first[0]["identity"].as_str().unwrap()[..12];
    let explained = site.output(&["lab", "explain", identity, "--whole", "--json"]);
    let of_tick = text(&site.output(&["lab", "explain", identity]).stderr);
    assert!(of_tick.contains("hint: --whole"), "{of_tick}");
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    let explained = &explained["summary"];
    assert_eq!(explained["total_instructions"], summary["instructions"]);
    let functions = explained["functions"].as_array().unwrap();
    let own = functions.iter().map(|function| number(&function["own_instructions"]));
    assert_eq!(own.sum::<u64>(), number(&summary["instructions"]));
    assert!(functions.iter().all(|function| function["total_instructions"].is_null()));
    chart(&site, &here, number(&summary["instructions"]));
}

/// Checks that a chart has the number of the report, and that a metric of other programs is refused
/// with those that the cell has.
fn chart(site: &Site, folder: &Path, instructions: u64) {
    let drawn = |metric: &str| {
        let chart = ["--chart", "chart.svg", "--metric", metric];
        let cost = ["lab", "cost", "--set", "variations=1", "-k", OLD];
        let args = [&cost, &chart[..], &["--", "./tool"]].concat();
        site.tool(&args).current_dir(folder).output().unwrap()
    };
    assert_eq!(drawn("guest_instructions").status.code(), Some(0));
    let svg = fs::read_to_string(folder.join("chart.svg")).unwrap();
    let digits: String = svg.chars().filter(|c| *c != ',').collect();
    assert!(digits.contains(&format!(">{instructions}<")), "{svg}");
    let refused = drawn("units_hz");
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("no metric") && said.contains("guest_instructions"), "{said}");
}

/// An experiment with a row for each of these: its name, and the keys of its program.
fn experiment(rows: &[(&str, &str)]) -> String {
    let mut text =
        format!("name = \"programs\"\nkernels = [\"{OLD}\"]\nvariations = 1\n");
    text += "machine.memory_mib = 128\n";
    for (name, keys) in rows {
        let _ =
            write!(text, "[[workload]]\nname = \"{name}\"\n[workload.program]\n{keys}\n");
    }
    text
}

/// Check that a client and a service talk over loopback, that their instructions are separate, and
/// that a program finds its files, environment, directory and interpreter.
#[test]
fn services_and_files() {
    let Some(site) = Site::new() else { return };
    let tool = site.cache().with_file_name("tool");
    if !compile(&tool) {
        return;
    }
    let service = "run = [\"./tool\", \"ask\"]\n\
        service = [{ name = \"server\", run = [\"./tool\", \"serve\"], ready = { port = 4242 } }]";
    let script = "run = [\"./hello\"]\ndirectory = \"/srv/app\"\n\
        env = { WHO = \"you\" }\nprograms = [\"wc\"]\nexit = [3]\n\
        files = [\n\
        { path = \"/srv/app/hello\", text = \"\"\"\n#!/bin/sh\necho $WHO $(pwd) $(wc -c <data)\n\
        exit 3\n\"\"\" },\n{ path = \"/srv/app/data\", size = \"2KB\" },\n\
        { path = \"/srv/copy\", from = \"./tool\" },\n]";
    let script = script.replace("\"\"\"\n#!", "\"\"\"#!");
    let rows = [("client", service), ("script", script.as_str())];
    let file = site.file("programs.toml", &experiment(&rows));
    let cells = site.cells(&[&file], 0);
    let client = named(&cells, "client");
    let summary = &client["summary"];
    assert_eq!(summary["output"]["text"], "to do: ask\nread 120 bytes\n");
    assert_eq!(summary["services"][0]["output"]["text"], "to do: serve\n");
    for name in ["command", "server", "other"] {
        assert!(instructions(group(client, name)) > 0, "{name}: {summary}");
    }
    let script = &named(&cells, "script")["summary"];
    assert_eq!(script["output"]["text"], "you /srv/app 2000\n", "{script}");
    assert_eq!(script["ended"]["code"], 3);
}

/// A program that fails: its name, the keys of its row, the reason (or several, between bars), and the end of its
/// output.
const FAILURES: [(&str, &str, &str, &str); 9] = [
    ("crash", "", "was killed by signal 11", "to do: crash"),
    ("wait", "", "did not end in 0.3 s of guest time", "to do: wait; hint: --limit 10m"),
    // It fills the memory at about the same time.
    (
        "bomb",
        "",
        "did not end in 0.3 s of guest time|the guest ran out of memory",
        "to do: bomb",
    ),
    ("memory", "", "the guest ran out of memory", "to do: memory"),
    ("output", "", "wrote more than 64 MiB to standard output", "bytes omitted"),
    ("disk", "", "exited with code 1", "write: No space left on device"),
    ("network", "", "exited with code 1", "connect: Network is unreachable"),
    ("exit", "", "exited with code 7", "to do: exit"),
    (
        "mute",
        "service = [{ name = \"deaf\", run = [\"./tool\", \"wait\"], ready = { port = 80 } }]\n",
        "the service 'deaf' was not ready in 0.3 s: TCP port 80 accepts no connection",
        "to do: wait",
    ),
];

/// Check that each program that fails in its guest is a lost cell with its reason and the last line
/// of its output, that the whole output is stored, and that nothing is cached.
#[test]
fn failures() {
    let Some(site) = Site::new() else { return };
    if !compile(&site.cache().with_file_name("tool")) {
        return;
    }
    let keys = FAILURES.map(|(name, more, ..)| {
        // The output of a flood has to arrive before the limit.
        let limit = if name == "output" { "10s" } else { SOON };
        (name, format!("run = [\"./tool\", \"{name}\"]\nlimit = \"{limit}\"\n{more}"))
    });
    let rows: Vec<_> = keys.iter().map(|(name, keys)| (*name, keys.as_str())).collect();
    let file = site.file("programs.toml", &experiment(&rows));
    let cells = site.cells(&[&file], 1);
    for (name, _, reason, last) in FAILURES {
        let lost = &named(&cells, name)["lost"];
        let why = lost["why"].as_str().unwrap_or_else(|| panic!("{name} is not lost"));
        assert!(reason.split('|').any(|one| why.contains(one)), "{name}: {why}");
        assert!(why.contains(last), "{name}: {why}");
        assert!(why.len() < 1000, "{name}: {why}");
        let stored = fs::read(lost["console"].as_str().unwrap()).unwrap();
        let doing =
            if name == "mute" { "to do: wait" } else { &format!("to do: {name}") };
        assert!(text(&stored).contains(doing), "{name}: {}", text(&stored));
        assert!(stored.len() < 1 << 20, "{name}");
    }
    let cached = fs::read_dir(site.cache().join("cells")).unwrap().flatten();
    let is_result = |name: &str| !name.contains('.');
    let results = cached.filter(|file| is_result(file.file_name().to_str().unwrap()));
    assert_eq!(results.count(), 0);
}

/// Check that a guest has enough memory for the whole of a large file, and that one with less than that
/// is refused.
#[test]
fn large_files() {
    let Some(site) = Site::new() else { return };
    let rows = |machine: &str| {
        format!(
            "name = \"large\"\nkernels = [\"{OLD}\"]\nvariations = 1\n{machine}[[workload]]\nname = \"end\"\n\
             [workload.program]\nrun = [\"tail\", \"-c\", \"5\", \"/srv/data\"]\n\
             files = [{{ path = \"/srv/data\", size = \"80MiB\" }}]\n"
        )
    };
    let file = site.file("large.toml", &rows(""));
    let cells = site.cells(&[&file], 0);
    assert_eq!(named(&cells, "end")["summary"]["output"]["text"], "XYZ.\n");
    let file = site.file("small.toml", &rows("machine.memory_mib = 256\n"));
    let output = site.output(&["lab", "run", &file]);
    let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("MiB of memory, and it has 256; hint: --memory"), "{said}");
}

/// Check that a program that cannot run in a guest is an error before anything boots, with what is
/// missing.
#[test]
fn refused() {
    let Some(site) = Site::new() else { return };
    let folder = site.cache();
    let put = |name: &str, bytes: &[u8], mode: u32| {
        let file = folder.join(name);
        fs::write(&file, bytes).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    // A header for 64-bit ARM, EM_AARCH64.
    let mut foreign = vec![0; 64];
    foreign[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    foreign[16..20].copy_from_slice(&[2, 0, 0xb7, 0]);
    put("foreign", &foreign, 0o755);
    put("damaged", b"\x7fELF", 0o755);
    put("plain", b"text", 0o644);
    put("script", b"#!/usr/bin/no-such-shell\n", 0o755);
    put("carriage", b"#!/bin/sh\r\n", 0o755);
    put("text", b"true\n", 0o755);
    let path = std::env::var("PATH").unwrap_or_default();
    let no_program = format!("no program 'no-such-program' in {path}");
    for (program, reason) in [
        ("./nothing", "there is no file ./nothing"),
        ("no-such-program", no_program.as_str()),
        ("./foreign", "is a program for 64-bit ARM, and guests are x86-64"),
        ("./damaged", "is a damaged program: "),
        ("./plain", "./plain is not executable"),
        ("./script", "needs the interpreter /usr/bin/no-such-shell, which does not"),
        (
            "./carriage",
            "needs the interpreter /bin/sh\\r, which does not exist; hint: the lines",
        ),
        ("./text", "/text is neither an ELF program nor a script"),
        ("/proc/self/exe", "belongs to the lab"),
        ("/", "/ is not a file"),
    ] {
        let mut command = site.tool(&["lab", "cost", "-k", OLD, "--", program]);
        let output = command.current_dir(&folder).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{program}: {said}");
        assert!(said.contains(reason), "{program}: {said}");
    }
    assert!(!folder.join("work").exists(), "nothing has booted");
    let command = ["lab", "cost", "-k", OLD, "--", "sh", "-c", "no-such-program"];
    let output = site.tool(&command).output().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("code 127") && said.contains("--program"), "{said}");
    // One of several programs costs only its own cells.
    let rows = [("none", "run = [\"./nothing\"]"), ("true", "run = [\"true\"]")];
    let file = site.file("programs.toml", &experiment(&rows));
    let cells = site.cells(&[&file], 1);
    let why = named(&cells, "none")["lost"]["why"].as_str().unwrap();
    assert!(why.contains("there is no file ") && why.contains("nothing"), "{why}");
    assert!(!named(&cells, "true")["summary"].is_null());
}
