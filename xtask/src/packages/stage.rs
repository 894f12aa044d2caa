//! The trees of files that packages consist of, as `make install-tool` and `make install-libraries` write
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::workspace::Workspace;

use super::{Built, Plan, emptied, failed};

/// A staged tree.
pub(super) struct Tree {
    /// Its root.
    pub(super) root: PathBuf,
}

/// Where files are installed.
pub(super) struct Layout {
    pub(super) prefix: &'static str,
    /// The folder of libraries.
    pub(super) libraries: String,
}

impl Tree {
    /// Installs into a new folder, by a target of the Makefile.
    pub(super) fn new(
        workspace: &Workspace,
        plan: &Plan,
        built: &Built,
        root: PathBuf,
        layout: &Layout,
        target: &str,
    ) -> Result<Self, String> {
        emptied(&root)?;
        let mut make = Command::new("make");
        make.current_dir(&workspace.root)
            .env_remove("MAKEFLAGS")
            .arg("--no-print-directory");
        make.arg(target);
        let paths = [
            ("DESTDIR", root.as_path()),
            ("BINARY", &built.program),
            ("GENERATOR", &built.generator),
            ("LAB", &built.lab),
            ("LIBRARIES_FROM", &built.libraries),
        ];
        make.args(paths.map(|(name, path)| format!("{name}={}", path.display())));
        make.arg(format!("PREFIX={}", layout.prefix));
        make.arg(format!("LIBDIR={}", layout.libraries));
        make.arg(format!("STRIP={}", plan.architecture.tool("strip")));
        command::run(&mut make)?;
        let tree = Self { root };
        tree.compress_pages(plan)?;
        Ok(tree)
    }

    /// man(1) reads compressed pages.
    fn compress_pages(&self, plan: &Plan) -> Result<(), String> {
        let is_page = |file: &PathBuf| file.extension().is_some_and(|end| end == "1");
        let pages: Vec<PathBuf> = self.files()?.into_iter().filter(is_page).collect();
        if pages.is_empty() {
            return Ok(());
        }
        command::run(plan.tool("gzip").arg("-9n").args(pages))
    }

    /// Adds a file, with the folders that it needs.
    pub(super) fn add(&self, path: &str, contents: &[u8]) -> Result<PathBuf, String> {
        let file = self.root.join(path);
        let folder = file.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        fs::write(&file, contents).map_err(|error| failed(&file, &error))?;
        Ok(file)
    }

    /// All files and links below the root, in order.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        collect(&self.root, &mut files)?;
        files.sort();
        Ok(files)
    }

    /// A path below the root, as it is installed.
    pub(super) fn installed(&self, file: &Path) -> String {
        format!("/{}", file.strip_prefix(&self.root).unwrap_or(file).display())
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed(folder, &error))?.path();
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
