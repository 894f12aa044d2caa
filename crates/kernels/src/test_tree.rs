//! Builds of a tree with the interface of a kernel's, whose Makefile takes a moment instead of
//! minutes: what make runs, when it is interrupted, fails, or is run twice. Real kernels are built
//! by the tests of the command line.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use units::chain;

use crate::build_name::BuildSpec;
use crate::image::synthetic;
use crate::kernel::Kernel;
use crate::resolve::Kernels;
use crate::{Error, Fetch, Kind, options};

/// Kconfig drops `DROPPED`; `SLOW` waits in the first build of a folder, `BROKEN` fails, and an `HZ`
/// of 10 is refused. The configuration says in the end how often `a.o` was made. Its sources mention
/// `HZ`, in notes like Kbuild's.
const MAKEFILE: &str = "\
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 7
EXTRAVERSION =
CONFIG = $(O)/.config
allnoconfig:
\tgrep -v DROPPED $(KCONFIG_ALLCONFIG) >$(CONFIG)
\tsed -n '/^config HZ$$/,/default/s/.*default /CONFIG_HZ=/p' $(or $(KBUILD_KCONFIG),Kconfig) \
>>$(CONFIG)
bzImage: $(O)/a.o
\t@echo '  CC      b.o'
\t@if grep -qx CONFIG_HZ=10 $(CONFIG); then echo 'jiffies.h:44: error: #error Invalid value of \
HZ.'; exit 1; fi
\t@if grep -q BROKEN=y $(CONFIG); then echo 'b.c:7:1: error: no b'; exit 1; fi
\t@if grep -q SLOW=y $(CONFIG) && ! test -e $(O)/waits; then touch $(O)/waits; sleep 600; fi
\t@mkdir -p $(O)/arch/x86/boot
\t@cp image $(O)/arch/x86/boot/bzImage
\t@mkdir -p $(O)/include/config
\t@cp $(CONFIG) $(O)/include/config/auto.conf
\t@cat $(O)/made >>$(CONFIG)
$(O)/a.o:
\t@echo '  CC      a.o'
\t@echo '# made a.o' >>$(O)/made
\t@echo '    $$(wildcard include/config/HZ) \\' >$(O)/.a.o.cmd
\t@touch $@
";
const KCONFIG: &str = "\
mainmenu \"x\"

source \"arch/$(SRCARCH)/Kconfig\"

config BROKEN
\tbool \"Broken\"

config SLOW
\tbool \"Slow\"

config NEEDED
\tbool \"Needed\"

config DROPPED
\tbool \"Dropped\"
\tdepends on NEEDED
";
const LONG: Duration = Duration::from_secs(300);

/// A tree, and a cache.
struct Site {
    folder: TempDir,
}

