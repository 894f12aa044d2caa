//! Invalid experiments: the message has the place of the mistake, and the allowed values.

use experiments::Experiment;

/// Four lines with which most experiments below begin: their rows begin in line 5.
const HEAD: &str = "name = \"x\"\nkernels = [\"a\", \"b\"]\n\n# rows\n";
/// Three lines of rows that make an experiment of it: more begins in line 8.
const NOISE: &str =
    "[[workload]]\nname = \"n\"\nnoise = { cpu = 0, duration = \"1s\" }\n";

/// A text, and the beginning of its message, after the file's name.
type Case = (&'static str, &'static str);

const WHOLE: &[Case] = &[
    ("", "1:1: missing field `name`"),
    ("name = ", "1:8: string values must be quoted"),
    ("name = \"x\"\nname = \"y\"", "2:1: duplicate key"),
    ("name = \"x\"\nnmae = 1", "2:1: unknown field `nmae`, expected one of `name`, "),
    ("name = \"x y\"", "1:8: 'x y' is not a name: write one word"),
    ("name = 1", "1:8: invalid type: integer `1`, expected a string"),
    ("name = \"x\"\nabout = \"a\\nb\"", "2:9: one line is expected here"),
    ("name = \"x\"", "1:1: missing field `kernels`"),
    (
        "name = \"x\"\nkernels = []",
        "2:11: invalid length 0, expected an array with an entry",
    ),
    ("kernels = \"a\"", "1:11: invalid type: string \"a\", expected an array with"),
    ("kernels = [\"a\", \" \"]", "1:17: ' ' is not a kernel: write debian:6.1-cloud, "),
    (
        "kernels = [\"a\", \"debian:6.1-desktop\"]",
        "1:17: debian:6.1-desktop: 'desktop' is",
    ),
    ("name = \"x\"\nkernels = [\"a\"]", "1:8: no workload: add a [[workload]] with "),
];

/// After [`HEAD`].
const ROWS: &[Case] = &[
    ("mode = \"fast\"", "5:8: 'fast' is no mode: exact or timed"),
    ("repeats = 0", "5:11: invalid value: integer `0`, expected a number from 1 to 1000"),
    ("machine.type = \"q35\"", "5:16: 'q35' is no machine: pc or microvm"),
    (
        "machine.cpus = 9",
        "5:16: invalid value: integer `9`, expected a number from 1 to 8",
    ),
    ("machine.cpus = \"2\"", "5:16: invalid type: string \"2\", expected a number from "),
    ("machine.memory_mib = 79", "5:22: invalid value: integer `79`, expected a number "),
    ("machine.cpu = \"a b\"", "5:15: 'a b' is not a CPU model of QEMU's"),
    ("machine.cpu = \"-x\"", "5:15: '-x' is not a CPU model of QEMU's"),
    ("machine.sockets = 1", "5:9: unknown field `sockets`, expected one of `type`, "),
    ("[[boot]]\nname = \"\"", "6:8: '' is not a name"),
    ("[[boot]]\ncpus = 0", "6:8: invalid value: integer `0`, expected a number from"),
    ("[[boot]]\nparams = \"x\"", "6:1: unknown field `params`, expected one of `name`, "),
    ("[[boot]]\nappend = \"a\\nb\"", "6:10: parameters are one line of printable ASCII"),
    ("[[boot]]\nappend = 'x=\"y z'", "6:10: a double quote is not closed"),
    ("[[boot]]\nappend = 'a console=tty0'", "6:10: the lab itself sets console="),
    ("[[boot]]\nappend = '\"panic=1\"'", "6:10: the lab itself sets panic="),
    ("[[boot]]\nappend = 'rdinit=/x'", "6:10: the lab itself sets rdinit="),
    ("[[boot]]\nappend = 'init=/x'", "6:10: the lab itself sets init="),
    ("[[boot]]\nappend = 'a -- b'", "6:10: '--' would hide the lab's own parameters"),
    ("[[setting]]\nwrite = {}", "6:9: invalid length 0, expected a table with an"),
    ("[[setting]]\nwrite = { \"/etc/x\" = \"1\" }", "6:11: '/etc/x' is not a setting"),
    ("[[setting]]\nwrite = { \"/proc/sys/../x\" = \"1\" }", "6:11: '/proc/sys/../x' is"),
    ("[[setting]]\nwrite = { \"/sys/\" = \"1\" }", "6:11: '/sys/' is not a setting"),
    ("[[setting]]\nwrite = { \"/sys/x\" = \"\" }", "6:22: a setting's value is one line"),
    ("[[setting]]\nwrite = { \"/sys/x\" = 1 }", "6:22: invalid type: integer `1`"),
    ("[[workload]]\nticks = 1", "6:9: invalid type: integer `1`, expected a table"),
    ("\n[[workload]]", "6:1: missing field `name`"),
    (
        "[[workload]]\nname = \"n\"",
        "5:1: a workload is exactly one of noise, ticks, calls, ",
    ),
];

