//! A browser without a window, which tests read pages with: Chromium's protocol for developers, over
//! pipes. Messages are JSON, each followed by a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// The names of browsers that speak this protocol.
const BROWSERS: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
];
const OPTIONS: [&str; 9] = [
    "--headless",
    "--remote-debugging-pipe",
    // The pages are this project's own, and containers do not allow a sandbox.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
];
/// The browser reads from file descriptor 3 and writes to 4.
const SHELL: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;
/// The time for an answer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one tab.
pub(super) struct Browser {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    session: Value,
    /// The number of the last request.
    last: u64,
    /// The names and parameters of events so far.
    pub(super) events: Vec<(String, Value)>,
    profile: TempDir,
}

impl Browser {
    /// Starts the first browser that is installed; `None` if there is none.
    pub(super) fn start() -> Option<Self> {
        let has = |name: &&&str| {
            let run = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            run.is_ok_and(|output| output.status.success())
        };
        let name = BROWSERS.iter().find(has)?;
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", SHELL, name])
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, messages) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap();
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let requests = child.stdin.take().unwrap();
        let (session, last, events) = (Value::Null, 0, Vec::new());
        let mut browser =
            Self { child, requests, messages, session, last, events, profile };
        browser.open_tab();
        Some(browser)
    }

    fn open_tab(&mut self) {
        let tab = self.ask("Target.createTarget", json!({"url": "about:blank"}));
        let tab = json!({"targetId": tab["targetId"], "flatten": true});
        self.session = self.ask("Target.attachToTarget", tab)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(&format!("{domain}.enable"), json!({}));
        }
    }

    /// The answer to a request.
    pub(super) fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut request =
            json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_null() {
            request["sessionId"] = self.session.clone();
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        loop {
            let mut message = self.next();
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
        }
    }

    /// The next message; events are added to the list.
    fn next(&mut self) -> Value {
        let mut message = self.messages.recv_timeout(PATIENCE).unwrap();
        if let Some(event) = message["method"].as_str() {
            self.events.push((event.to_owned(), message["params"].take()));
        }
        message
    }

    /// Loads a page, and forgets the events before.
    pub(super) fn load(&mut self, page: &str) {
        let file = self.profile.path().join("page.html");
        std::fs::write(&file, page).unwrap();
        self.events.clear();
        self.ask("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        while !self.events.iter().any(|(name, _)| name == "Page.loadEventFired") {
            self.next();
        }
    }

    /// The value of an expression, or of the promise that it is.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut answer = self.ask("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Sets the width of the window, and whether the system prefers dark colours.
    pub(super) fn look(&mut self, width: u32, scheme: &str) {
        let size = json!({
            "width": width, "height": 1200, "deviceScaleFactor": 1, "mobile": false,
        });
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", json!({"features": scheme}));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The answer may not come.
        let _ = self.requests.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.wait();
    }
}