impl Site {
    /// `None`, and why, if kernels cannot be built here.
    fn new(test: &str) -> Option<Self> {
        if let Err(why) = crate::build::tools::check() {
            println!("skipped: {test}: {why}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let site = Self { folder };
        site.write("tree/Makefile", MAKEFILE);
        site.write("tree/Kconfig", KCONFIG);
        let needed = options::synthetic_without("").replace("CONFIG_", "config ");
        let needed = needed.replace("=y", "\n\tbool \"x\"\n");
        site.write("tree/arch/x86/Kconfig", &format!("{needed}config HZ\n\tint\n"));
        site.write("tree/scripts/kconfig/conf.c", "");
        fs::write(site.path("tree/image"), synthetic("6.1.7")).unwrap();
        site.write("needed", &options::synthetic_without(""));
        Some(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn spec(&self, options: &str) -> BuildSpec {
        let needed = self.path("needed");
        let tree = self.path("tree");
        let text = format!("build:{},none,{}{options}", tree.display(), needed.display());
        BuildSpec::parse(&text).unwrap()
    }

    fn kernels(&self) -> Kernels {
        Kernels::of_machine(self.folder.path(), &self.path("cache"))
    }

    /// Builds a kernel with those options; what was reported goes to `said`.
    fn build_reporting(
        &self,
        options: &str,
        stop: &AtomicBool,
        said: &mut dyn FnMut(&str),
    ) -> Result<Kernel, Error> {
        let mut fetch = Fetch { fresh: false, stop, say: said };
        self.kernels().build(&self.spec(options), &mut fetch)
    }

    fn build(&self, options: &str) -> (Result<Kernel, Error>, Vec<String>) {
        let mut said = Vec::new();
        let stop = AtomicBool::new(false);
        let built =
            self.build_reporting(options, &stop, &mut |t| said.push(t.to_owned()));
        (built, said)
    }

    fn error(&self, options: &str) -> (Kind, String) {
        let error = self.build(options).0.unwrap_err();
        (error.kind(), chain(&error).replace(self.folder.path().to_str().unwrap(), ""))
    }

    /// The folders of builds.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/builds")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    }

    fn checksum(&self) -> String {
        let stop = AtomicBool::new(false);
        crate::build::source::identity(&self.path("tree"), &stop).unwrap()
    }
}

/// Check that a kernel is built once, that another request with the same configuration finds it, and
/// that the tree is not changed.
#[test]
fn builds_once() {
    let Some(site) = Site::new("builds_once") else { return };
    let before = site.checksum();
    let (built, said) = site.build("");
    let built = built.unwrap();
    assert_eq!(fs::read(&built.image).unwrap(), synthetic("6.1.7"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("building Linux 6.1.7 as build:"), "{said:?}");
    assert!(built.build.as_ref().unwrap().source.starts_with("files "));
    let (again, said) = site.build("");
    assert_eq!((again.unwrap(), said.len()), (built.clone(), 0));
    let (same, said) = site.build(",BROKEN=n");
    assert_eq!((same.unwrap().image, said.len()), (built.image.clone(), 1));
    assert_eq!(site.folders().len(), 1);
    assert_eq!(site.checksum(), before);
    assert_eq!(site.kernels().list(), [built]);
}

/// Check that another source and another option are other kernels.
#[test]
fn identities() {
    let Some(site) = Site::new("identities") else { return };
    let is_built = |options: &str| !site.build(options).1.is_empty();
    assert!(is_built("") && !is_built(""));
    assert!(is_built(",HZ=40") && !is_built(",HZ=40"));
    site.write("tree/init/main.c", "");
    assert!(is_built("") && !is_built(""));
    let program = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.path("tree/init/main.c"), program).unwrap();
    assert!(is_built(""));
}

/// Check that a git tree is identified by its commit and the changes since, wherever it is, and that
/// ignored files do not count.
#[test]
fn git_trees() {
    let Some(site) = Site::new("git_trees") else { return };
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@mail.example", "-C"]);
        git.arg(site.path("tree")).args(args).output().unwrap()
    };
    if Command::new("git").arg("--version").output().is_err() {
        println!("skipped: git_trees: there is no git here");
        return;
    }
    site.write("tree/.gitignore", "*.o\n");
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "x"]] {
        let output = git(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let first = site.checksum();
    assert!(first.starts_with("git ") && !first.contains("changed"), "{first}");
    site.write("tree/ignored.o", "");
    assert_eq!(site.checksum(), first);
    site.write("tree/new.c", "1");
    let new = site.checksum();
    site.write("tree/new.c", "2");
    let newer = site.checksum();
    fs::remove_file(site.path("tree/new.c")).unwrap();
    site.write("tree/Kconfig", "mainmenu \"y\"\n");
    let changed = site.checksum();
    // A user's own program for differences prints nothing.
    assert!(git(&["config", "diff.external", "true"]).status.success());
    assert_eq!(site.checksum(), changed);
    // What git does not enter: a link to nowhere, and a tree of its own.
    symlink("nowhere", site.path("tree/link")).unwrap();
    let with_link = site.checksum();
    site.write("tree/own/.gitignore", "");
    let of_own = ["init", "-q", "own"];
    assert!(git(&of_own).status.success());
    let all = [&first, &new, &newer, &changed, &with_link, &site.checksum()];
    let distinct: std::collections::BTreeSet<&&String> = all.iter().collect();
    assert_eq!(distinct.len(), 6, "{all:?}");
}

/// Check that an archive is unpacked once, and gives the same kernel as its tree.
#[test]
fn archives() {
    let Some(site) = Site::new("archives") else { return };
    let archive = site.path("linux:6.tar.xz"); // no file of a host named linux
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(site.folder.path()).arg("-cJf").arg(&archive).arg("tree");
    assert!(tar.status().unwrap().success());
    let name =
        format!("build:{},none,{}", archive.display(), site.path("needed").display());
    let stop = AtomicBool::new(false);
    let mut said = Vec::new();
    let mut find = || {
        let mut say = |text: &str| said.push(text.to_owned());
        let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut say };
        site.kernels().find(&name, &mut fetch).unwrap()
    };
    let kernel = find();
    assert_eq!(find(), kernel);
    assert_eq!(kernel.sha256, site.build("").0.unwrap().sha256);
    assert!(said.len() == 2 && said[0].starts_with("unpacking "), "{said:?}");
}

/// Check that every mistake in a source or a request is named.
#[test]
fn mistakes() {
    let Some(site) = Site::new("mistakes") else { return };
    for (options, text) in [
        (",BROKE=y", "BROKE=y: Linux 6.1.7 has no option BROKE; there is BROKEN"),
        (",BROKEN=7", "BROKEN=7: the value of BROKEN must be y or n"),
        (",DROPPED=y", "DROPPED=y: it needs NEEDED=y"),
        (
            ",HZ=10",
            "HZ=10 is refused by the kernel's headers: jiffies.h:44: error: #error",
        ),
    ] {
        let (kind, error) = site.error(options);
        assert_eq!(kind, Kind::Kernel, "{error}");
        assert!(error.contains(text), "{error}");
    }
    site.write("bad", "CONFIG_BROKEN=y\nBROKEN\n");
    let (kind, error) = site.error(&format!(",{}", site.path("bad").display()));
    assert_eq!(kind, Kind::Kernel);
    assert!(error.contains("/bad:2: 'BROKEN' is not an option"), "{error}");
    let (_, error) = site.error(&format!(",{}", site.path("none").display()));
    assert!(error.contains("failed to read /none: No such file"), "{error}");
    site.write("tree/.config", "");
    let (kind, error) = site.error("");
    assert_eq!(kind, Kind::Kernel);
    assert!(error.contains("hint: run make mrproper there"), "{error}");
    fs::remove_file(site.path("tree/arch/x86/Kconfig")).unwrap();
    let (kind, error) = site.error("");
    assert_eq!(kind, Kind::Kernel);
    assert!(
        error.contains("/tree is no source of a Linux kernel: it has no arch"),
        "{error}"
    );
}

/// Check that a build that fails quotes the first error, and keeps all messages.
#[test]
fn failed_builds() {
    let Some(site) = Site::new("failed_builds") else { return };
    let (kind, error) = site.error(",BROKEN=y");
    assert_eq!(kind, Kind::Build);
    assert!(
        error.contains("b.c:7:1: error: no b; all messages are in /cache"),
        "{error}"
    );
    let log = site.folders()[0].join("noisefloor-build.log");
    assert!(error.ends_with("/noisefloor-build.log") && log.exists(), "{error}");
}

/// Check that an interrupted build ends at once with all of its processes, and that the next one
/// continues it.
#[test]
fn continues() {
    let Some(site) = Site::new("continues") else { return };
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let ended = thread::scope(|scope| {
        let building =
            scope.spawn(|| site.build_reporting(",SLOW=y", &stop, &mut |_| {}));
        let waits = || site.folders().iter().any(|out| out.join("waits").exists());
        while !waits() {
            assert!(began.elapsed() < LONG && !building.is_finished());
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        building.join().unwrap()
    });
    assert_eq!(ended.unwrap_err().kind(), Kind::Interrupted);
    assert!(began.elapsed() < LONG);
    assert_eq!(site.folders().len(), 1);
    let kernel = site.build(",SLOW=y").0.unwrap();
    let config = fs::read_to_string(kernel.config.unwrap()).unwrap();
    assert_eq!(config.matches("# made a.o\n").count(), 1, "{config}");
    assert_eq!(site.folders().len(), 1);
}

/// Check that another configuration is built in the same folder, that what does not depend on it is
/// not made again, and that a changed file of the tree makes everything again.
#[test]
fn reuses_objects() {
    let Some(site) = Site::new("reuses_objects") else { return };
    let made = |options: &str| {
        let kernel = site.build(options).0.unwrap();
        assert_eq!(site.folders().len(), 1);
        let config = fs::read_to_string(kernel.config.unwrap()).unwrap();
        config.matches("# made a.o\n").count()
    };
    // The clock of files advances with the tick; a folder of the same moment is not used again.
    thread::sleep(Duration::from_millis(50));
    fs::remove_dir_all(site.path("cache/builds")).unwrap_or_default();
    assert_eq!(made(""), 1);
    assert_eq!(made(",HZ=40"), 1);
    let (_, error) = site.error(",BROKEN=y");
    assert!(error.contains("no b"), "{error}");
    assert_eq!(made(",HZ=60"), 1);
    let log = fs::read_to_string(site.folders()[0].join("noisefloor-build.log")).unwrap();
    assert!(!log.contains("no b") && !log.contains("a.o"), "{log}");
    fs::rename(site.path("tree/image"), site.path("image")).unwrap();
    fs::rename(site.path("image"), site.path("tree/image")).unwrap();
    assert_eq!(made(",HZ=70"), 1);
    let log = fs::read_to_string(site.folders()[0].join("noisefloor-build.log")).unwrap();
    assert!(log.contains("a.o"), "{log}");
}

/// Check that kernels which have most objects in common with the last one come first, after those that
/// are cached; and that the order stays where nothing was built, and with a mistake.
#[test]
fn build_order() {
    let Some(site) = Site::new("build_order") else { return };
    let name = |options: &str| site.spec(options).to_string();
    let [built, near, far] = ["", ",NEEDED=y", ",HZ=40"].map(name);
    let stop = AtomicBool::new(false);
    let order = |names: &[&str]| {
        let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut |_| {} };
        let order = site.kernels().in_build_order(names, &mut fetch);
        order.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(&[&far, &near, &built]), [&far, &near, &built].map(String::clone));
    site.build("").0.unwrap();
    let all = [far.as_str(), "debian:6.1", &near, &built];
    assert_eq!(order(&all), ["debian:6.1", &built, &near, &far]);
    let wrong = name(",DROPPED=y");
    assert_eq!(order(&[&far, &near, &wrong]), [far.as_str(), &near, &wrong]);
}

/// Check that one of two builds of the same source waits for the other, and takes its result.
#[test]
fn two_at_once() {
    let Some(site) = Site::new("two_at_once") else { return };
    let [stop, other] = [(); 2].map(|()| AtomicBool::new(false));
    let key_of = |site: &Site| {
        let out = site.folders();
        out.first().map(|out| out.file_name().unwrap().to_owned())
    };
    // An interrupted build shows the name of the lock.
    let lock = thread::scope(|scope| {
        let building =
            scope.spawn(|| site.build_reporting(",SLOW=y", &stop, &mut |_| {}));
        let key = loop {
            if let Some(key) = key_of(&site) {
                break key;
            }
            assert!(!building.is_finished());
            thread::sleep(Duration::from_millis(5));
        };
        let (said, heard) = channel();
        let waiting = scope.spawn(|| {
            let said = said; // dropped with this thread
            let mut say = |text: &str| said.send(text.to_owned()).unwrap();
            site.build_reporting(",SLOW=y", &other, &mut say)
        });
        let text = heard.recv_timeout(LONG).unwrap();
        assert_eq!(text, "waiting for another process to build a kernel of this source");
        other.store(true, Ordering::Relaxed);
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), Kind::Interrupted);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(building.join().unwrap().unwrap_err().kind(), Kind::Interrupted);
        key
    });
    assert!(site.path("cache/builds").join(lock).is_dir());
    // Without the wait, both get the same kernel, which is built once.
    let reports = thread::scope(|scope| {
        let all = [(); 2].map(|()| scope.spawn(|| site.build("")));
        all.map(|one| one.join().unwrap())
    });
    let built = |said: &[String]| said.iter().any(|text| text.starts_with("building"));
    assert_eq!(reports.iter().filter(|(_, said)| built(said)).count(), 1);
    let [one, other] = reports.map(|(kernel, _)| kernel.unwrap());
    assert_eq!(one, other);
}
