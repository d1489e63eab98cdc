//! Several processes, kills, full disks and read-only ones. The test binary starts itself as the other process.
#![cfg(unix)]

use crate::common::*;
use batchquad::Error;
use batchquad::journal::{Event, Holder, Store};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "BATCHQUAD_TEST_ROLE";
const STORE: &str = "BATCHQUAD_TEST_STORE";

/// What the other process does; it speaks on stderr, a line at a time.
#[test]
#[ignore = "the other process of the tests in this file"]
fn other_process() {
    let (Ok(role), Ok(dir)) = (std::env::var(ROLE), std::env::var(STORE)) else { return };
    let dir = PathBuf::from(dir);
    let note = Event::Note { text: "n".repeat(300) };
    match role.as_str() {
        "hold" => {
            let _store = Store::open(&dir).unwrap();
            eprintln!("ready");
            std::thread::sleep(Duration::from_secs(60));
        }
        "open" => match Store::open(&dir) {
            Ok(_) => eprintln!("opened"),
            Err(error) => eprintln!("{error:?}"),
        },
        "read" => eprintln!("{}", Store::read(&dir).unwrap().records.len()),
        "append" => {
            let mut store = if Store::exists(&dir) {
                Store::open(&dir).unwrap().0
            } else {
                Store::create(&dir, &header()).unwrap()
            };
            eprintln!("{}", store.records());
            let until = Instant::now() + Duration::from_secs(60);
            while Instant::now() < until {
                if let Err(error) = store.append(&note) {
                    eprintln!("{error}");
                    eprintln!("{}", store.append(&note).unwrap_err());
                    return;
                }
                eprintln!("{}", store.records());
            }
        }
        role => panic!("{role}"),
    }
}

