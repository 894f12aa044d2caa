//! Experiments as job arrays of a real Slurm: a controller and three nodes on this machine, in a folder
//! of their own, with ports that were free.
//!
//! The nodes are daemons with different names, as Debian's build allows; a node is killed with all of
//! its processes.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::site::{Site, text};

/// The longest time for a job on a busy host.
const LONG: Duration = Duration::from_secs(300);
/// The programs of a Slurm, and the folders that a user may not have in PATH.
const DAEMONS: [&str; 3] = ["munged", "slurmctld", "slurmd"];
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];
const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// A cell that takes a few seconds, and brief ones.
const CELLS: &str = "name = \"cells\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[workload]]\nname = \"long\"\nnoise = { cpu = 0, duration = \"4s\" }\n\
     [[workload]]\nname = \"idle\"\nticks = { cpu = 0, duration = \"1s\" }\n\
     [[workload]]\nname = \"calls\"\ncalls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n";

/// The same cells, all of them brief.
fn brief() -> String {
    CELLS.replace("4s", "1s")
}

/// One Slurm at a time: nodes of two would share this machine's CPUs.
static TURN: Mutex<()> = Mutex::new(());

/// A controller and three nodes; all of their processes are killed at the end.
struct Cluster {
    folder: TempDir,
    daemons: Vec<(&'static str, Child)>,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    /// `None`, with the reason printed, if Slurm is not installed or does not start here.
    fn start(test: &str, tasks_max: usize) -> Option<Self> {
        let skip = |why: String| {
            println!("skipped: {test}: {why}");
            None
        };
        if let Some(missing) = DAEMONS.iter().find(|name| program(name).is_none()) {
            return skip(format!(
                "{missing} is not installed (Debian: slurm-wlm, munge)"
            ));
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // A socket's path is at most 107 bytes long.
        let folder = tempfile::Builder::new().prefix("nf-slurm-").tempdir().unwrap();
        let mut cluster = Self { folder, daemons: Vec::new(), _turn: turn };
        cluster.configure(tasks_max);
        cluster.start_daemons();
        let began = Instant::now();
        while cluster.idle_nodes() < NODES.len() {
            if began.elapsed() > Duration::from_secs(30) {
                return skip(format!("its nodes do not start: {}", cluster.complaints()));
            }
            thread::sleep(Duration::from_millis(100));
        }
        Some(cluster)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    /// Writes the files of the daemons: munge's key, and Slurm's configuration. A failed node is noticed
    /// after ten seconds instead of five minutes, and its jobs start again after five instead of 120.
    fn configure(&self, tasks_max: usize) {
        for folder in ["state", "spool", "munge"] {
            fs::create_dir(self.path(folder)).unwrap();
        }
        let mut key = [0; 128];
        fs::File::open("/dev/urandom").unwrap().read_exact(&mut key).unwrap();
        let file = self.path("munge/key");
        fs::write(&file, key).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o400);
        fs::set_permissions(&file, private).unwrap();
        let user = Command::new("id").arg("-un").output().unwrap();
        let user = text(&user.stdout).trim().to_owned();
        let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
        let ports = free_ports(1 + NODES.len());
        let nodes = NODES.iter().zip(&ports[1..]).map(|(name, port)| {
            format!(
                "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 \
                 RealMemory=4000\n"
            )
        });
        let nodes: String = nodes.collect();
        let config = format!(
            "ClusterName=noisefloor\nSlurmctldHost=localhost\nSlurmctldPort={port}\n\
             AuthInfo=socket={folder}/munge/socket,cred_expire=5\n\
             SlurmUser={user}\nSlurmdUser={user}\nStateSaveLocation={folder}/state\n\
             SlurmdSpoolDir={folder}/spool/%n\nSlurmctldPidFile={folder}/ctld.pid\n\
             SlurmdPidFile={folder}/%n.pid\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSlurmdParameters=config_overrides\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n\
             ReturnToService=2\nSlurmdTimeout=10\nKillWait=2\nMpiDefault=none\n\
             JobAcctGatherType=jobacct_gather/none\nMaxArraySize={tasks_max}\n{nodes}\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
            port = ports[0],
            folder = self.folder.path().display(),
        );
        fs::write(self.config(), config).unwrap();
    }

    fn start_daemons(&mut self) {
        let munge = |option: &str, name: &str| {
            format!("--{option}={}", self.path(&format!("munge/{name}")).display())
        };
        let files = [
            munge("socket", "socket"),
            munge("key-file", "key"),
            munge("pid-file", "pid"),
            munge("log-file", "log"),
            munge("seed-file", "seed"),
        ];
        let mut munged = vec!["--foreground".to_owned(), "--force".to_owned()];
        munged.extend(files);
        self.spawn("munged", "munged", &munged);
        let socket = self.path("munge/socket");
        let began = Instant::now();
        while !socket.exists() && began.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(20));
        }
        let config = self.config().display().to_string();
        let foreground = ["-D".to_owned(), "-f".to_owned(), config];
        self.spawn(
            "slurmctld",
            "slurmctld",
            &[foreground.as_slice(), &["-c".to_owned()]].concat(),
        );
        for node in NODES {
            let arguments = [foreground.as_slice(), &["-N".to_owned(), node.to_owned()]];
            self.spawn(node, "slurmd", &arguments.concat());
        }
    }

