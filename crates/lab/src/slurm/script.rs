//! The batch script of an array, and how names and paths are quoted in it.
//!
//! Source: sbatch(1), and how it splits the lines that begin with `#SBATCH` (`_get_argument` in
//! src/sbatch/opt.c): a word may be quoted with `"`, in which a backslash escapes the next character. In
//! the name of an output file `%` begins a symbol, and any backslash disables all symbols.

use std::path::{Path, PathBuf};

use kernels::CACHE_VARIABLE;
use recording::Mode;

use crate::error::Error;
use crate::installation::{PARTS_VARIABLE, variable};
use crate::slurm::Slurm;

/// What QEMU and this program may need in addition to the guest's memory, in MiB. For an idle guest of
/// 256 MiB they have used 222 and 54 in all; the rest is for the instructions that QEMU translates.
const MEMORY_MIB: u32 = 512;
/// The variables with which a user names another QEMU.
const QEMU_VARIABLES: [&str; 2] = ["NOISEFLOOR_QEMU", "NOISEFLOOR_QEMU_ARM64"];

/// A batch script.
pub(crate) struct Script<'a> {
    pub(crate) slurm: &'a Slurm,
    /// The name of the job.
    pub(crate) name: String,
    /// The number of its tasks, at least one.
    pub(crate) tasks: usize,
    /// The mode of all of its cells.
    pub(crate) mode: Mode,
    /// The memory of the largest guest, and of QEMU's copies of its files, in MiB.
    pub(crate) memory_mib: u32,
    /// Variables of the tasks.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    /// The folder of the array.
    pub(crate) folder: PathBuf,
}

/// The variables with which tasks have the lab of this process, whatever Slurm passes on.
pub(crate) fn environment(cache: &Path) -> Vec<(&'static str, PathBuf)> {
    let mut variables = vec![(CACHE_VARIABLE, cache.to_owned())];
    for name in [PARTS_VARIABLE].into_iter().chain(QEMU_VARIABLES) {
        let value = variable(name).map(PathBuf::from);
        // A path relative to here is none on another machine; a name is one in `PATH`.
        let absolute = |path: PathBuf| match path.components().count() {
            1 if name != PARTS_VARIABLE => path,
            _ => std::path::absolute(&path).unwrap_or(path),
        };
        variables.extend(value.map(|value| (name, absolute(value))));
    }
    variables
}

impl Script<'_> {
    /// Its text.
    ///
    /// # Errors
    /// A path that cannot be part of it.
    pub(crate) fn text(&self) -> Result<String, Error> {
        let log = text_of(&self.folder)?.replace('%', "%%") + "/log/%a.log";
        let mut lines = vec!["#!/bin/sh".to_owned()];
        let options = self.options();
        lines.extend(options.iter().map(|option| format!("#SBATCH {option}")));
        lines.push(format!("#SBATCH --output={}", quoted_option(&log)));
        for (name, value) in &self.environment {
            lines.push(format!("export {name}={}", quoted_word(text_of(value)?)));
        }
        let [program, folder] = [&self.slurm.program, &self.folder];
        lines.push(format!(
            "exec {} lab task {} \"$SLURM_ARRAY_TASK_ID\"",
            quoted_word(text_of(program)?),
            quoted_word(text_of(folder)?)
        ));
        Ok(lines.join("\n") + "\n")
    }

    /// The options of sbatch but the output's.
    fn options(&self) -> Vec<String> {
        let Self { slurm, name, mode, memory_mib, .. } = self;
        let mut options = vec![format!("--job-name={name}"), self.array()];
        let partition = slurm.partition.as_deref();
        options
            .extend(partition.map(|name| format!("--partition={}", quoted_option(name))));
        options.extend(["--nodes=1", "--ntasks=1"].map(str::to_owned));
        options.extend(match mode {
            // QEMU runs all CPUs of a guest in one thread.
            Mode::Exact => ["--cpus-per-task=1".to_owned(), {
                format!("--mem={}M", memory_mib.saturating_add(MEMORY_MIB))
            }],
            Mode::Timed => ["--exclusive".to_owned(), "--mem=0".to_owned()],
        });
        options.extend(["--requeue", "--open-mode=append"].map(str::to_owned));
        options
    }

    /// The option with the tasks, which also sbatch's command line has.
    pub(crate) fn array(&self) -> String {
        let last = self.tasks.saturating_sub(1);
        match self.slurm.at_once {
            Some(at_once) => format!("--array=0-{last}%{at_once}"),
            None => format!("--array=0-{last}"),
        }
    }
}