fn arguments(command: &mut Command, role: &str, dir: &Path) {
    command.args(["--exact", "processes::other_process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(STORE, dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
}

fn other(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    arguments(&mut command, role, dir);
    command
}

struct Running(Child, BufReader<ChildStderr>);

impl Running {
    fn start(mut command: Command) -> std::io::Result<Self> {
        let mut child = command.spawn()?;
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Ok(Self(child, stderr))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Everything it still says until it ends.
    fn finish(mut self) -> (Vec<String>, ExitStatus) {
        let lines = self.1.by_ref().lines().map(Result::unwrap).collect();
        (lines, self.0.wait().unwrap())
    }

    fn kill(mut self) -> Vec<String> {
        self.0.kill().unwrap();
        let lines = self.1.by_ref().lines().map(Result::unwrap).collect();
        let status = self.0.wait().unwrap();
        assert_eq!(status.signal(), Some(9));
        lines
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_second_process_is_told_who_has_the_store_and_a_killed_one_leaves_no_lock() {
    let (_scratch, dir) = on_disk();
    write_store(&dir);
    let mut holder = Running::start(other("hold", &dir)).unwrap();
    assert_eq!(holder.line(), "ready");
    let pid = holder.0.id();

    let began = Instant::now();
    match Store::open(&dir) {
        Err(error @ Error::StoreLocked { .. }) => {
            assert!(error.to_string().contains(&format!("in use by process {pid} on ")), "{error}");
        }
        result => panic!("{result:?}"),
    }
    // "At once": no waiting for the lock. Generous, for a machine that is busy with other tests.
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(Store::read(&dir).unwrap().records.len(), events().len(), "reading needs no lock");
    let (lines, _) = Running::start(other("open", &dir)).unwrap().finish();
    assert!(lines[0].starts_with("StoreLocked") && lines[0].contains(&format!("pid: Some({pid})")), "{lines:?}");
    assert_eq!(Holder::of(&dir).unwrap().is_alive(), Some(true));

    holder.kill();
    assert_eq!(Holder::of(&dir).unwrap().is_alive(), Some(false), "its name stays behind, its lock does not");
    let (_store, replay) = Store::open(&dir).unwrap();
    assert_eq!(only(&replay.records), events());
    assert_eq!(Holder::of(&dir).unwrap().pid, std::process::id());
}

#[test]
fn a_killed_writer_loses_nothing_it_acknowledged() {
    let (_scratch, dir) = on_disk();
    let mut acknowledged = 0;
    // Delays in microseconds: the short ones from the start of the process, which is before it has the store, the long
    // ones from its second append.
    for delay in [0, 500, 1_000, 2_000, 3_000, 5_000, 8_000, 13_000, 21_000, 34_000, 55_000, 89_000] {
        let mut writer = Running::start(other("append", &dir)).unwrap();
        let mut lines = Vec::new();
        if delay >= 5_000 {
            lines.extend([(); 3].map(|()| writer.line()));
        }
        std::thread::sleep(Duration::from_micros(delay));
        lines.extend(writer.kill());
        acknowledged = lines.iter().filter_map(|line| line.parse().ok()).max().unwrap_or(acknowledged);
        if Store::exists(&dir) {
            let (store, _) = Store::open(&dir).unwrap();
            assert!(
                (acknowledged..=acknowledged + 1).contains(&store.records()),
                "{} of {acknowledged}",
                store.records()
            );
            acknowledged = store.records();
        }
    }
    assert!(acknowledged > 12, "hardly anything was written");
}

/// What must hold after a writer ran out of space: it said so, and the store holds what it acknowledged.
fn check_full(dir: &Path, lines: &[String]) {
    let acknowledged: u64 = lines.iter().filter_map(|line| line.parse().ok()).max().unwrap();
    let [.., first, second] = lines else { panic!("{lines:?}") };
    assert!(first.contains("cannot append to") && first.contains("journal.jsonl"), "{first}");
    assert!(second.contains("open it again"), "{second}");
    let replay = Store::read(dir).unwrap();
    assert_eq!(replay.torn, None, "the partial record was cut off");
    assert_eq!(replay.records.len() as u64 + 1, acknowledged);
}

#[test]
fn a_file_size_limit_leaves_a_store_that_opens() {
    for (trap, says) in [("trap '' XFSZ;", true), ("", false)] {
        let (_scratch, dir) = on_disk();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{trap} ulimit -c 0; ulimit -f 16; exec \"$0\" \"$@\""));
        command.arg(std::env::current_exe().unwrap());
        arguments(&mut command, "append", &dir);
        let (lines, status) = Running::start(command).unwrap().finish();
        if says {
            let errors: Vec<String> = lines.iter().filter(|l| !l.trim().is_empty()).cloned().collect();
            check_full(&dir, &errors);
        } else {
            assert!(status.signal().is_some(), "ended by SIGXFSZ: {status:?} {lines:?}");
            let acknowledged: u64 = lines.iter().filter_map(|line| line.parse().ok()).max().unwrap();
            let (store, replay) = Store::open(&dir).unwrap();
            assert_eq!(store.records(), acknowledged);
            assert!(replay.torn.is_some());
        }
        let (mut store, replay) = match Store::open(&dir) {
            Ok(opened) => opened,
            Err(error) => panic!("{error}"),
        };
        store.append(&Event::Note { text: "more room".into() }).unwrap();
        assert_eq!(store.records() as usize, replay.records.len() + 2);
    }
}

struct Mounted(tempfile::TempDir);

impl Mounted {
    fn tmpfs(size: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(place.path());
        mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success()).then_some(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_leaves_a_store_that_opens() {
    let Some(mounted) = Mounted::tmpfs("64k") else {
        eprintln!("skipped: mounting a small tmpfs is not permitted here");
        return;
    };
    let dir = mounted.0.path().join("store");
    let (lines, _) = Running::start(other("append", &dir)).unwrap().finish();
    let lines: Vec<String> = lines.into_iter().filter(|l| !l.trim().is_empty()).collect();
    check_full(&dir, &lines);
    assert!(lines[lines.len() - 2].contains("No space left"), "{lines:?}");

    // Still full: the store opens, refuses, and is none the worse.
    let (mut store, replay) = Store::open(&dir).unwrap();
    assert!(store.append(&Event::Note { text: "n".repeat(9000) }).is_err());
    drop(store);
    assert_eq!(Store::read(&dir).unwrap().records, replay.records);
    assert!(Store::create(mounted.0.path().join("another"), &header()).is_err());

    // A torn end that cannot be kept aside is not cut off either.
    let mut journal = std::fs::OpenOptions::new().append(true).open(dir.join("journal.jsonl")).unwrap();
    journal.write_all(b"{\"crc").unwrap();
    drop(journal);
    assert!(std::fs::write(mounted.0.path().join("filler"), vec![0; 100_000]).is_err());
    let before = bytes_of(&dir);
    let error = Store::open(&dir).unwrap_err();
    assert!(error.to_string().contains("cannot keep the torn end"), "{error}");
    assert_eq!(bytes_of(&dir), before);

    let remount = Command::new("mount").args(["-o", "remount,size=256k"]).arg(mounted.0.path()).status();
    assert!(remount.unwrap().success());
    drop(Store::create(mounted.0.path().join("another"), &header()).unwrap());
    let (mut store, replay) = Store::open(&dir).unwrap();
    assert_eq!(replay.torn.unwrap().bytes, 5);
    store.append(&Event::Note { text: "more room".into() }).unwrap();
}

fn am_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    let (_scratch, dir) = on_disk();
    std::fs::create_dir(&dir).unwrap();
    dir.metadata().unwrap().uid() == 0
}

#[test]
fn a_store_that_may_not_be_written_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let allow = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let (scratch, dir) = on_disk();
    write_store(&dir);
    let torn = [bytes_of(&dir), b"{".to_vec()].concat();
    std::fs::write(dir.join("journal.jsonl"), &torn).unwrap();
    allow(&dir.join("journal.jsonl"), 0o444);
    allow(&dir.join("lock"), 0o444);
    allow(&dir, 0o555);
    allow(scratch.path(), 0o755);

    // Permissions do not bind the superuser, who therefore becomes somebody else.
    let exe = scratch.path().join("test");
    let start = |role: &str| {
        let mut command = Command::new(if am_root() { exe.clone() } else { std::env::current_exe().unwrap() });
        arguments(&mut command, role, &dir);
        if am_root() {
            command.uid(65534).gid(65534).current_dir("/");
        }
        Running::start(command).map(Running::finish)
    };
    if am_root() {
        // By another process, because a file that this one holds open for writing cannot be executed.
        assert!(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&exe).status().unwrap().success());
        allow(&exe, 0o755);
    }
    let (lines, _) = match start("open") {
        Ok(finished) => finished,
        Err(error) => {
            eprintln!("skipped: cannot become another user ({error})");
            return;
        }
    };
    assert!(lines[0].starts_with("Io {") && lines[0].contains("open for writing"), "{lines:?}");
    assert!(lines[0].contains("ermission denied"), "{lines:?}");
    assert_eq!(start("read").unwrap().0[0], events().len().to_string());
    assert_eq!(bytes_of(&dir), torn);
    allow(&dir, 0o755);
}
