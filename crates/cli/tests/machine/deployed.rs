//! The files of `deploy/`, read by the programs that they are for; and a Prometheus that scrapes the exporter.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::environment::end_with_test;
use crate::exporter::{Exporter, answer, get};
use crate::install::install;
use crate::tool::{TOOL, text, turn, wait_for};

fn deployed(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file)
}

/// Runs a program; what it said, if it is installed. It must succeed.
fn checked(test: &str, program: &str, args: &[&str], folder: &Path) -> Option<String> {
    match Command::new(program).args(args).current_dir(folder).output() {
        Ok(output) => {
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(output.status.success(), "{program} {args:?}: {said}");
            Some(said)
        }
        Err(error) => {
            println!("skipped: {test}: {program}: {error}");
            None
        }
    }
}

/// Check that the alerts are valid, and that each fires for the example that it is for, and for no other.
#[test]
fn alerts() {
    let folder = deployed("prometheus");
    let rules = ["check", "rules", "noisefloor.rules.yml"];
    let tests = ["test", "rules", "noisefloor.rules.test.yml"];
    let syntax = ["check", "config", "--syntax-only", "prometheus.yml"];
    for args in [&rules[..], &tests, &syntax] {
        if checked("alerts", "promtool", args, &folder).is_none() {
            return;
        }
    }
    let read = |name| fs::read_to_string(folder.join(name)).unwrap();
    let (rules, tests) =
        (read("noisefloor.rules.yml"), read("noisefloor.rules.test.yml"));
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert!(
            tests.contains(&format!("alertname: {alert}\n")),
            "{alert} has no example"
        );
    }
}

/// Check that the service of systemd is valid.
#[test]
fn service() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bin/noisefloor");
    fs::create_dir(program.parent().unwrap()).unwrap();
    install(TOOL, &program);
    let unit = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("systemd/noisefloor-exporter.service.in");
    let unit = fs::read_to_string(unit).unwrap();
    let unit = unit.replace("@PREFIX@", folder.path().to_str().unwrap());
    fs::write(folder.path().join("noisefloor-exporter.service"), unit).unwrap();
    let args = ["verify", "--man=no", "./noisefloor-exporter.service"];
    let said = checked("service", "systemd-analyze", &args, folder.path());
    assert!(said.is_none_or(|said| said.is_empty() || !said.contains("noisefloor")));
}

/// Check the objects of Kubernetes against its schemas.
#[test]
fn kubernetes() {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("kubernetes-validate/bin/kubernetes-validate");
    let program = match own.exists() {
        true => own.to_str().unwrap(),
        false => "kubernetes-validate",
    };
    let args = ["--strict", "daemonset.yaml"];
    checked("kubernetes", program, &args, &deployed("kubernetes"));
}

/// A running Prometheus, without a rule of its own.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    fn start(folder: &Path, target: &str) -> std::io::Result<Self> {
        let rules = deployed("prometheus/noisefloor.rules.yml");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [{:?}]\n\
             scrape_configs:\n\
             - job_name: noisefloor\n  static_configs: [{{targets: ['{target}']}}]\n",
            rules.canonicalize()?
        );
        fs::write(folder.join("prometheus.yml"), config)?;
        // Free at this moment: Prometheus cannot choose one itself.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let mut command = Command::new("prometheus");
        command.arg(format!("--web.listen-address={address}"));
        command.args(["--storage.tsdb.path=data", "--config.file=prometheus.yml"]);
        end_with_test(&mut command, libc::SIGKILL);
        let quiet =
            command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: quiet.spawn()?, address })
    }

    fn api(&self, path: &str) -> Value {
        let object: Value =
            serde_json::from_str(&get(&self.address, &format!("/api/v1/{path}")))
                .unwrap();
        assert_eq!(object["status"], "success", "{path}: {object}");
        object["data"].clone()
    }

    fn query(&self, query: &str) -> Vec<Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let found = self.api(&format!("query?query={encoded}"));
        found["result"].as_array().unwrap().clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The queries of the dashboard, as Grafana sends them.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let query = |target: &Value| {
        let query = target["expr"].as_str().unwrap();
        query
            .replace("$__rate_interval", "30s")
            .replace("$instance", ".*")
            .replace("$job", ".*")
    };
    targets.map(query).collect()
}

/// Check that a Prometheus scrapes the exporter, that it evaluates every rule without an error, and that every
/// query of the dashboard has data.
#[test]
fn prometheus_scrapes() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::start(&[]);
    let prometheus = match Prometheus::start(folder.path(), &exporter.address) {
        Ok(prometheus) => prometheus,
        Err(error) => {
            return println!("skipped: prometheus_scrapes: prometheus: {error}");
        }
    };
    let is_ready = || answer(&prometheus.address, "/-/ready");
    wait_for("Prometheus", || is_ready().is_ok_and(|text| text.contains(" 200 OK")));
    wait_for("scrape", || {
        !prometheus.query("count_over_time(noisefloor_tracing[1m]) > 4").is_empty()
    });
    let up = prometheus.query("up{job=\"noisefloor\"}");
    assert_eq!(up[0]["value"][1], "1", "{up:?}");
    let text = fs::read_to_string(deployed("grafana/noisefloor.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let is_traced = prometheus.query("noisefloor_tracing")[0]["value"][1] == "1";
    for query in queries(&dashboard) {
        if is_traced {
            assert!(!prometheus.query(&query).is_empty(), "no data: {query}");
        }
    }
    if !is_traced {
        println!(
            "skipped: prometheus_scrapes: queries of the dashboard: nothing is traced"
        );
    }
    let is_evaluated =
        |rule: &Value| rule["health"] == "ok" && rule["lastError"].is_null();
    let rules = || -> Vec<Value> {
        prometheus.api("rules")["groups"][0]["rules"].as_array().unwrap().clone()
    };
    wait_for("evaluation of each rule", || rules().iter().all(is_evaluated));
    assert_eq!(rules().len(), 11);
}
