//! A directory with a problem in it, and the program.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// `N(x; 1, ½²) N(y; 0, ½²)` up to an offset, in awk; `SLEEP` seconds before the answer.
pub const BUMP: &str = r#"#!/bin/sh
read line
sleep "${SLEEP:-0}"
echo "$line" | sed 's/.*"x":\([^,}]*\),"y":\([^,}]*\)}.*/\1 \2/' |
    awk '{ printf "%.17g\n", -0.5 * (($1 - 1)^2 + $2^2) / 0.25 - log(2 * 3.14159265358979 * 0.25) }'
"#;

/// The evidence of [`BUMP`] under standard normal priors: `N(1; 0, 1¼) N(0; 0, 1¼)`.
pub fn bump_log_z() -> f64 {
    -0.5 / 1.25 - (std::f64::consts::TAU * 1.25).ln()
}

pub const PARAMETERS: &str = r#"
[[parameter]]
name = "x"
prior = { normal = { mean = 0, sd = 1 } }

[[parameter]]
name = "y"
prior = { normal = { mean = 0, sd = 1 } }
"#;

pub struct Place {
    pub dir: TempDir,
}

impl Place {
    /// A directory with `problem.toml` and the script `./likelihood`.
    pub fn new(script: &str, likelihood: &str, run: &str) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.script("likelihood", script);
        place.write(
            "problem.toml",
            &format!("{PARAMETERS}\n[likelihood]\ncommand = [\"./likelihood\"]\n{likelihood}\n[run]\n{run}\n"),
        );
        place
    }

    pub fn bump(run: &str) -> Self {
        Self::new(BUMP, "", run)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_batchquad"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end, which must come with this exit code.
    pub fn run(&self, args: &[&str], code: i32) -> Done {
        Done::new(args, self.command(args).output().unwrap(), code)
    }

    pub fn run_with_input(&self, args: &[&str], input: &str, code: i32) -> Done {
        let mut child = self.spawn(args);
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Done::new(args, child.wait_with_output().unwrap(), code)
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// `result --json` without what may differ between two runs with the same outcome.
    pub fn outcome(&self, store: &str) -> Value {
        let mut result = self.run(&["result", store, "--json"], 0).json();
        for key in ["seconds_choosing", "seconds_evaluating", "store"] {
            result.as_object_mut().unwrap().remove(key).unwrap();
        }
        result
    }

    /// Waits until so many evaluations are in the store.
    pub fn wait_for(&self, store: &str, evaluations: u64) {
        wait_until(|| {
            let status = self.command(&["status", store, "--json"]).output().unwrap();
            serde_json::from_slice::<Value>(&status.stdout)
                .is_ok_and(|status| status["evaluations"].as_u64().unwrap() >= evaluations)
        });
    }
}

/// Waits for something that will happen soon.
pub fn wait_until(mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it did not happen within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program that has ended.
pub struct Done {
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn new(args: &[&str], output: Output, code: i32) -> Self {
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}\nstdout: {stdout}\nstderr: {stderr}");
        Self { stdout, stderr }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }

    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Whether a process with this command line is there.
pub fn is_running(marker: &Path) -> bool {
    let marker = marker.as_os_str().as_encoded_bytes();
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.windows(marker.len()).any(|w| w == marker))
    })
}
