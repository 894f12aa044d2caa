//! Commands that run on this machine, and the files of their guests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use experiments::{ProgramFiles, USUAL_HOME, USUAL_PATH};
use recording::{ProgramSpec, Words};
use tempfile::TempDir;
use units::Nanos;

use super::*;

/// A file, directory or link of an archive.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    modified: u32,
    contents: Vec<u8>,
}

impl Entry {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.contents).unwrap()
    }
}

/// The entries of an archive, by their paths.
fn entries(archive: &[u8]) -> BTreeMap<String, Entry> {
    let field = |at: usize| {
        let digits = std::str::from_utf8(&archive[at..at + 8]).unwrap();
        u32::from_str_radix(digits, 16).unwrap()
    };
    let (mut at, mut entries) = (0, BTreeMap::new());
    while at < archive.len() {
        let length = |place: usize| usize::try_from(field(at + place)).unwrap();
        let (size, name) = (length(54), length(94));
        let start = (at + 110 + name).next_multiple_of(4);
        let path = std::str::from_utf8(&archive[at + 110..at + 110 + name - 1]).unwrap();
        let contents = archive[start..start + size].to_vec();
        let entry = Entry { mode: field(at + 14), modified: field(at + 46), contents };
        entries.insert(format!("/{path}"), entry);
        at = (start + size).next_multiple_of(4);
    }
    entries
}

/// A folder in which commands run.
struct Site {
    _folder: TempDir,
    root: PathBuf,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        Self { _folder: folder, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn pack(&self, words: &[&str]) -> Result<Packed, PackError> {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let spec = ProgramSpec {
            command: Words::new(words.iter().map(OsString::from)),
            services: Vec::new(),
            environment: vec![variable("PATH", USUAL_PATH), variable("HOME", USUAL_HOME)],
            directory: "/root".to_owned(),
            exit_codes: vec![0],
            limit_ns: Nanos::from_secs(60),
            unit: None,
        };
        let files = ProgramFiles {
            hints: Vec::new(),
            folder: self.root.clone(),
            programs: Vec::new(),
            files: Vec::new(),
            is_observed: true,
            grows: true,
        };
        let mut host = Host {
            look: &mut |_| Ok(None),
            say: &mut |_| {},
            stop: &AtomicBool::new(false),
        };
        pack(&spec, &files, &mut host)
    }

    /// The guest's files of a line of a shell, and the remarks.
    fn shell(&self, line: &str) -> (BTreeMap<String, Entry>, String) {
        let packed = self.pack(&["sh", "-c", line]).unwrap();
        (entries(&packed.archive), packed.remarks.join("\n"))
    }
}

/// Check that what a pipeline uses is packed: programs, files as they were before, and the names in a
/// listed folder; and that what it creates is not.
#[test]
fn pipelines() {
    let site = Site::new();
    site.write("data", "before");
    site.write("d/listed", "contents");
    site.write("out", "old");
    site.write("made/old", "");
    let (files, remarks) = site.shell(
        "cat data | wc -c > out; echo after > data; ls d; mkdir -p new/e made; ls made; echo x > new/f",
    );
    assert_eq!(remarks, "");
    assert_eq!(files["/root/data"].text(), "before");
    assert_eq!(files["/root/d/listed"].text(), "");
    for own in ["/root/out", "/root/new", "/root/new/f", "/root/made"] {
        assert!(!files.contains_key(own), "{own}");
    }
    for program in ["cat", "wc", "ls", "mkdir"] {
        assert!(files.contains_key(&format!("/usr/bin/{program}")), "{program}");
    }
    assert_eq!(files["/etc/passwd"].text().lines().count(), 4);
}

/// Check that two folders give the same bytes, with other permissions and times too; and a command that
/// names its folder other ones, with a link and a remark.
#[test]
fn two_folders() {
    let (one, two) = (Site::new(), Site::new());
    let inner = Site { root: two.path("a/longer/name"), ..two };
    for (site, mode) in [(&one, 0o640), (&inner, 0o604)] {
        site.write("d/data", "text");
        site.write("tool", "#!/bin/sh\ncat d/data \"$(pwd)/d/data\"\n");
        fs::set_permissions(site.path("d/data"), fs::Permissions::from_mode(mode))
            .unwrap();
        let executable = fs::Permissions::from_mode(mode | 0o100);
        fs::set_permissions(site.path("tool"), executable).unwrap();
        symlink("d/data", site.path("link")).unwrap();
    }
    for words in [&["./tool"][..], &["sh", "-c", "stat . .. link; cat link; ls"]] {
        let [one, two] = [&one, &inner].map(|site| site.pack(words).unwrap());
        let [a, b] = [&one, &two].map(|packed| entries(&packed.archive));
        assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
        assert_eq!(one.sha256, two.sha256, "{words:?}");
        assert_eq!(a["/root/d/data"].modified, 0);
    }
    let path = inner.path("d/data");
    let path = path.to_str().unwrap();
    let packed = inner.pack(&["cat", path]).unwrap();
    let files = entries(&packed.archive);
    assert_eq!(files[inner.root.to_str().unwrap()].text(), "/root");
    assert_eq!(files["/root/d/data"].text(), "text");
    assert!(packed.remarks.concat().contains("depends on the folder's name"));
}

/// The variable with the folder for `of_this_user`.
const FOLDER: &str = "NOISEFLOOR_TEST_FOLDER";
/// The user and the group that own no files, and have no privileges.
const UNPRIVILEGED: u32 = 65_534;

/// Prints the checksum of a command's files: `two_users` runs it as another user.
#[test]
#[ignore = "two_users runs it"]
fn of_this_user() {
    let root = PathBuf::from(env::var_os(FOLDER).unwrap());
    println!("packed {}", Site { _folder: tempfile::tempdir().unwrap(), root }.packed());
}

impl Site {
    fn packed(&self) -> String {
        self.write("d/data", "text");
        let line = "cat d/data; ls -la ~ . d; stat /etc/hostname ../none; git --version; echo x > out";
        self.pack(&["sh", "-c", line]).unwrap().sha256
    }
}

/// Check that two users give the same bytes.
#[test]
fn two_users() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be another user");
        return;
    }
    let (one, two) = (Site::new(), Site::new());
    fs::set_permissions(&two.root, fs::Permissions::from_mode(0o777)).unwrap();
    let mut other = Command::new(env::current_exe().unwrap());
    other.args(["--exact", "packing::tests::of_this_user", "--ignored", "--nocapture"]);
    other
        .uid(UNPRIVILEGED)
        .gid(UNPRIVILEGED)
        .env(FOLDER, &two.root)
        .env("HOME", "/nonexistent");
    let output = match other.current_dir(&two.root).output() {
        Ok(output) if output.status.success() => output,
        other => {
            println!("skipped: another user cannot run this test: {other:?}");
            return;
        }
    };
    let said = String::from_utf8(output.stdout).unwrap();
    let packed = said.lines().find_map(|line| line.strip_prefix("packed "));
    assert_eq!(packed.unwrap(), one.packed());
}

