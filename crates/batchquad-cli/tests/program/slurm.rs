//! Job arrays: on a Slurm that is played, and on a real one of one node.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::{
    common::{Done, Place},
    examples::copy,
};

/// A cluster of one node whose tasks are done when they are submitted. Task 3 of the first array is lost, as at a time limit.
const SBATCH: &str = r#"#!/bin/sh
last=${1#--array=1-}
task=0
while [ "$task" -lt "$last" ]; do
    task=$((task + 1))
    if [ "$task" = 3 ] && [ ! -e lost ]; then touch lost; continue; fi
    SLURM_ARRAY_TASK_ID=$task "./$3" "$4" || exit 1
done
"#;

fn driver(place: &Place) -> Command {
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("python3");
    command.arg(place.path("driver.py")).env("PATH", path).env("BATCHQUAD", env!("CARGO_BIN_EXE_batchquad"));
    command
}

#[test]
fn bioassay_in_job_arrays() {
    let place = copy("slurm");
    std::fs::create_dir(place.path("bin")).unwrap();
    place.script("bin/sbatch", SBATCH);
    place.script("bin/squeue", "#!/bin/sh\n");
    let drive = || -> Output { driver(&place).env("POLL", "0").output().unwrap() };
    let done = Done::new(&["driver.py"], drive(), 0);
    assert!(place.path("lost").exists());
    assert!(done.stdout.contains("evaluations  60 in"), "{}", done.stdout);
    let result = place.run(&["result", "problem.batchquad", "--json"], 0).json();
    assert!((result["log_z"].as_f64().unwrap() + 3.76223).abs() < 0.05, "{result}");
    assert_eq!((&result["failures"], &result["pending"]), (&0.into(), &0.into()), "{result}");

    let anew = || {
        std::fs::remove_dir_all(place.path("problem.batchquad")).unwrap();
        std::fs::remove_dir_all(place.path("queue")).unwrap();
    };
    // A cluster that takes nothing: it says so, and nothing is lost.
    anew();
    place.script("bin/sbatch", "#!/bin/sh\nexit 1\n");
    let failed = drive();
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(said.contains("sbatch") && said.contains("ended with 1"), "{said}");
    // One on which tasks end without a word: each is tried three times, and then failed.
    place.script("bin/sbatch", "#!/bin/sh\nexit 0\n");
    drive();
    let status = place.run(&["status", "problem.batchquad", "--json"], 0).json();
    assert_eq!(status["pending"], 0, "{status}");
    assert!(status["failures"].as_u64().unwrap() >= 8, "{status}");

    // A likelihood that fails says so, and where to look.
    anew();
    place.script("bin/sbatch", SBATCH);
    place.write("likelihood.py", "raise SystemExit('no licence')\n");
    drive();
    let status = place.run(&["status", "problem.batchquad", "--json"], 0).json();
    assert_eq!(status["failures"], 60, "{status}");
}

/// The script that starts a Slurm, and where that Slurm lives. It ends with the test.
struct Slurm {
    dir: tempfile::TempDir,
}

impl Slurm {
    /// None where this machine cannot have one, with the reason printed.
    fn start() -> Option<Self> {
        let slurm = Self { dir: tempfile::tempdir().unwrap() };
        // The daemons stay and must not hold our pipes.
        let said = slurm.dir.path().join("said");
        let to = || Stdio::from(std::fs::File::options().create(true).append(true).open(&said).unwrap());
        let started = slurm.script("start").stdin(Stdio::null()).stdout(to()).stderr(to()).status().unwrap();
        if started.success() {
            return Some(slurm);
        }
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        eprintln!("skipped: no Slurm on this machine: {}", said.lines().last().unwrap_or("no reason given"));
        None
    }

    fn script(&self, action: &str) -> Command {
        let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/slurm");
        let mut command = Command::new("sh");
        command.arg(script).arg(action).arg(self.dir.path()).env("SLURM_CPUS", "8");
        command
    }

    /// Whether Slurm did what was asked of it; if not, it is said why.
    fn act(&self, action: &str) -> bool {
        // To a file: daemons that it starts would hold a pipe open.
        let said = self.dir.path().join("said");
        let stderr = std::fs::File::create(&said).unwrap();
        let status = self.script(action).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).status();
        let done = status.unwrap().success();
        if !done {
            println!("skipped: Slurm's {action} fails: {}", std::fs::read_to_string(said).unwrap());
        }
        done
    }

    /// A program of Slurm's, a few times if its controller is too busy.
    fn program(&self, words: &[&str]) {
        for _ in 0..10 {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).env("SLURM_CONF", self.conf()).stdout(Stdio::null());
            if command.status().unwrap().success() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        panic!("{words:?}");
    }

    fn conf(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("slurm.conf")
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.script("stop").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// The likelihood of the example, which notes what it is asked. The first time that it is asked for one of four evaluations it never ends.
const HANGS: &str = r#"
import json, os, pathlib, subprocess, sys, time
text = sys.stdin.read()
id = json.loads(text)["id"]
def note(word):
    with open("log", "a") as log:
        log.write(f"{word} {id} {os.environ['SLURM_JOB_ID']}\n")
note("again" if pathlib.Path(f"queue/told/{id}.json").exists() else "begin")
if id in (2, 9, 17, 30) and not pathlib.Path(f"hung-{id}").exists():
    pathlib.Path(f"hung-{id}").touch()
    time.sleep(3600)
print(subprocess.run([sys.executable, "model.py"], input=text, stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout, end="")
note("done")
"#;

#[test]
fn a_real_slurm_with_killed_tasks_a_time_limit_a_requeue_and_a_node_that_dies() {
    let Some(slurm) = Slurm::start() else { return };
    let place = copy("slurm");
    std::fs::rename(place.path("likelihood.py"), place.path("model.py")).unwrap();
    place.write("likelihood.py", HANGS);
    let array = std::fs::read_to_string(place.path("array.sh")).unwrap();
    place.script("array.sh", &array.replace("--time=00:10:00", "--time=00:01:00"));
    let mut command = driver(&place);
    command.envs([("POLL", "1"), ("WIDTH", "8")]).env("SLURM_CONF", slurm.conf());
    let said = std::fs::File::create(place.path("said")).unwrap();
    let mut running = command.stdout(Stdio::from(said.try_clone().unwrap())).stderr(Stdio::from(said)).spawn().unwrap();
    let log = || std::fs::read_to_string(place.path("log")).unwrap_or_default();
    let begun = |id: &str| {
        let begin = Instant::now();
        loop {
            let found = log().lines().find_map(|line| line.strip_prefix(&format!("begin {id} ")).map(str::to_owned));
            match found {
                Some(job) => return job,
                None if begin.elapsed() > Duration::from_secs(600) => panic!("{id} never began:\n{}", log()),
                None => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    };
    // The first is killed, the second put back into the queue, with the third the node dies, and the fourth runs into its time limit.
    slurm.program(&["scancel", "--signal=KILL", "--full", &begun("2")]);
    slurm.program(&["scontrol", "requeue", &begun("9")]);
    begun("17");
    if !slurm.act("crash") || !slurm.act("revive") {
        running.kill().unwrap();
        running.wait().unwrap();
        return;
    }
    begun("30");
    assert!(running.wait().unwrap().success(), "{}", std::fs::read_to_string(place.path("said")).unwrap());

    let result = place.run(&["result", "problem.batchquad", "--json"], 0).json();
    assert_eq!((&result["evaluations"], &result["failures"], &result["pending"]), (&60.into(), &0.into(), &0.into()));
    assert!((result["log_z"].as_f64().unwrap() + 3.76223).abs() < 0.05, "{result}");
    let log = log();
    let mut begins: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_ne!(words[0], "again", "{} was told and is evaluated again", words[1]);
        *begins.entry(words[1]).or_default() += usize::from(words[0] == "begin");
    }
    assert_eq!(begins.len(), 60);
    assert!(["2", "9", "17", "30"].iter().all(|id| begins[id] >= 2), "{begins:?}");
}
