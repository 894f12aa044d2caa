//! A CPU quota of this process's cgroup, as users of containers meet it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;

use crate::environment::end_with_test;
use crate::tool::{first_cpu, is_root, on, text, tool, tool_in, turn};

/// A cgroup with a CPU quota of 20 ms in each 100 ms; removed when it is dropped.
pub(crate) struct WithQuota(PathBuf);

impl WithQuota {
    /// Below the mount point of the hierarchy with that controller; the reason if that is not possible.
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mounted = |kind: &str, option: &str| {
            let mut lines =
                mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let is_it = |words: &Vec<&str>| {
                words[2] == kind && words[3].split(',').any(|word| word == option)
            };
            lines.find(is_it).map(|words| PathBuf::from(words[1]))
        };
        let (files, mount): (&[(&str, &str)], _) = match mounted("cgroup", "cpu") {
            Some(mount) => {
                (&[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")], mount)
            }
            None => {
                let mount = mounted("cgroup2", "rw").ok_or("no cgroups are mounted")?;
                (&[("cpu.max", "20000 100000")], mount)
            }
        };
        let folder = mount.join(format!("noisefloor-test-{name}-{}", std::process::id()));
        let failed =
            |file: &Path, why: std::io::Error| format!("{}: {why}", file.display());
        fs::create_dir(&folder).map_err(|why| failed(&folder, why))?;
        let made = Self(folder);
        for (file, value) in files {
            let file = made.0.join(file);
            fs::write(&file, value).map_err(|why| failed(&file, why))?;
        }
        Ok(made)
    }
}

impl WithQuota {
    /// Whether real-time threads may run in it: if they are grouped (v1), a group needs a part of the time.
    fn allows_real_time(&self) -> bool {
        let runtime = self.0.join("cpu.rt_runtime_us");
        !runtime.exists() || fs::write(runtime, "200000").is_ok()
    }

    /// How long it has been throttled, by the kernel's count.
    pub(crate) fn throttled_ns(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let times = [("throttled_time ", 1), ("throttled_usec ", 1000)];
        let found = times.iter().find_map(|(key, unit)| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.parse::<u64>().unwrap() * unit)
        });
        found.unwrap_or_else(|| panic!("{text}"))
    }

    /// Makes a command's process one of it.
    pub(crate) fn with(&self, child: &Child) {
        fs::write(self.0.join("cgroup.procs"), child.id().to_string()).unwrap();
    }
}

impl Drop for WithQuota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A program that uses that CPU until it is dropped.
pub(crate) struct Load(pub(crate) Child);

