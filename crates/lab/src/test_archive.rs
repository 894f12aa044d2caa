//! A whole archive with kernel packages in a folder, and a machine that knows no other:
//! the system's real package client goes all the way, without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::image::{checksum, synthetic};
use crate::kernel::{Kernel, Kernels};
use crate::{Error, Kind, options};

/// A machine with Debian's archive on its own disk.
struct Machine {
    root: TempDir,
}

impl Machine {
    /// `None`, and why, where packages cannot be made or read.
    fn new(test: &str) -> Option<Self> {
        for program in ["apt-get", "apt-cache", "dpkg-deb", "tar"] {
            if Command::new(program).arg("--version").output().is_err() {
                println!("skipped: {test}: there is no {program} here");
                return None;
            }
        }
        let root = tempfile::tempdir().unwrap();
        let machine = Self { root };
        let archive = machine.archive();
        let line =
            format!("deb [trusted=yes] file:{} bookworm main\n", archive.display());
        write(&machine.root.path().join("etc/apt/sources.list"), &line);
        fs::create_dir_all(archive.join("pool")).unwrap();
        machine.publish();
        Some(machine)
    }

    fn archive(&self) -> PathBuf {
        self.root.path().join("debian")
    }

    /// Adds a package with those files to the archive.
    fn add(&self, name: &str, version: &str, depends: &str, files: &[(String, Vec<u8>)]) {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            write(&folder.path().join(path), bytes);
        }
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\n{depends}\
             Maintainer: somebody <somebody@mail.example>\nDescription: a test\n"
        );
        write(&folder.path().join("DEBIAN/control"), &control);
        let file = format!("pool/{name}_{version}_amd64.deb");
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
            &self.archive().join(format!("pool/{name}_{version}.entry")),
            control + &place,
        );
        self.publish();
    }

    /// Adds a kernel in one package, with modules that nobody wants.
    fn add_kernel(&self, release: &str, version: &str) {
        let config = options::synthetic_without("").into_bytes();
        let files = [
            (format!("boot/vmlinuz-{release}"), synthetic(release)),
            (format!("boot/config-{release}"), config),
            (format!("lib/modules/{release}/kernel/a.ko"), vec![0; 1000]),
        ];
        self.add(&format!("linux-image-{release}"), version, "", &files);
    }

    /// Writes the archive's tables of contents.
    fn publish(&self) {
        let entries = fs::read_dir(self.archive().join("pool")).unwrap();
        let entries = entries.map(|entry| entry.unwrap().path());
        let entries =
            entries.filter(|path| path.extension().is_some_and(|e| e == "entry"));
        let packages: String =
            entries.map(|path| fs::read_to_string(path).unwrap()).collect();
        let suite = self.archive().join("dists/bookworm");
        write(&suite.join("main/binary-amd64/Packages"), &packages);
        let release = format!(
            "Origin: Debian\nSuite: bookworm\nCodename: bookworm\n\
             Date: Sat, 01 Jan 2022 00:00:00 UTC\nArchitectures: amd64\nComponents: main\n\
             SHA256:\n {} {} main/binary-amd64/Packages\n",
            checksum(packages.as_bytes()),
            packages.len()
        );
        write(&suite.join("Release"), &release);
    }

    /// Gets a kernel; also what was told meanwhile.
    fn find(&self, spec: &str, fresh: bool) -> (Result<Kernel, Error>, Vec<String>) {
        let kernels =
            Kernels::of_machine(self.root.path(), &self.root.path().join("a cache"));
        let mut told = Vec::new();
        let found = kernels.find(spec, fresh, &mut |text| told.push(text.to_owned()));
        (found, told)
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Check that a kernel comes out of a package, that it stays the same while the archive
/// moves on and even when the archive is gone, and that who wants a fresh one gets it.
#[test]
fn kernels_are_kept_until_wanted_fresh() {
    let Some(machine) = Machine::new("kernels_are_kept_until_wanted_fresh") else {
        return;
    };
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    let (first, told) = machine.find("debian:6.1", false);
    let first = first.unwrap();
    assert_eq!(first.release, "6.1.0-56-amd64");
    assert_eq!(first.package_version.as_deref(), Some("6.1.192-2"));
    assert_eq!(fs::read(&first.image).unwrap(), synthetic("6.1.0-56-amd64"));
    assert!(first.config.as_ref().unwrap().exists());
    let last = "downloading linux-image-6.1.0-56-amd64 6.1.192-2".to_owned();
    assert_eq!(told.last(), Some(&last));

    machine.add_kernel("6.1.0-57-amd64", "6.1.193-1");
    assert_eq!(machine.find("debian:6.1", false), (Ok(first.clone()), Vec::new()));
    let fresh = machine.find("debian:6.1", true).0.unwrap();
    assert_eq!(fresh.release, "6.1.0-57-amd64");

    fs::remove_dir_all(machine.archive()).unwrap();
    assert_eq!(machine.find("debian:6.1", false), (Ok(fresh.clone()), Vec::new()));
    let (again, told) = machine.find("debian:6.1", true);
    assert_eq!(again, Ok(fresh));
    assert!(told.iter().any(|text| text.contains("did not answer in full")), "{told:?}");
}

/// Check that a kernel whose image and configuration are in packages of their own is put
/// together, and that the package that only names them is enough to find it.
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

/// Check that a kernel that is not there is refused, and one in a damaged package too,
/// and that neither leaves anything behind.
#[test]
fn bad_packages_leave_nothing() {
    let Some(machine) = Machine::new("bad_packages_leave_nothing") else { return };
    machine.add_kernel("6.1.0-56-amd64", "6.1.192-2");
    machine.add("linux-image-6.1.0-56-rt-amd64", "6.1.192-2", "", &[]);
    let empty = machine.find("debian:6.1-rt", false).0.unwrap_err();
    assert!(empty.to_string().contains("there is no vmlinuz in package"), "{empty}");
    assert_eq!(empty.kind(), Kind::Archive);
    let package =
        machine.archive().join("pool/linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb");
    fs::write(package, "damaged").unwrap();
    for spec in ["debian:5.10", "debian:6.1"] {
        let error = machine.find(spec, false).0.unwrap_err();
        assert_eq!(error.kind(), Kind::Archive);
        assert!(error.to_string().starts_with(spec), "{error}");
    }
    let kept = fs::read_dir(machine.root.path().join("a cache/kernels")).unwrap();
    let names: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["specs"]);
}
