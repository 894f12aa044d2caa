//! A CPU quota of this process's cgroup, as users of containers meet it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::tool::{first_cpu, is_root, text, tool, tool_in, turn};

/// A cgroup with a CPU quota of 20 ms in each 100 ms; removed when it is dropped.
struct WithQuota(PathBuf);

impl WithQuota {
    /// Below the mount point of the hierarchy with that controller; the reason if that is not possible.
    fn new(name: &str) -> Result<Self, String> {
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

impl Drop for WithQuota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
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
    let of = |mut command: Command| -> Value {
        let output = command.output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
    };
    let doubts = |object: &Value, code: &str| -> Vec<String> {
        let all = object["doubts"].as_array().unwrap().iter();
        let all = all.filter(|doubt| doubt["code"] == code);
        all.map(|doubt| doubt["text"].as_str().unwrap().to_owned()).collect()
    };
    let object = of(tool_in(&quota.0, &args));
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
    let free = of(tool(&args));
    assert!(free["facts"]["cgroup"]["quota"]["quota_us"] != 20_000);
    assert!(!doubts(&free, "throttled").iter().any(|text| text.contains(name)));
}
