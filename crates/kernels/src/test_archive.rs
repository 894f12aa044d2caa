//! A complete archive with kernel packages in a folder, and a machine with that source only: the
//! system's real package client is tested without a network.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::image::{checksum, synthetic};
use crate::kernel::Kernel;
use crate::resolve::Kernels;
use units::chain;

use crate::{Error, Fetch, Kind, options};

/// The suite of the machine's own release.
const OWN: &str = "bookworm";
/// Longer than stopping takes on a busy machine, and much shorter than the package client waits for
/// an archive that stalls.
const SOON: Duration = Duration::from_secs(10);

/// A machine with Debian's archive on its own disk.
struct Machine {
    root: TempDir,
}

impl Machine {
    /// `None`, and why, if packages cannot be made or read.
    fn new(test: &str) -> Option<Self> {
        for program in ["apt-get", "apt-cache", "dpkg-deb", "tar"] {
            if Command::new(program).arg("--version").output().is_err() {
                println!("skipped: {test}: there is no {program} here");
                return None;
            }
        }
        let root = tempfile::tempdir().unwrap();
        let machine = Self { root };
        machine.sources(&format!("[trusted=yes] file:{}", machine.archive().display()));
        machine.publish(OWN);
        Some(machine)
    }

    /// Sets the machine's source of packages.
    fn sources(&self, place: &str) {
        let line = format!("deb {place} {OWN} main\n");
        write(&self.root.path().join("etc/apt/sources.list"), line);
    }

    fn archive(&self) -> PathBuf {
        self.root.path().join("debian")
    }

    /// Adds a package with those files to the machine's own suite.
    fn add(&self, name: &str, version: &str, depends: &str, files: &[(String, Vec<u8>)]) {
        self.add_to(OWN, (name, version, depends), files);
    }

    /// Adds a package of that name, version and dependencies to a suite.
    fn add_to(
        &self,
        suite: &str,
        package: (&str, &str, &str),
        files: &[(String, Vec<u8>)],
    ) {
        let (name, version, depends) = package;
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            write(&folder.path().join(path), bytes);
        }
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\n{depends}\
             Maintainer: a test <test@mail.example>\nDescription: a test\n"
        );
        write(&folder.path().join("DEBIAN/control"), &control);
        let file = format!("pool/{suite}/{name}_{version}_amd64.deb");
        fs::create_dir_all(self.archive().join("pool").join(suite)).unwrap();
        let mut build = Command::new("dpkg-deb");
        build
            .args(["--build", "-Zgzip"])
            .arg(folder.path())
            .arg(self.archive().join(&file));
        let built = build.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let bytes = fs::read(self.archive().join(&file)).unwrap();
        let place = format!(
            "Filename: {file}\nSize: {}\nSHA256: {}\n\n",
            bytes.len(),
            checksum(&bytes)
        );
        write(
            &self.archive().join(format!("pool/{suite}/{name}_{version}.entry")),
            control + &place,
        );
        self.publish(suite);
    }

    /// Adds a kernel in one package to the machine's own suite, with modules.
    fn add_kernel(&self, release: &str, version: &str) {
        self.add_kernel_to(OWN, release, version);
    }

    fn add_kernel_to(&self, suite: &str, release: &str, version: &str) {
        let config = options::synthetic_without("").into_bytes();
        let files = [
            (format!("boot/vmlinuz-{release}"), synthetic(release)),
            (format!("boot/config-{release}"), config),
            (format!("lib/modules/{release}/kernel/a.ko"), vec![0; 1000]),
        ];
        self.add_to(suite, (&format!("linux-image-{release}"), version, ""), &files);
    }

    /// Writes a suite's tables of contents.
    fn publish(&self, suite: &str) {
        let entries = fs::read_dir(self.archive().join("pool").join(suite));
        let entries = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
        let entries =
            entries.filter(|path| path.extension().is_some_and(|e| e == "entry"));
        let packages: String =
            entries.map(|path| fs::read_to_string(path).unwrap()).collect();
        let folder = self.archive().join("dists").join(suite);
        write(&folder.join("main/binary-amd64/Packages"), &packages);
        let release = format!(
            "Origin: Debian\nSuite: {suite}\nCodename: {suite}\n\
             Date: Sat, 01 Jan 2022 00:00:00 UTC\nArchitectures: amd64\nComponents: main\n\
             SHA256:\n {} {} main/binary-amd64/Packages\n",
            checksum(packages.as_bytes()),
            packages.len()
        );
        write(&folder.join("Release"), &release);
    }

    fn cache(&self) -> PathBuf {
        self.root.path().join("a cache")
    }

    fn kernels(&self) -> Kernels {
        Kernels::of_machine(self.root.path(), &self.cache())
    }

    /// Finds a kernel; also the lines of progress.
    fn find(&self, spec: &str, fresh: bool) -> (Result<Kernel, Error>, Vec<String>) {
        let mut said = Vec::new();
        let mut say = |text: &str| said.push(text.to_owned());
        let stop = AtomicBool::new(false);
        let mut fetch = Fetch { fresh, stop: &stop, say: &mut say };
        let found = self.kernels().find(spec, &mut fetch);
        (found, said)
    }

    /// Why a kernel is not available.
    fn refusal(&self, spec: &str) -> String {
        let error = self.find(spec, false).0.unwrap_err();
        assert_eq!(error.kind(), Kind::Unavailable, "{error}");
        chain(&error)
    }

    /// The incomplete downloads of the package client.
    fn partial(&self) -> Vec<PathBuf> {
        let is_kept = |path: &PathBuf| {
            let text = path.to_string_lossy();
            text.contains("/partial/") || text.contains("/.new-")
        };
        let mut files = Vec::new();
        let mut folders = vec![self.cache()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.retain(is_kept);
        files
    }
}