/// After [`HEAD`] and a `[[workload]]` of some name: in line 7.
const WORKLOADS: &[Case] = &[
    (
        "noise = { cpu = 0, duration = \"1s\" }\nticks = { cpu = 0, duration = \"1s\" }",
        "5:1: a workload is exactly one of noise, ticks, calls, nohz, slices, latency and program",
    ),
    ("noise = { cpu = 0 }", "7:9: missing field `duration`"),
    (
        "slices = { spinners = 1, duration = \"1s\", sample = \"2s\" }",
        "7:52: a sample must not be longer than a phase: the duration by `phases`",
    ),
    ("slices = { spinners = 0, duration = \"1s\" }", "7:23: invalid value: integer `0`"),
    (
        "slices = { spinners = 1, duration = \"1s\" }\n[[setting]]\nkernels = [\"c\"]",
        "1:8: there is no cell: no boot row or no setting row is for one of these kernels",
    ),
    (
        "slices = { spinners = 1, duration = \"1s\" }\n[[setting]]\nboots = [\"c\"]",
        "9:10: no boot row 'c': there are '' (the row without a name)",
    ),
    (
        "latency = { cpu = 0, interval = \"2s\", duration = \"1s\" }",
        "7:33: the interval must not be longer than the duration",
    ),
    ("noise = { cpu = 0, duration = \"0s\" }", "7:31: 0s is not a length of more than"),
    ("ticks = { cpu = 0, duration = \"61m\" }", "7:31: 61m is not a length of more than"),
    ("noise = { cpu = 0, duration = \"5\" }", "7:31: '5' is not a length of time"),
    ("noise = { cpu = 0, duration = 5 }", "7:31: invalid type: integer `5`"),
    (
        "noise = { cpu = 0, duration = \"1s\", fifo = 100 }",
        "7:44: invalid value: integer `100`, expected a number from 1 to 99",
    ),
    ("noise = { cpu = 0, duration = \"1s\", fifo = 0 }", "7:44: invalid value: "),
    (
        "noise = { cpu = 0, duration = \"1s\", threshold = \"1s\" }",
        "7:49: the threshold must be shorter than the duration",
    ),
    (
        "noise = { cpu = 1, duration = \"1s\" }",
        "7:17: no CPU 1: the guest has only CPU 0; cpus gives it more",
    ),
    ("noise = { cpu = -1, duration = \"1s\" }", "7:17: invalid value: integer `-1`, exp"),
    (
        "noise = { cpu = \"first\", duration = \"1s\" }",
        "7:17: invalid value: string \"first\", expected a CPU's number or \"last\"",
    ),
    (
        "ticks = { cpu = 0, duration = \"1s\", fifo = 1 }",
        "7:37: unknown field `fifo`, expected `cpu` or `duration`",
    ),
    (
        "noise = { cpu = 0, duration = \"1s\" }\ntrace = \"strace\"",
        "8:9: unknown event source 'strace' (expected bpf, bpf_classic or tracefs)",
    ),
    (
        "slices = { spinners = 1, duration = \"1s\" }\ntrace = \"bpf\"",
        "8:9: only noise, ticks, calls and latency can be traced",
    ),
    (
        "calls = { cpu = 0, calls = [], repeats = 1 }",
        "7:28: invalid length 0, expected an array with an entry",
    ),
    (
        "calls = { cpu = 0, calls = [\"getpid\", \"getpid\"], repeats = 1 }",
        "7:39: this call is named twice",
    ),
    (
        "calls = { cpu = 0, calls = [\"getpid\", \"exit\"], repeats = 1 }",
        "7:39: unknown variant `exit`, expected one of `getpid`, `clock_gettime`, ",
    ),
    (
        "calls = { cpu = 0, calls = [\"getpid\"], repeats = 0 }",
        "7:50: invalid value: integer `0`, expected a number from 1 to 100000",
    ),
];