    fn spawn(&mut self, name: &'static str, daemon: &str, arguments: &[String]) {
        let log = fs::File::create(self.path(&format!("{name}.out"))).unwrap();
        let mut command = Command::new(program(daemon).unwrap());
        command.args(arguments).env("SLURM_CONF", self.config()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        isolate::tether(&mut command, None);
        self.daemons.push((name, command.spawn().unwrap()));
    }

    /// What the daemons printed last.
    fn complaints(&self) -> String {
        let last = |name: &&str| {
            let text =
                fs::read_to_string(self.path(&format!("{name}.out"))).unwrap_or_default();
            text.lines().last().map(str::to_owned)
        };
        ["munged", "slurmctld", "n1"]
            .iter()
            .filter_map(last)
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// What one of Slurm's commands prints.
    fn ask(&self, command: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(command);
        let output = command.args(arguments).env("SLURM_CONF", self.config()).output();
        text(&output.unwrap().stdout)
    }

    fn idle_nodes(&self) -> usize {
        let nodes = self.ask("sinfo", &["-h", "-N", "-o", "%T"]);
        nodes.lines().filter(|state| *state == "idle").count()
    }

    /// The nodes of running tasks.
    fn busy(&self) -> Vec<String> {
        let nodes = self.ask("squeue", &["-h", "-r", "-t", "R", "-o", "%N"]);
        nodes.lines().map(str::to_owned).collect()
    }

    /// The lab on this Slurm, with that experiment.
    fn lab(&self, site: &Site, arguments: &[&str]) -> Command {
        let mut command = site.tool(&[&["lab", "run"], arguments].concat());
        command.env("SLURM_CONF", self.config());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Kills a node: its daemon, and the processes of its tasks and their parents.
    fn kill(&mut self, node: &str) {
        for (_, daemon) in self.daemons.iter_mut().filter(|(name, _)| *name == node) {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
        }
        for process in self.processes(Some(node)) {
            let _ = kill_process(process, Signal::KILL);
        }
    }

    /// The processes of tasks and of Slurm's steps, of a node or all: those with a variable that names
    /// this Slurm, and their parents that are no daemon of it.
    fn processes(&self, node: Option<&str>) -> Vec<Pid> {
        let own = format!("SLURM_CONF={}", self.config().display());
        let is_own = |variables: &str| {
            let mut variables = variables.split('\0');
            let of_node = node.map(|node| format!("SLURMD_NODENAME={node}"));
            variables.clone().any(|variable| variable == own)
                && variables.any(|variable| match &of_node {
                    Some(of_node) => variable == of_node,
                    None => variable.starts_with("SLURMD_NODENAME="),
                })
        };
        let number =
            |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
        let numbers = fs::read_dir("/proc").unwrap().flatten().filter_map(number);
        let mut found = Vec::new();
        for number in numbers {
            let environment =
                fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            if is_own(&text(&environment)) {
                found.push(number);
                found.extend(step(number));
            }
        }
        found.into_iter().filter_map(Pid::from_raw).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.processes(None) {
            let _ = kill_process(process, Signal::KILL);
        }
        for (_, daemon) in &self.daemons {
            let _ = kill_process(Pid::from_child(daemon), Signal::TERM);
        }
        for (_, daemon) in &mut self.daemons {
            end(daemon);
        }
    }
}

/// Waits for the end of a daemon that has got SIGTERM; the controller then ends its own helper.
fn end(daemon: &mut Child) {
    let began = Instant::now();
    while matches!(daemon.try_wait(), Ok(None))
        && began.elapsed() < Duration::from_secs(10)
    {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = daemon.kill();
    let _ = daemon.wait();
}

/// The parent of a process, if it is the one that Slurm runs a step with.
fn step(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    let command = fs::read_to_string(format!("/proc/{parent}/cmdline")).ok()?;
    command.starts_with("slurmstepd").then(|| parent.parse().ok()).flatten()
}

/// A daemon's path.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(FOLDERS).map(Path::new);
    folders.map(|folder| folder.join(name)).find(|file| file.exists())
}

/// Ports that are free now.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// The report without Slurm, in a cache of its own.
fn without_slurm(arguments: &[&str]) -> Option<Output> {
    let site = Site::new()?;
    let file = site.file("cells.toml", CELLS);
    let output = site.output(&[&["lab", "run", &file], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    Some(output)
}

/// Whether a guest boots.
fn has_console(site: &Site) -> bool {
    let works = fs::read_dir(site.cache().join("work")).into_iter().flatten().flatten();
    works.into_iter().any(|work| work.path().join("console").exists())
}

/// What is left of arrays in the cache of a site.
fn arrays(site: &Site) -> Vec<String> {
    let entries =
        fs::read_dir(site.cache().join("slurm")).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|folder| folder.file_name().into_string().unwrap()).collect()
}

/// Check that no cell is lost when a node is killed in the middle of a job array: its tasks run again on
/// another node, and the report is the one without Slurm, byte for byte.
#[test]
fn node_failure() {
    let Some(mut cluster) = Cluster::start("node_failure", 1001) else { return };
    let Some(expected) = without_slurm(&[]) else { return };
    let Some(site) = Site::new() else { return };
    let file = site.file("cells.toml", CELLS);
    let lab =
        cluster.lab(&site, &[&file, "--slurm", "--partition", "main"]).spawn().unwrap();
    wait_until("a task runs", || !cluster.processes(Some("n1")).is_empty());
    wait_until("a guest boots", || has_console(&site));
    let busy = cluster.busy();
    cluster.kill("n1");
    let output = lab.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(busy.iter().any(|node| node == "n1"), "{busy:?} {said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
    // The lab asks rarely, and may miss the time between the two runs of a task.
    let jobs = cluster.ask("scontrol", &["--oneliner", "show", "job"]);
    assert!(jobs.contains(" Restarts=1 "), "{jobs} {said}");
    assert_eq!(text(&output.stdout), text(&expected.stdout), "{said}");
    assert_eq!(arrays(&site), Vec::<String>::new());
}

/// Check that arrays with fewer tasks than cells have several cells in a task, that the cells of a killed
/// lab are neither lost nor run again, and that Ctrl-C cancels the job.
#[test]
fn interruptions() {
    let Some(cluster) = Cluster::start("interruptions", 2) else { return };
    let Some(site) = Site::new() else { return };
    let file = site.file("cells.toml", &brief());
    let arguments = [file.as_str(), "--slurm", "--json"];
    let mut lab = cluster.lab(&site, &arguments).spawn().unwrap();
    wait_until("a task runs", || !cluster.busy().is_empty());
    lab.kill().unwrap();
    lab.wait().unwrap();
    let lab = cluster.lab(&site, &arguments).spawn().unwrap();
    let output = lab.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // On a busy machine the job may have ended meanwhile.
    let goes_on = said.contains("of an interrupted run goes on");
    println!("the job of the killed lab went on: {goes_on}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert!(
        cells.len() == 3 && cells.iter().all(|cell| cell["cached"] == true),
        "{said}"
    );
    assert!(!said.contains("submitted"), "{said}");

    let lab =
        cluster.lab(&site, &[&arguments[..], &["--fresh"]].concat()).spawn().unwrap();
    wait_until("a task runs", || !cluster.busy().is_empty());
    kill_process(Pid::from_child(&lab), Signal::INT).unwrap();
    let output = lab.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("the jobs are cancelled"), "{said}");
    wait_until("no task is left", || cluster.ask("squeue", &["-h"]).is_empty());
}

/// Check that cells in real time have a node each, that the answers of all are reported, and that a cell
/// whose task is killed is lost with the state and the end of its output, which is saved.
#[test]
fn real_time_and_a_killed_task() {
    let name = "real_time_and_a_killed_task";
    let Some(cluster) = Cluster::start(name, 1001) else { return };
    let Some(site) = Site::new() else { return };
    let file = site.file("cells.toml", &brief());
    let arguments = [file.as_str(), "--slurm", "--json", "--mode", "timed"];
    let lab = cluster.lab(&site, &arguments).spawn().unwrap();
    wait_until("three nodes are busy", || cluster.busy().len() == NODES.len());
    let mut nodes = cluster.busy();
    nodes.sort();
    assert_eq!(nodes, NODES);
    let array = site.cache().join("slurm").join(&arrays(&site)[0]);
    let log = array.join("log/0.log");
    wait_until("the first task has begun", || {
        fs::metadata(&log).is_ok_and(|log| log.len() > 0)
    });
    // The task of the longest cell; the program is the one with a folder and an index.
    let task = cluster.processes(None).into_iter().find(|process| {
        let pid = process.as_raw_nonzero();
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text(&command).contains("\0task\0") && text(&command).ends_with("\x000\0")
    });
    kill_process(task.unwrap(), Signal::KILL).unwrap();
    let output = lab.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let lost = &cells[0]["lost"];
    let why = lost["why"].as_str().unwrap();
    assert!(why.contains("(state FAILED); the last line of its output: "), "{why}");
    let log = fs::read_to_string(lost["console"].as_str().unwrap()).unwrap();
    assert!(log.contains("long on debian:6.1-cloud, on node n"), "{log}");
    for cell in &cells[1..] {
        assert_ne!(cell["summary"], Value::Null, "{said}");
    }
    assert_eq!(arrays(&site).len(), 1, "the output of the failed task");
}