/// Serves the archive on this machine, until a request for a path that contains `stalls`: that one
/// is answered in part, and the connection remains open. Reports that.
fn serve(machine: &Machine, stalls: &'static str, stalled: Sender<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    machine.sources(&format!("[trusted=yes] http://{address}/debian"));
    let root = machine.root.path().to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (root, stalled) = (root.clone(), stalled.clone());
            std::thread::spawn(move || answer(stream, &root, stalls, &stalled));
        }
    });
}

/// Answers the requests of one connection.
fn answer(
    mut stream: TcpStream,
    root: &Path,
    stalls: &str,
    stalled: &Sender<TcpStream>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut request = String::new();
        reader.read_line(&mut request).ok().filter(|length| *length > 0)?;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        }
        let path = request.split(' ').nth(1)?.trim_start_matches('/');
        let Ok(bytes) = fs::read(root.join(path.replace("%7e", "~"))) else {
            stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .ok()?;
            continue;
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len());
        stream.write_all(head.as_bytes()).ok()?;
        if path.contains(stalls) {
            stream.write_all(&bytes[..bytes.len() / 2]).ok()?;
            return stalled.send(stream).ok();
        }
        stream.write_all(&bytes).ok()?;
    }
}

/// Ends the search for a kernel while the archive stalls, and checks that it ends soon and
/// that nothing is left.
fn ends_while_stalled(test: &str, stalls: &'static str) {
    let Some(machine) = Machine::new(test) else { return };
    if ["http_proxy", "HTTP_PROXY"].iter().any(|name| std::env::var_os(name).is_some()) {
        println!("skipped: {test}: a proxy is set");
        return;
    }
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    let (stalled, hear) = channel();
    serve(&machine, stalls, stalled);
    let stop = AtomicBool::new(false);
    let (ended, took) = std::thread::scope(|scope| {
        let search = scope.spawn(|| {
            let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut |_| {} };
            let found = machine.kernels().find("debian:6.1", &mut fetch);
            (found, Instant::now())
        });
        let connection = hear.recv().unwrap();
        stop.store(true, Ordering::Relaxed);
        let began = Instant::now();
        let (found, ended) = search.join().unwrap();
        drop(connection);
        (found, ended - began)
    });
    assert_eq!(ended.unwrap_err().kind(), Kind::Interrupted);
    assert!(took < SOON, "{took:?}");
    assert_eq!(machine.partial(), Vec::<PathBuf>::new());
    let lock = fs::File::open(machine.cache().join("apt/lock")).unwrap();
    // A program that another test starts has it, too, until it is executed.
    let freed = Instant::now();
    let try_lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    while let Err(error) = rustix::fs::flock(&lock, try_lock) {
        assert!(freed.elapsed() < SOON, "{error}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let cache = machine.cache().display().to_string();
    let clients = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.filter(|line| line.contains(&cache)).collect::<Vec<_>>()
    };
    assert_eq!(clients(), Vec::<String>::new());
}

/// Check that stopping ends the search for a kernel while the archive's list stalls, and that
/// nothing is left behind.
#[test]
fn stops_while_asking() {
    ends_while_stalled("stops_while_asking", "Packages");
}

/// Check that stopping ends the download of a package that stalls, and that nothing is left behind.
#[test]
fn stops_while_downloading() {
    ends_while_stalled("stops_while_downloading", ".deb");
}