/// After [`HEAD`], a `[[workload]]` of some name and the beginning of its program: in line 9.
const PROGRAMS: &[Case] = &[
    ("run = []", "9:7: invalid length 0, expected an array with an entry"),
    ("run = [\"\"]", "9:8: the name of the program is empty"),
    ("run = [\"a\\u0000\"]", "9:8: a text for a program has no NUL character"),
    ("run = \"a b\"", "9:7: invalid type: string \"a b\", expected an array"),
    ("run = [\"a\"]\nrnu = 1", "10:1: unknown field `rnu`, expected one of `run`, "),
    ("run = [\"a\"]\nprograms = [\"\"]", "10:13: the name of the program is empty"),
    ("run = [\"a\"]\ndirectory = \"b\"", "10:13: 'b' is not a path in the guest: it"),
    ("run = [\"a\"]\nenv = { \"a=\" = \"\" }", "10:9: 'a=' is not the name of an"),
    ("run = [\"a\"]\nexit = [256]", "10:9: invalid value: integer `256`, expected a"),
    ("run = [\"a\"]\nlimit = \"2h\"", "10:9: 2h is not a length of more than 0s"),
    (
        "run = [\"a\"]\nunit = { name = \"b\", count = 0 }",
        "10:30: invalid value: integer `0`, expected a number from 1 to",
    ),
    ("run = [\"a\"]\nunit = \"b\"", "10:8: invalid type: string \"b\", expected a table"),
    (
        "run = [\"a\"]\nfiles = [{ path = \"/init\", text = \"\" }]",
        "10:19: /init belongs to the lab: a file must not be /init, ",
    ),
    (
        "run = [\"a\"]\nfiles = [{ path = \"/program/b\", text = \"\" }]",
        "10:19: /program/b belongs to the lab: ",
    ),
    (
        "run = [\"a\"]\nfiles = [{ path = \"/sys\", directory = true }]",
        "10:19: /sys belongs to the lab: ",
    ),
    ("run = [\"a\"]\ndirectory = \"/init\"", "10:13: /init belongs to the lab: "),
    (
        "run = [\"a\"]\nfiles = [{ path = \"/b\" }]",
        "10:19: a file has exactly one of text, size and from, or is a directory",
    ),
    (
        "run = [\"a\"]\nfiles = [{ path = \"/b\", size = \"2K\" }]",
        "10:32: '2K' is not a size: write it as 512B, ",
    ),
    (
        "run = [\"a\"]\nfiles = [{ path = \"/b\", text = \"\", mode = \"888\" }]",
        "10:43: '888' is not the mode of a file: write it in octal",
    ),
    (
        "run = [\"a\"]\nfiles = [{ path = \"/b\", text = \"\" }, { path = \"/b\", size = 1 }]",
        "10:47: two files have the path /b",
    ),
    (
        "run = [\"a\"]\n[[workload.program.service]]\nname = \"s\"",
        "10:1: missing field `run`",
    ),
    (
        "run = [\"a\"]\n[[workload.program.service]]\nname = \"s\"\nrun = [\"\"]",
        "12:8: the name of the program is empty",
    ),
    (
        "run = [\"a\"]\n[[workload.program.service]]\nname = \"s\"\nrun = [\"b\"]\n\
         ready = { port = 80, file = \"/c\" }",
        "13:9: ready is exactly one of port, socket and file",
    ),
    (
        "run = [\"a\"]\n[[workload.program.service]]\nname = \"s\"\nrun = [\"b\"]\n\
         [[workload.program.service]]\nname = \"s\"\nrun = [\"b\"]",
        "14:8: two services are named 's'",
    ),
];