impl Load {
    pub(crate) fn start(cpu: &str) -> Self {
        let mut load = on(cpu, "sh");
        end_with_test(&mut load, libc::SIGKILL);
        Self(load.args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The recording that a command prints; `run` prints it, after messages, to standard error.
fn recording(mut command: Command) -> Value {
    let output = command.output().unwrap();
    let all = [output.stdout, output.stderr].concat();
    let begin = all.iter().position(|byte| *byte == b'{').unwrap_or(0);
    let mut values = serde_json::Deserializer::from_slice(&all[begin..]).into_iter();
    values.next().and_then(Result::ok).unwrap_or_else(|| panic!("{}", text(&all)))
}

/// How long threads have waited by the kernel's count, according to the doubt about it.
fn counted_ns(object: &Value) -> f64 {
    let throttled = doubts(object, "throttled");
    let number = |text: &String| {
        let seconds = text.split_once("waited ")?.1.split_once(" s ")?.0;
        seconds.parse::<f64>().ok()
    };
    throttled.iter().find_map(number).unwrap_or_else(|| panic!("{throttled:?}")) * 1e9
}

/// The doubts with that code.
fn doubts(object: &Value, code: &str) -> Vec<String> {
    let all = object["doubts"].as_array().unwrap().iter();
    let all = all.filter(|doubt| doubt["code"] == code);
    all.map(|doubt| doubt["text"].as_str().unwrap().to_owned()).collect()
}

/// The time of the quota among these culprits.
fn quota_ns(culprits: &Value) -> f64 {
    let all = culprits.as_array().into_iter().flatten();
    let quota = all.filter(|culprit| culprit["kind"] == "quota");
    quota.map(|culprit| culprit["ns"].as_f64().unwrap()).sum()
}

/// Check that the time that a quota takes from the loop is that of the kernel's count, beside other load
/// and without, and that a loop without a quota has no such cause.
#[test]
fn quota_is_a_cause_of_noise() {
    let _turn = turn();
    let quota = match traced_quota("cause") {
        Ok(quota) => quota,
        Err(why) => return println!("skipped: quota_is_a_cause_of_noise: {why}"),
    };
    let cpu = first_cpu();
    let args = ["noise", "-c", &cpu, "-d", "4", "--source", "bpf", "--json"];
    for has_load in [false, true] {
        let _load = has_load.then(|| Load::start(&cpu));
        let object = recording(tool_in(&quota.0, &args));
        let counted = counted_ns(&object);
        let found = quota_ns(&object["summary"]["culprits"]);
        println!("load {has_load}: {found} ns, of {counted} ns that the kernel counted");
        assert!((found / counted - 1.0).abs() < 0.05, "{found} of {counted}");
    }
    let free = recording(tool(&args));
    assert_eq!(quota_ns(&free["summary"]["culprits"]), 0.0);
}

/// Check that a quota that other threads of the group use up is a cause of late wake-ups, and one that a
/// program or a workload uses up of its interruptions and of slow loops; and that real-time threads wait
/// for none.
#[test]
fn quota_is_a_cause_elsewhere() {
    let _turn = turn();
    let quota = match traced_quota("causes") {
        Ok(quota) => quota,
        Err(why) => return println!("skipped: quota_is_a_cause_elsewhere: {why}"),
    };
    let cpu = first_cpu();
    let of = |args: &[&str]| recording(tool_in(&quota.0, args));
    let latency = |fifo: &[&str]| {
        let load = Load::start(&cpu);
        quota.with(&load.0);
        let args = ["latency", "-c", &cpu, "-d", "2", "--source", "bpf", "--json"];
        quota_ns(&of(&[&args, fifo].concat())["summary"]["culprits"])
    };
    let found = latency(&[]);
    assert!(found > 0.3e9, "{found}");
    if quota.allows_real_time() {
        assert_eq!(latency(&["--fifo", "50"]), 0.0);
    }
    let loops = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
    let run = ["run", "-c", &cpu, "--source", "bpf", "--json", "--", "sh", "-c", loops];
    let object = of(&run);
    let found = quota_ns(&object["summary"]["interruptions"]["culprits"]);
    assert!(found > 0.1e9, "{found} in {}", object["summary"]["run_ns"]);
    let jitter =
        ["jitter", "--fifo", "0", "-a", &cpu, "-l", "100", "-t", "8", "--source"];
    let object = of(&[&jitter[..], &["bpf", "--json"]].concat());
    assert!(quota_ns(&object["summary"]["culprits"]) > 0.1e9, "{object}");
}

/// A cgroup with a quota, if eBPF programs find its time; else the reason.
fn traced_quota(name: &str) -> Result<WithQuota, String> {
    if !is_root() {
        return Err("it takes root".to_owned());
    }
    let probe = tool(&["noise", "-c", &first_cpu(), "-d", "0.01", "--source", "bpf"]);
    let output = { probe }.output().unwrap();
    match output.status.code() {
        Some(3) => Err(text(&output.stderr)),
        _ => WithQuota::new(name),
    }
}

/// Check that a quota is a fact, and that using it up is a doubt with the number and the time, instead of
/// the suspicion that the loop was stopped; and that without a quota there is neither.
#[test]
fn quota_of_a_cgroup() {
    let _turn = turn();
    if !is_root() {
        return println!("skipped: quota_of_a_cgroup: it takes root");
    }
    let quota = match WithQuota::new("quota") {
        Ok(quota) => quota,
        Err(why) => return println!("skipped: quota_of_a_cgroup: {why}"),
    };
    let cpu = first_cpu();
    let args = ["noise", "-c", &cpu, "-d", "1", "--json"];
    let object = recording(tool_in(&quota.0, &args));
    let fact = &object["facts"]["cgroup"]["quota"];
    assert_eq!(
        (&fact["quota_us"], &fact["period_us"]),
        (&20_000.into(), &100_000.into())
    );
    let throttled = doubts(&object, "throttled");
    let name = quota.0.file_name().unwrap().to_str().unwrap();
    assert!(throttled.iter().any(|text| text.contains(name)), "{throttled:?}");
    assert_eq!(doubts(&object, "idled"), Vec::<String>::new());
    // The loop is alone in it: it ran for at most a fifth, and a period at the beginning and at the end.
    let noise = object["summary"]["cpus"][0]["noise_ppm"].as_f64().unwrap();
    assert!(noise > 500_000.0, "{noise}");
    let free = recording(tool(&args));
    assert!(free["facts"]["cgroup"]["quota"]["quota_us"] != 20_000);
    assert!(!doubts(&free, "throttled").iter().any(|text| text.contains(name)));
}
