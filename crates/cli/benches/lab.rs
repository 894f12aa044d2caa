//! The cost of the lab, compared with bare QEMU and virtme-ng: `cargo bench -p cli --bench lab`.
//!
//! The compared programs run in turn, so that drifting machine speed affects all alike. Bare
//! QEMU gets the same files and arguments as from the lab: a script in place of QEMU records
//! them. The cells are removed from the cache before each run, but not kernels and the names of
//! their functions. Start-up is compared with all of `vng ... --exec true`, including udev and
//! the modules that it loads.

use std::env;
use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// The folder of the lab's cache for these runs, and of other files that later runs reuse.
const PLACE: &str = env!("CARGO_TARGET_TMPDIR");
/// Runs of each program; the median is reported.
const RUNS: usize = 3;
/// The kernel of `tick-cost`.
const KERNELS: [&str; 2] = ["debian:6.1-cloud", "debian:6.12-cloud"];
/// A kernel for virtme-ng: cloud kernels lack the file systems it needs.
const STOCK: &str = "debian:6.1";
/// The shortest measurement.
const SHORTEST: &str = "
name = \"start-up\"
about = \"one system call\"
kernels = [\"debian:6.1\"]

[[workload]]
name = \"getpid\"
calls = { cpu = 0, calls = [\"getpid\"], repeats = 1 }
";
/// A script in place of QEMU that records its arguments and results in the folder TO.
const RECORDER: &str = "#!/bin/sh -e
if [ \"$1\" = --version ]; then exec 'QEMU' --version; fi
cp -L ./* 'TO'
printf '%s\\n' \"$@\" >'TO/arguments'
'QEMU' \"$@\"
cp answer 'TO/expected'
";
/// Unpacks the Debian package that is its argument into a folder of that name.
const UNPACK: &str = "
rm -rf new ./*.deb
apt-get download -q \"$1\"
dpkg-deb -x ./*.deb new
mv new \"$1\"
";

type Result<T> = std::result::Result<T, Box<dyn Error>>;
/// One program of a comparison: runs once, and returns the seconds that it took.
type Side<'a> = &'a dyn Fn() -> Result<f64>;

fn main() -> Result<()> {
    println!("the lab, median of {RUNS} runs; seconds, beside what limits them");
    let Some(lab) = found(Lab::open()) else { return Ok(()) };
    one_cell(&lab, 1)?;
    one_cell(&lab, 2)?;
    program(&lab)?;
    whole_experiment(&lab)?;
    start_up(&lab)
}

/// One cell of a second, from command to result, and its boot with and without counter.
fn one_cell(lab: &Lab, cpus: u32) -> Result<()> {
    let cpus = format!("cpus={cpus}");
    let other = ["--set", "workload=other", "--set", &cpus];
    let args = [&["run", "tick-cost", "--kernel", KERNELS[0]], &other[..]].concat();
    let guest = lab.record(&args)?;
    let bare = || guest.boot(false);
    let [whole, counted, bare] =
        in_turn([&|| lab.anew(&args), &|| guest.boot(true), &bare])?;
    beside(&format!("one cell, {cpus}"), whole, "bare QEMU", bare, 1.3);
    beside(&format!("the counter, {cpus}"), counted, "bare QEMU", bare, 3.0);
    if !guest.agrees()? {
        println!("    the answer without the counter was another: the work may differ");
    }
    Ok(())
}

/// A program that mostly makes system calls, from command to result.
fn program(lab: &Lab) -> Result<()> {
    let copy = ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=400000"];
    let args = [&["cost", "-k", KERNELS[0], "--"], &copy[..]].concat();
    lab.know(&args)?;
    let guest = lab.record(&args)?;
    let [whole, bare] = in_turn([&|| lab.anew(&args), &|| guest.boot(false)])?;
    beside("a program (dd)", whole, "bare QEMU", bare, 1.3);
    if !guest.agrees()? {
        println!("    the answer without the counter was another: the work may differ");
    }
    Ok(())
}

/// An experiment of six cells, run and then read from the cache.
fn whole_experiment(lab: &Lab) -> Result<()> {
    let args = ["run", "tick-cost"];
    let [run, taken] =
        in_turn([&|| lab.anew(&args), &|| seconds(&mut lab.command(&args))])?;
    line("tick-cost, run", run, 40.0);
    line("tick-cost, cached", taken, 0.5);
    Ok(())
}

/// Boot and shutdown of a stock kernel.
fn start_up(lab: &Lab) -> Result<()> {
    let file = lab.cache.join("start-up.toml");
    fs::write(&file, SHORTEST)?;
    let file = file.display().to_string();
    let ready = || -> Result<(&str, String)> {
        let vng = virtme_ng().ok_or("no virtme-ng")?;
        let image = stock_kernel(lab)?.display().to_string();
        seconds(&mut virtme(vng, &image))?;
        Ok((vng, image))
    };
    let Some((vng, image)) = found(ready()) else { return Ok(()) };
    let exact = ["run", &file, "--kernel", &image];
    let timed = [&exact[..], &["--mode", "timed"]].concat();
    lab.know(&exact)?;
    lab.know(&timed)?;
    let theirs = || seconds(&mut virtme(vng, &image));
    let [exact, timed, theirs] =
        in_turn([&|| lab.anew(&exact), &|| lab.anew(&timed), &theirs])?;
    // Both emulate at full speed; counting instructions, which virtme-ng cannot do, takes the
    // emulator twice as long.
    beside("start-up, timed", timed, "virtme-ng", theirs, 0.5);
    beside("start-up, exact", exact, "virtme-ng", theirs, 1.0);
    Ok(())
}

/// The lab with a cache for these runs.
struct Lab {
    cache: PathBuf,
    qemu: PathBuf,
}

impl Lab {
    /// Finds the files that the lab needs; an error names missing ones.
    fn open() -> Result<Self> {
        let lab = Self { cache: Path::new(PLACE).join("lab"), qemu: qemu()? };
        fs::create_dir_all(&lab.cache)?;
        lab.share_kernels()?;
        seconds(&mut lab.command(&[&["kernels"], &KERNELS[..]].concat()))?;
        lab.know(&["run", "tick-cost"])?;
        Ok(lab)
    }

    /// Uses kernels of the user's cache, if one is named.
    fn share_kernels(&self) -> Result<()> {
        let kernels = self.cache.join("kernels");
        let _ = fs::remove_file(&kernels); // it may be an older link, or missing
        if let (Some(user), false) = (env::var_os("NOISEFLOOR_CACHE"), kernels.exists()) {
            let shared = Path::new(&user).join("kernels");
            fs::create_dir_all(&shared)?;
            symlink(shared.canonicalize()?, kernels)?;
        }
        Ok(())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TOOL);
        command.arg("lab").args(args).env("NOISEFLOOR_CACHE", &self.cache);
        command
    }

    /// Reads the names of the kernels' functions, which are cached.
    fn know(&self, args: &[&str]) -> Result<()> {
        seconds(&mut self.command(args)).map(drop)
    }

    /// Runs cells that are not cached.
    fn anew(&self, args: &[&str]) -> Result<f64> {
        empty(&self.cache.join("cells"))?;
        seconds(&mut self.command(args))
    }

    /// The guest that runs the one cell.
    fn record(&self, args: &[&str]) -> Result<Guest> {
        let folder = self.cache.join("recorded");
        empty(&folder)?;
        let recorder = self.cache.join("recorder");
        let [to, qemu] = [&folder, &self.qemu].map(|path| path.display().to_string());
        fs::write(&recorder, RECORDER.replace("TO", &to).replace("QEMU", &qemu))?;
        fs::set_permissions(&recorder, Permissions::from_mode(0o755))?;
        empty(&self.cache.join("cells"))?;
        seconds(self.command(args).env("NOISEFLOOR_QEMU", &recorder))?;
        let arguments = fs::read_to_string(folder.join("arguments"))?;
        let arguments = arguments.lines().map(str::to_owned).collect();
        Ok(Guest { folder, qemu: self.qemu.clone(), arguments })
    }
}

/// A guest as the lab boots it.
struct Guest {
    folder: PathBuf,
    qemu: PathBuf,
    arguments: Vec<String>,
}

impl Guest {
    /// Boots it with the counter or without.
    fn boot(&self, counted: bool) -> Result<f64> {
        let plugin = self.arguments.iter().position(|word| word == "-plugin");
        let plugin = plugin.ok_or("the lab did not count")?;
        let mut arguments = self.arguments.clone();
        if !counted {
            arguments.drain(plugin..plugin + 2);
        }
        let mut qemu = Command::new(&self.qemu);
        seconds(qemu.args(arguments).current_dir(&self.folder))
    }

    /// Whether the last boot produced the same answer as the one in the lab.
    fn agrees(&self) -> Result<bool> {
        let read = |name: &str| fs::read(self.folder.join(name));
        Ok(read("answer")? == read("expected")?)
    }
}

/// The QEMU that the lab finds, if it is new enough to count.
fn qemu() -> Result<PathBuf> {
    let named = env::var_os("NOISEFLOOR_QEMU");
    let program = named.map_or("qemu-system-x86_64".into(), PathBuf::from);
    let version = text(Command::new(&program).arg("--version"))?;
    let number = version.strip_prefix("QEMU emulator version ").unwrap_or_default();
    match number.split('.').next().map(str::parse::<u32>) {
        Some(Ok(10..)) => Ok(program),
        _ => Err(format!("no QEMU 10: {}", version.lines().next().unwrap_or("?")).into()),
    }
}

/// The name of virtme-ng's program on the path.
fn virtme_ng() -> Option<&'static str> {
    let runs = |name: &&str| text(Command::new(name).arg("--version")).is_ok();
    ["vng", "virtme-ng"].into_iter().find(runs)
}

/// Boots that kernel with virtme-ng, and ends it.
fn virtme(vng: &str, image: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["300", vng, "--run", image, "--disable-kvm", "--exec", "true"]);
    command
}

/// The image of the stock kernel, in a tree with its modules, where virtme-ng looks for
/// them.
fn stock_kernel(lab: &Lab) -> Result<PathBuf> {
    let kernels = text(&mut lab.command(&["kernels", STOCK]))?;
    let mut rows = kernels.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.first() == Some(&STOCK));
    let Some([_, release, version]) = row.as_deref() else {
        return Err(format!("{STOCK} is not in the list of kernels").into());
    };
    let package = format!("linux-image-{release}={version}");
    if !Path::new(PLACE).join(&package).exists() {
        let mut unpack = Command::new("sh");
        seconds(unpack.args(["-ec", UNPACK, "sh", &package]).current_dir(PLACE))?;
    }
    Ok(Path::new(PLACE).join(package).join(format!("boot/vmlinuz-{release}")))
}

/// The median seconds of each program.
fn in_turn<const N: usize>(sides: [Side<'_>; N]) -> Result<[f64; N]> {
    let mut runs = [const { Vec::new() }; N];
    for _ in 0..RUNS {
        for (side, runs) in sides.iter().zip(&mut runs) {
            runs.push(side()?);
        }
    }
    Ok(runs.map(|mut runs| {
        runs.sort_by(f64::total_cmp);
        runs[RUNS / 2]
    }))
}

/// The duration of a command that must succeed.
fn seconds(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    text(command)?;
    Ok(start.elapsed().as_secs_f64())
}

/// The output of a command that must succeed; otherwise the last line of its error output.
fn text(command: &mut Command) -> Result<String> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    // 4: durations are meaningless with an emulated processor.
    if !matches!(output.status.code(), Some(0 | 4)) {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let silent = || format!("{program} ended with {}", output.status);
        return Err(complaint.lines().last().map_or_else(silent, str::to_owned).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Creates an empty folder.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir(folder)?)
}

fn line(name: &str, value: f64, limit: f64) {
    println!("  {name:<20} {value:>7.2} of {limit:.2}   {:.2}", value / limit);
}

fn beside(name: &str, value: f64, other: &str, theirs: f64, limit: f64) {
    let ratio = value / theirs;
    println!(
        "  {name:<20} {value:>7.2}, {other} {theirs:.2}   {ratio:.2} of at most {limit:.2}"
    );
}

/// The result; if something is missing, prints that, which is not a failure.
fn found<T>(what: Result<T>) -> Option<T> {
    what.inspect_err(|why| println!("  skipped: {why}")).ok()
}