/// A path as text.
fn text_of(path: &Path) -> Result<&str, Error> {
    let text = path.to_str().filter(|text| !text.contains('\\'));
    let plain = text.filter(|text| !text.contains(|c: char| c.is_control()));
    plain.ok_or_else(|| Error::SlurmPath(path.to_owned()))
}

/// A value as one word of a line with options.
fn quoted_option(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A value as one word of a shell.
fn quoted_word(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm() -> Slurm {
        let program = "/opt/noise floor/noisefloor".into();
        Slurm { partition: None, at_once: None, program, tasks_max: 1001 }
    }

    fn script(slurm: &Slurm, mode: Mode) -> Script<'_> {
        Script {
            slurm,
            name: "noisefloor-x-exact-0123456789ab".to_owned(),
            tasks: 24,
            mode,
            memory_mib: 256,
            environment: vec![(CACHE_VARIABLE, "/home/o'hara/100%a \"x\" #1".into())],
            folder: "/home/o'hara/100%a \"x\" #1/slurm/n".into(),
        }
    }

    /// Check the script of exact cells: tasks that share nodes, and ask for the memory of their guest.
    #[test]
    fn exact() {
        let slurm =
            Slurm { partition: Some("a b\",c".to_owned()), at_once: Some(4), ..slurm() };
        insta::assert_snapshot!(script(&slurm, Mode::Exact).text().unwrap(), @r#"
        #!/bin/sh
        #SBATCH --job-name=noisefloor-x-exact-0123456789ab
        #SBATCH --array=0-23%4
        #SBATCH --partition="a b\",c"
        #SBATCH --nodes=1
        #SBATCH --ntasks=1
        #SBATCH --cpus-per-task=1
        #SBATCH --mem=768M
        #SBATCH --requeue
        #SBATCH --open-mode=append
        #SBATCH --output="/home/o'hara/100%%a \"x\" #1/slurm/n/log/%a.log"
        export NOISEFLOOR_CACHE='/home/o'\''hara/100%a "x" #1'
        exec '/opt/noise floor/noisefloor' lab task '/home/o'\''hara/100%a "x" #1/slurm/n' "$SLURM_ARRAY_TASK_ID"
        "#);
    }

    /// Check the script of cells in real time: each has a node for itself.
    #[test]
    fn timed() {
        let text = script(&slurm(), Mode::Timed).text().unwrap();
        let options = text.lines().filter(|line| line.starts_with("#SBATCH"));
        let options: Vec<&str> = options.skip(1).take(5).collect();
        insta::assert_snapshot!(options.join("\n"), @r"
        #SBATCH --array=0-23
        #SBATCH --nodes=1
        #SBATCH --ntasks=1
        #SBATCH --exclusive
        #SBATCH --mem=0
        ");
    }

    /// Check that a shell runs the program with exactly the paths that the script quotes.
    #[test]
    fn read_by_a_shell() {
        let slurm = Slurm { program: "/bin/echo".into(), ..slurm() };
        let text = script(&slurm, Mode::Exact).text().unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(&text).env("SLURM_ARRAY_TASK_ID", "7");
        let output = shell.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, "lab task /home/o'hara/100%a \"x\" #1/slurm/n 7\n");
    }

    /// Check that a path that sbatch would take for another one is refused.
    #[test]
    fn impossible_paths() {
        for path in ["/a\\b", "/a\nb"] {
            let slurm = slurm();
            let script = Script { folder: path.into(), ..script(&slurm, Mode::Exact) };
            let error = script.text().unwrap_err();
            assert!(matches!(error, Error::SlurmPath(_)), "{error}");
        }
    }
}