/// Check that kernels come from all suites of the archive, that a missing suite does not affect
/// others, and that the machine's own release is preferred to a newer one.
#[test]
fn kernels_of_all_suites() {
    let Some(machine) = Machine::new("kernels_of_all_suites") else { return };
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    machine.add_kernel_to("trixie", "6.12.9+deb13-amd64", "6.12.9-1");
    machine.add_kernel_to("trixie-backports", "6.12.8+deb13-amd64", "6.12.8-1");
    machine.add_kernel_to("trixie-backports", "6.18.5+deb13-cloud-amd64", "6.18.5-1");
    machine.add_kernel_to("experimental", "6.1.0-99-amd64", "6.1.999-1");
    let release = |spec| machine.find(spec, false).0.unwrap().release;
    assert_eq!(release("debian:6.1"), "6.1.0-56-amd64");
    assert_eq!(release("debian:6.18-cloud"), "6.18.5+deb13-cloud-amd64");
    assert_eq!(release("debian:6.12"), "6.12.9+deb13-amd64");
    assert_eq!(release("debian:trixie-backports/6.12"), "6.12.8+deb13-amd64");
    assert_eq!(release("debian:experimental/6.1"), "6.1.0-99-amd64");
    let suites = machine.kernels().suites().unwrap();
    let names: Vec<&str> = suites.iter().map(|suite| suite.suite.as_str()).collect();
    assert_eq!(names, [OWN, "trixie", "trixie-backports", "experimental"]);
    let [short, cloud] = ["6.12", "6.18-cloud"].map(str::to_owned);
    let versions = ["6.12.8-1", "6.18.5-1"].map(str::to_owned);
    let [older, newer] = versions;
    assert_eq!(suites[2].kernels, [(short, older), (cloud, newer)]);
}

/// Check that the next newest package is used if the archive lacks the newest one of its list.
#[test]
fn packages_that_are_gone() {
    let Some(machine) = Machine::new("packages_that_are_gone") else { return };
    machine.add_kernel("6.1.0-55-amd64", "6.1.192-1");
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    let package = "linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb";
    fs::remove_file(machine.archive().join("pool/bookworm").join(package)).unwrap();
    let (found, said) = machine.find("debian:6.1", false);
    assert_eq!(found.unwrap().release, "6.1.0-55-amd64");
    assert!(said.iter().any(|text| text.contains("File not found")), "{said:?}");
    assert!(machine.refusal("debian:6.1.0-56").contains("File not found"));
}

/// Check that the message for a missing kernel names existing ones: suites that have it, or the
/// kernels of the same flavour; and that a missing suite is named.
#[test]
fn messages_name_what_there_is() {
    let Some(machine) = Machine::new("messages_name_what_there_is") else { return };
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    machine.add_kernel_to("trixie-backports", "6.18.5+deb13-cloud-amd64", "6.18.5-1");
    let other = machine.refusal("debian:bookworm/6.18-cloud");
    let there = "suite bookworm has no such kernel; it is in trixie-backports;";
    assert!(other.contains(there), "{other}");
    let absent = machine.refusal("debian:duke/6.18-cloud");
    let there = "the archive has no suite duke; it is in trixie-backports;";
    assert!(absent.contains(there), "{absent}");
    let unknown = machine.refusal("debian:6.17-cloud");
    assert!(
        unknown.contains("no such kernel; there are debian:6.18-cloud;"),
        "{unknown}"
    );
}

