//! Chromium without a window, spoken to over a pair of pipes in the DevTools protocol.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine; only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Collects what the content security policy stops.
const WATCH: &str = "window.violations = [];
document.addEventListener('securitypolicyviolation', e => window.violations.push(e.violatedDirective));";

/// A browser with one page.
pub struct Browser {
    child: Child,
    requests: File,
    answers: Receiver<Value>,
    events: VecDeque<Value>,
    session: Option<String>,
    next: u64,
    pub dir: TempDir,
}

/// Where Chromium is; `None` when it is nowhere and nobody insists.
fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("BATCHQUAD_BROWSER") {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|file| file.is_file())
}

impl Browser {
    /// Starts the browser; `None` where there is none.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("no Chromium was found: the pages were not looked at");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let pipes = ["in", "out"].map(|name| dir.path().join(name));
        assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
        // The browser reads from descriptor 3 and writes to 4; a shell can open them without help from us.
        let script = r#"exec "$0" "$@" 3<"$IN" 4>"$OUT""#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(program).args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-extensions",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
        ]);
        command.arg(format!("--user-data-dir={}", dir.path().join("profile").display()));
        command.env("IN", &pipes[0]).env("OUT", &pipes[1]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let requests = File::options().write(true).open(&pipes[0]).unwrap();
        let (sender, answers) = channel();
        let mut reader = BufReader::new(File::open(&pipes[1]).unwrap());
        thread::spawn(move || {
            let mut message = Vec::new();
            while reader.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self { child, requests, answers, events: VecDeque::new(), session: None, next: 0, dir };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH}));
        Some(browser)
    }

    /// Calls a method and waits for its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        let of_browser = method.starts_with("Browser.") || method.starts_with("Target.");
        if let (Some(session), false) = (&self.session, of_browser) {
            message["sessionId"] = json!(session);
        }
        self.requests.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.answers.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{method}: {e}"));
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }

    /// Waits for an event; it and all before it are taken off the list.
    pub fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => self.answers.recv_timeout(PATIENCE).unwrap(),
            };
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Opens a file, and gives everything that happened on the way.
    pub fn open(&mut self, file: &Path) -> Vec<Value> {
        self.open_url(&format!("file://{}", file.display()))
    }

    /// Opens an address, and gives everything that happened on the way.
    pub fn open_url(&mut self, url: &str) -> Vec<Value> {
        self.events.clear();
        self.call("Page.navigate", json!({"url": url}));
        let mut seen = Vec::new();
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => self.answers.recv_timeout(PATIENCE).unwrap(),
            };
            let loaded = event["method"] == "Page.loadEventFired";
            seen.push(event);
            if loaded {
                return seen;
            }
        }
    }

    /// Everything that has happened since the last look.
    pub fn events(&mut self) -> Vec<Value> {
        self.events.drain(..).chain(self.answers.try_iter()).collect()
    }

    /// What an expression gives in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// How broad the window is.
    pub fn width(&mut self, width: u32) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Whether the system prefers dark pages.
    pub fn dark(&mut self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let feature = json!({"name": "prefers-color-scheme", "value": value});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Leaves a picture of the whole page where builds leave their files, to be looked at.
    pub fn picture(&mut self, name: &str) {
        let shot = self.call("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
        keep(name, "png", &shot["data"]);
    }

    /// The same on paper.
    pub fn print(&mut self, name: &str) {
        let pdf = self.call("Page.printToPDF", json!({"printBackground": true}));
        keep(name, "pdf", &pdf["data"]);
    }
}

fn keep(name: &str, extension: &str, data: &Value) {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    fs::create_dir_all(&dir).unwrap();
    let bytes = BASE64_STANDARD.decode(data.as_str().unwrap()).unwrap();
    assert!(bytes.len() > 10_000, "{name}.{extension} is nearly empty");
    fs::write(dir.join(format!("{name}.{extension}")), bytes).unwrap();
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.requests.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
