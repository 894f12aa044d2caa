//! Commands that run once on this machine: their guests have the files that they use, and give the same
//! integers in two folders.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::site::{OLD, Site, text};

/// Commands, in a folder with some files, and what they print.
const COMMANDS: [(&[&str], &str); 6] = [
    (&["python3", "-c", "import json, mod; print(json.dumps(mod.f()))"], "[1, 2]\n"),
    (&["perl", "-MPOSIX", "-e", "print POSIX::floor(2.5), \"\\n\""], "2\n"),
    (&["sqlite3", "data.db", "select sum(a) from t"], "4\n"),
    (&["git", "-C", "repository", "log", "--format=%s"], "message\n"),
    (&["sh", "-c", "cat text | tr a-z A-Z | tee out | wc -c; ls d | wc -l"], "5\n2\n"),
    (&["gcc", "-c", "-o", "out.o", "file.c"], ""),
];

/// Makes the files of the commands.
fn fill(folder: &Path) {
    fs::create_dir_all(folder.join("d")).unwrap();
    for (name, contents) in [
        ("mod.py", "def f(): return [1, 2]\n"),
        ("text", "text\n"),
        ("d/one", "1"),
        ("d/two", "2"),
        ("file.c", "int f(void) { return 1; }\n"),
    ] {
        fs::write(folder.join(name), contents).unwrap();
    }
    let line = "sqlite3 data.db 'create table t(a); insert into t values (1), (3)'\n\
        export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z\n\
        git init -q repository && cd repository && \\\n\
        git -c user.name=a -c user.email=a@b commit -q --allow-empty -m message";
    // Commands whose program is missing are skipped.
    let _ = Command::new("sh").args(["-c", line]).current_dir(folder).output();
}

/// The cell of a command, and what was said.
fn cost(site: &Site, folder: &Path, args: &[&str]) -> (Value, String) {
    let mut command =
        site.tool(&["lab", "cost", "--json", "--set", "variations=1", "-k", OLD]);
    let output = command.args(args).current_dir(folder).output().unwrap();
    let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let all: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{args:?}: {why}: {said}"));
    (all["cells"][0].clone(), said)
}

/// Check that programs run without a list of files, with the same integers in two folders.
#[test]
fn same_integers() {
    let Some(site) = Site::new() else { return };
    let folders = ["here", "a/folder/elsewhere"].map(|name| site.cache().join(name));
    folders.iter().for_each(|folder| fill(folder));
    for (words, output) in COMMANDS {
        if Command::new(words[0]).arg("--version").output().is_err() {
            println!("skipped: there is no {}", words[0]);
            continue;
        }
        let args = [&["--"], words].concat();
        let [one, two] = folders.each_ref().map(|folder| cost(&site, folder, &args).0);
        assert_eq!(one["summary"]["output"]["text"], output, "{one}");
        assert_eq!(one["identity"], two["identity"], "{words:?}");
        assert_eq!(one["summary"], two["summary"], "{words:?}");
    }
}

/// Check that a command that failed here runs in the guest, that a secret is not there, and that both
/// are said; and that nothing runs here with --no-observe.
#[test]
fn remarks() {
    let Some(site) = Site::new() else { return };
    let folder = site.cache().join("here");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(".env"), "TOKEN=1").unwrap();
    let line = "cat .env; touch done; test -e /root/done";
    let (cell, said) = cost(&site, &folder, &["--", "sh", "-c", line]);
    let output = cell["summary"]["output"]["text"].as_str().unwrap();
    assert!(output.contains("No such file"), "{cell}");
    assert!(said.contains("the command failed here with code 1: TOKEN=1"), "{said}");
    assert!(said.contains(".env; hint: --file packs it"), "{said}");
    fs::remove_file(folder.join("done")).unwrap();
    let args = ["--no-observe", "--", "sh", "-c", "touch done"];
    let (cell, _) = cost(&site, &folder, &args);
    let why = cell["lost"]["why"].as_str().unwrap();
    assert!(why.contains("code 127") && why.contains("without --no-observe"), "{why}");
    assert!(!folder.join("done").exists());
}