/// Check that files outside keep the time of their last change, and that one reached through `..` is
/// above the working directory of the guest.
#[test]
fn files_outside() {
    let outer = Site::new();
    outer.write("data", "above");
    outer.write("inner/own", "own");
    let site = Site { root: outer.path("inner"), ..outer };
    let (files, _) = site.shell("cat ../data own");
    assert_eq!(files["/data"].text(), "above");
    assert!(files["/data"].modified > 1_000_000_000);
    assert_eq!(files["/root/own"].modified, 0);
}

/// Check that secrets are not packed, also through links, and are named.
#[test]
fn secrets() {
    let site = Site::new();
    let key = concat!("-----BEGIN PRIVATE ", "KEY-----\nAAAA\n");
    site.write(".ssh/id_rsa", "one");
    site.write("key.pem", key);
    site.write(".env", "TOKEN=1");
    symlink(".ssh/id_rsa", site.path("link")).unwrap();
    let (files, remarks) =
        site.shell("cat link key.pem .env ~/.ssh/id_rsa; ls -a . .ssh");
    for secret in ["/root/.ssh/id_rsa", "/root/key.pem", "/root/.env"] {
        assert!(!files.contains_key(secret), "{secret}");
    }
    for name in ["id_rsa", "key.pem", ".env"] {
        assert!(remarks.contains(name), "{remarks}");
    }
}

/// Check that a command that fails, one that leaves a process behind, and files that cannot be packed
/// have remarks, and the guest everything else.
#[test]
fn remarks() {
    let site = Site::new();
    site.write("gone", "1");
    site.write("data", "2\n");
    fs::write(site.root.join(OsStr::from_bytes(b"n\xff")), "").unwrap();
    let made = Command::new("mkfifo").arg(site.path("pipe")).status();
    assert!(made.unwrap().success());
    let (files, remarks) = site
        .shell("cat n*; test -p pipe; sleep 99 & cat data; echo '\u{1b}[1mwhy'; exit 3");
    assert_eq!(files["/root/data"].text(), "2\n");
    let expected = [
        "the command failed here with code 3: [1mwhy; what it used until then is packed (",
        "not packed, as the name is not UTF-8",
        "not packed, as it is neither a file nor a folder nor a link",
        "killed here, as it had not ended with the command: sleep",
    ];
    for line in expected {
        assert!(remarks.contains(line), "{line}: {remarks}");
    }
}

/// Check that files of more than a guest's memory are refused, with the largest, before they are read.
#[test]
fn large_files() {
    let site = Site::new();
    for (name, gib) in [("one", 2), ("two", 1)] {
        fs::File::create(site.path(name)).unwrap().set_len(gib << 30).unwrap();
    }
    let (files, remarks) = site.shell("test -s one");
    assert_eq!(files["/root/one"].text(), "");
    assert!(remarks.contains("looked up only"), "{remarks}");
    let why = site.pack(&["head", "-c1", "one", "two"]).unwrap_err().to_string();
    assert!(why.contains("one (2048 MiB)") && why.contains("two (1024 MiB)"), "{why}");
}

/// Check that a program that is not here, and one for another architecture, do not run here.
#[test]
fn refused() {
    let site = Site::new();
    let program =
        [b"\x7fELF\x01\x01\x01".as_slice(), &[0; 9], &[2, 0, 3, 0, 1, 0, 0, 0], &[0; 40]];
    fs::write(site.path("foreign"), program.concat()).unwrap();
    site.write("text", "touch done");
    for name in ["foreign", "text"] {
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(site.path(name), executable).unwrap();
    }
    let why = |words: &[&str]| site.pack(words).unwrap_err().to_string();
    assert!(why(&["./none"]).contains("there is no file"));
    assert!(why(&["./foreign"]).contains("32-bit x86"));
    assert!(why(&["./text"]).contains("neither an ELF program nor a script"));
    assert!(!Path::new(&site.path("done")).exists());
}