/// Check that a suite whose key this machine does not trust is named with a remedy, and that the
/// others' kernels are still available.
#[test]
fn keys_that_are_not_trusted() {
    let Some(machine) = Machine::new("keys_that_are_not_trusted") else { return };
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    machine.add_kernel_to("trixie", "6.12.9+deb13-amd64", "6.12.9-1");
    let home = machine.root.path().join("gpg");
    write(&home.join("gpg.conf"), "");
    let dist = machine.archive().join("dists/trixie");
    let script = "chmod 700 . && gpg --homedir . --batch --passphrase '' --quick-gen-key \
                  a@b && gpg --homedir . --batch --output $1/InRelease --clearsign \
                  $1/Release && gpgconf --homedir . --kill all";
    let mut gpg = Command::new("sh");
    gpg.args(["-c", script, "sh"]).arg(&dist).current_dir(&home);
    let signed = gpg.output().unwrap();
    if !signed.status.success() {
        let why = String::from_utf8_lossy(&signed.stderr).into_owned();
        println!("skipped: keys_that_are_not_trusted: {why}");
        return;
    }
    let archive = machine.archive();
    let place = format!("file:{}", archive.display());
    let other = format!("file:{}/../debian", archive.display());
    let lines =
        format!("deb [trusted=yes] {place} {OWN} main\ndeb {other} trixie main\n");
    // The usual source of the suite is trusted: only the other one remains.
    write(&machine.root.path().join("etc/apt/sources.list"), lines);
    assert!(machine.find("debian:6.1", false).0.is_ok());
    let (found, said) = machine.find("debian:trixie/6.12", false);
    let hint = "suite trixie is signed with a key that this machine does not trust";
    assert!(said.iter().any(|text| text.starts_with(hint)), "{found:?} {said:?}");
    assert!(said.iter().any(|text| text.contains("debian-archive-keyring")), "{said:?}");
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Check that a kernel is unpacked from a package, that it stays the same when the archive changes
/// or is missing, and that a fresh one is downloaded on request.
#[test]
fn kernels_are_kept_until_wanted_fresh() {
    let Some(machine) = Machine::new("kernels_are_kept_until_wanted_fresh") else {
        return;
    };
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    let (first, said) = machine.find("debian:6.1", false);
    let first = first.unwrap();
    assert_eq!(first.release, "6.1.0-56-amd64");
    assert_eq!(first.package_version.as_deref(), Some("6.1.192-2"));
    assert_eq!(fs::read(&first.image).unwrap(), synthetic("6.1.0-56-amd64"));
    assert!(first.config.as_ref().unwrap().exists());
    let last = "downloading linux-image-6.1.0-56-amd64 6.1.192-2".to_owned();
    assert_eq!(said.last(), Some(&last));

    machine.add_kernel("6.1.0-57-amd64", "6.1.193-1");
    let unchanged = |kernel: &Kernel| {
        let (found, said) = machine.find("debian:6.1", false);
        assert_eq!((&found.unwrap(), said), (kernel, Vec::new()));
    };
    unchanged(&first);
    let fresh = machine.find("debian:6.1", true).0.unwrap();
    assert_eq!(fresh.release, "6.1.0-57-amd64");

    fs::remove_dir_all(machine.archive()).unwrap();
    unchanged(&fresh);
    let (again, said) = machine.find("debian:6.1", true);
    assert_eq!(again.unwrap(), fresh);
    assert!(said.iter().any(|text| text.contains("did not answer")), "{said:?}");
}

/// Check that a kernel with its image and configuration in separate packages is assembled, and that
/// the package that depends on them is enough to find it.
#[test]
fn kernels_in_parts_are_put_together() {
    let Some(machine) = Machine::new("kernels_in_parts_are_put_together") else { return };
    let (release, version) = ("7.3.4+deb13-cloud-amd64", "7.3.4-1");
    let depends = format!(
        "Depends: linux-base-{release} (= {version}), linux-binary-{release} (= {version})\n"
    );
    let folder = format!("usr/lib/modules/{release}");
    let config = options::synthetic_without("").into_bytes();
    let image = [(format!("{folder}/vmlinuz"), synthetic(release))];
    machine.add(&format!("linux-image-{release}"), version, &depends, &[]);
    machine.add(&format!("linux-binary-{release}"), version, "", &image);
    machine.add(
        &format!("linux-base-{release}"),
        version,
        "",
        &[(format!("{folder}/config"), config)],
    );
    let kernel = machine.find("debian:7.3-cloud", false).0.unwrap();
    assert_eq!(kernel.release, release);
    assert!(kernel.config.is_some());
}

/// Check that a missing kernel is refused, and one in a damaged package too, and that neither
/// leaves files behind.
#[test]
fn bad_packages_leave_nothing() {
    let Some(machine) = Machine::new("bad_packages_leave_nothing") else { return };
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    machine.add("linux-image-6.1.0-56-rt-amd64", "6.1.192-2", "", &[]);
    let empty = machine.find("debian:6.1-rt", false).0.unwrap_err();
    assert!(chain(&empty).contains("there is no vmlinuz in package"), "{empty}");
    assert_eq!(empty.kind(), Kind::Unavailable);
    let package = machine
        .archive()
        .join("pool/bookworm/linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb");
    fs::write(package, "damaged").unwrap();
    for spec in ["debian:5.10", "debian:6.1"] {
        let error = machine.find(spec, false).0.unwrap_err();
        assert_eq!(error.kind(), Kind::Unavailable);
        assert_eq!(error.to_string(), format!("failed to get kernel {spec}"));
    }
    let stored = fs::read_dir(machine.root.path().join("a cache/kernels")).unwrap();
    let names: Vec<_> = stored.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["specs"]);
}