/// After [`HEAD`] and [`NOISE`].
const TOGETHER: &[Case] = &[
    ("boots = [\"z\"]", "8:10: no boot row 'z': there are '' (the row without a name)"),
    ("boots = []", "8:9: invalid length 0, expected an array with an entry"),
    (
        "background = [{ cpu = 1, spinners = 1 }]",
        "8:23: no CPU 1: the guest has only CPU",
    ),
    ("background = [{ cpu = 0, spinners = 0 }]", "8:37: invalid value: integer `0`"),
    (
        "[[workload]]\nname = \"n\"\nticks = { cpu = 0, duration = \"1s\" }",
        "8:1: two workload rows are named 'n'",
    ),
    ("[[boot]]\n[[boot]]", "9:1: two boot rows have no name"),
    (
        "[[boot]]\nname = \"p\"\n[[boot]]\nname = \"p\"",
        "10:1: two boot rows are named 'p'",
    ),
    ("[[setting]]\n[[setting]]", "9:1: two setting rows have no name"),
    (
        "[[setting]]\n[[setting.service]]\nname = \"s\"\nrun = [\"\"]",
        "11:8: the name of the program is empty",
    ),
    (
        "[[setting]]\n[[setting.service]]\nname = \"s\"\nrun = [\"a\"]\nready = { text = \"x\" }",
        "12:9: a text that a file must have needs a file",
    ),
    (
        "boots = [\"\"]\n[[boot]]\n[[boot]]\nname = \"q\"",
        "10:1: no workload runs with boot",
    ),
    (
        "[[boot]]\nname = \"a\"\n[[boot]]\n[[setting]]\nname = \"a\"\n[[setting]]",
        "6:8: two combinations of rows are named 'a n'",
    ),
    ("[machine]\ncpu = \"host\"", "9:7: exact mode emulates the CPU"),
    ("[[boot]]\ncpu = \"host,-x\"", "9:7: exact mode emulates the CPU"),
    ("[limits]\nx = \"2600\"", "9:5: '2600' is not a limit: write < <= == >= or > and a"),
    ("[limits]\nx = \"<= many\"", "9:5: '<= many' is not a limit"),
    ("[limits]\nx = \"<= \"", "9:5: '<= ' is not a limit"),
    ("[limits]\nx = 5", "9:5: a limit is a text: \"<= 5\""),
    ("[limits]\nx = 0.5", "9:5: a limit is a text: \"<= 0.5\""),
    ("[limits]\nx = true", "9:5: invalid type: boolean `true`, expected a limit, a text"),
    ("[limits]\n\"X y\" = \"<= 1\"", "9:1: 'X y' is not a metric"),
    ("[limits]", "8:1: invalid length 0, expected a table with an entry"),
    ("[[limit]]\nkernels = [\"a\"]", "8:1: missing field `metrics`"),
    (
        "[[limit]]\nmetrics.x = \"< 1\"\ncells = [\"m\"]",
        "10:10: no cell 'm': there are 'n'",
    ),
    (
        "[[limit]]\nmetrics.x = \"< 1\"\nkernels = [\"c\"]",
        "10:12: no kernel 'c': there are 'a', 'b'",
    ),
    ("[[baseline]]\nmetrics.x = 1\ncell = \"m\"", "10:8: no cell 'm': there are 'n'"),
    (
        "[[baseline]]\nmetrics.x = 1\ncell = \"n\"\nkernel = \"c\"",
        "11:10: no kernel 'c': there are 'a', 'b'",
    ),
    (
        "[[baseline]]\nmetrics.x = \"1\"",
        "9:13: expected a number, or { value = 2650.5, tolerance = 12.5 }",
    ),
    (
        "[[baseline]]\ncell = \"n\"\nmetrics.x = { value = 1, tolerance = -1 }",
        "10:9: the tolerance must not be less than 0",
    ),
    ("[[baseline]]\ntolerance_ppm = -1", "9:17: invalid value: integer `-1`, expected"),
];

#[track_caller]
fn check(before: &str, cases: &[Case]) {
    for (text, why) in cases {
        let text = format!("{before}{text}");
        let read = Experiment::parse(&text, "x.toml");
        let Err(error) = read.and_then(|experiment| experiment.with_kernels(&[])) else {
            panic!("this is not refused:\n{text}");
        };
        let message = error.to_string();
        let place = format!("x.toml:{why}");
        assert!(
            message.starts_with(&place),
            "{message}\ninstead of\n{place}\nfor\n{text}"
        );
        assert!(!message.contains('\n'), "{message}");
    }
}

/// Check mistakes at the top, with their place.
#[test]
fn whole() {
    check("", WHOLE);
}

/// Check mistakes in a row, with their place.
#[test]
fn rows() {
    check(HEAD, ROWS);
}

/// Check mistakes in a workload, with their place.
#[test]
fn workloads() {
    check(&format!("{HEAD}[[workload]]\nname = \"n\"\n"), WORKLOADS);
}

/// Check mistakes in a program, with their place.
#[test]
fn programs() {
    let program = "[[workload]]\nname = \"n\"\n\n[workload.program]\n";
    check(&format!("{HEAD}{program}"), PROGRAMS);
}

/// Check mistakes in combinations of rows, with their place.
#[test]
fn together() {
    check(&format!("{HEAD}{NOISE}"), TOGETHER);
}

/// Check that a kernel named twice and a table of too many cells are refused.
#[test]
fn too_many() {
    let twice = format!("name = \"x\"\nkernels = [\"a\", \"a\"]\n{NOISE}");
    let many = format!("name = \"x\"\nkernels = [\"a\"]\nrepeats = 1000\n{NOISE}");
    let boots: String = (0..11).map(|n| format!("[[boot]]\nname = \"{n}\"\n")).collect();
    check("", &[(twice.leak(), "2:17: kernel 'a' is named twice")]);
    let many = format!("{many}{boots}");
    check("", &[(many.leak(), "1:8: these are 11000 cells, and 10000 are the most")]);
}
