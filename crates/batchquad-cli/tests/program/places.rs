//! Stores in awkward places: full disks, no permission, links, files.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use crate::common::{BUMP, Done, Place, wait_until};

const SETTINGS: &str = "max_evaluations = 36\nworkers = 2\nseed = 5";
const RUN: [&str; 3] = ["run", "problem.toml", "-q"];
const STORE: &str = "problem.batchquad";

/// The program with no file allowed to grow beyond so many blocks of 512 bytes.
fn limited(place: &Place, args: &[&str], blocks: u32) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""));
    command.arg(env!("CARGO_BIN_EXE_batchquad")).args(args).current_dir(place.dir.path()).stdin(Stdio::null());
    command
}

#[test]
fn a_file_that_may_not_grow_is_told_and_the_run_resumes() {
    let whole = Place::bump(SETTINGS);
    whole.run(&RUN, 0);
    let expected = whole.outcome(STORE);
    let place = Place::bump(SETTINGS);
    let mut evaluations = 0;
    // Each a little more room, as on a disk that is tidied up in haste.
    for blocks in [4, 6, 8] {
        let full = Done::new(&RUN, limited(&place, &RUN, blocks).output().unwrap(), 1);
        assert!(full.stderr.contains("cannot append to") && full.stderr.contains("journal.jsonl"), "{}", full.stderr);
        assert!(full.stderr.contains("File too large"), "{}", full.stderr);
        let status = place.run(&["status", STORE, "--json"], 0).json();
        assert!(status["torn_bytes"].is_null(), "{status}");
        let now = status["evaluations"].as_u64().unwrap();
        assert!(now >= evaluations, "{now} of {evaluations}");
        evaluations = now;
    }
    assert!(evaluations > 0 && evaluations < 36, "{evaluations}");
    place.run(&RUN, 0);
    assert_eq!(place.outcome(STORE), expected);
}

/// A file system of its own, where that is permitted.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn tmpfs(at: &'a Path, size: &str) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(at))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_the_run_resumes_when_there_is_room() {
    let place = Place::bump(SETTINGS);
    place.run(&RUN, 0);
    let expected = place.outcome(STORE);
    let disk = place.path("disk");
    let Some(mounted) = Mounted::tmpfs(&disk, "12k") else {
        return eprintln!("skipped: mounting a small tmpfs is not permitted here");
    };
    let run = ["run", "problem.toml", "-q", "--store", "disk/store"];
    // Twice, because the second finds the disk full from the beginning.
    for _ in 0..2 {
        let full = place.run(&run, 1);
        assert!(full.stderr.contains("No space left on device"), "{}", full.stderr);
    }
    let status = place.run(&["status", "disk/store", "--json"], 0).json();
    assert!(status["evaluations"].as_u64().is_some_and(|n| n > 0 && n < 36), "{status}");
    let remount = Command::new("mount").args(["-o", "remount,size=1m"]).arg(mounted.0).status();
    assert!(remount.unwrap().success());
    place.run(&run, 0);
    assert_eq!(place.outcome("disk/store"), expected);
}

#[test]
fn a_store_that_may_only_be_read_is_read() {
    let place = Place::bump(SETTINGS);
    place.run(&["run", "problem.toml", "-q", "--max-evaluations", "20"], 0);
    let allow = |name: &str, mode| fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
    for entry in fs::read_dir(place.path(STORE)).unwrap() {
        allow(&format!("{STORE}/{}", entry.unwrap().file_name().to_str().unwrap()), 0o444);
    }
    allow(STORE, 0o555);
    // Permissions do not bind the superuser, who therefore becomes somebody else, with a program within reach.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_batchquad")).arg(place.path("batchquad")).status();
    assert!(copied.unwrap().success());
    allow("batchquad", 0o755);
    allow("", 0o755);
    let superuser = {
        use std::os::unix::fs::MetadataExt;
        place.dir.path().metadata().unwrap().uid() == 0
    };
    let run = |args: &[&str], code| {
        let mut command = Command::new(place.path("batchquad"));
        command.args(args).current_dir(place.dir.path()).stdin(Stdio::null());
        if superuser {
            command.uid(65534).gid(65534);
        }
        Done::new(args, command.output().unwrap(), code)
    };
    assert_eq!(run(&["result", STORE, "--json"], 0).json()["evaluations"], 20);
    assert!(run(&["status", STORE], 0).stdout.contains("20 of 20"));
    assert_eq!(run(&["export", STORE], 0).stdout.lines().count(), 21);
    for args in [&RUN[..], &["ask", STORE], &["tell", STORE]] {
        let refused = run(args, 1);
        assert!(refused.stderr.contains("Permission denied") && refused.stderr.contains(STORE), "{}", refused.stderr);
    }
    // What was made writable again for the clean-up is also a run that can go on.
    allow(STORE, 0o755);
    for entry in fs::read_dir(place.path(STORE)).unwrap() {
        allow(&format!("{STORE}/{}", entry.unwrap().file_name().to_str().unwrap()), 0o644);
    }
    place.run(&RUN, 0);
}

#[test]
fn what_is_no_store_is_left_alone() {
    let place = Place::bump(SETTINGS);
    place.write("file", "a letter");
    fs::create_dir(place.path("photos")).unwrap();
    place.write("photos/cat", "meow");
    for path in ["file", "photos"] {
        for args in [&["run", "problem.toml", "-q", "--store", path][..], &["status", path], &["ask", path]] {
            let refused = place.run(args, 2);
            assert!(refused.stderr.contains(path), "{}", refused.stderr);
        }
    }
    assert_eq!(fs::read_to_string(place.path("file")).unwrap(), "a letter");
    assert_eq!(fs::read_dir(place.path("photos")).unwrap().count(), 1);
}

#[test]
fn a_link_to_a_store_is_the_store() {
    let place = Place::new(BUMP, "env = { SLEEP = \"0.3\" }", SETTINGS);
    fs::create_dir(place.path("elsewhere")).unwrap();
    let through = ["run", "problem.toml", "-q", "--store", "link"];
    std::os::unix::fs::symlink("elsewhere/store", place.path("link")).unwrap();
    let refused = place.run(&through, 2);
    assert!(refused.stderr.contains("link"), "{}", refused.stderr);
    assert!(!place.path("elsewhere/store").exists());

    let direct = ["run", "problem.toml", "-q", "--store", "elsewhere/store"];
    let mut child = place.spawn(&direct);
    wait_until(|| place.path("elsewhere/store/journal.jsonl").exists());
    let locked = place.run(&through, 4);
    assert!(locked.stderr.contains(&format!("process {} on ", child.id())), "{}", locked.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = fs::read_to_string(place.path("problem.toml")).unwrap();
    place.write("problem.toml", &text.replace("0.3", "0"));
    place.run(&through, 0);
    assert_eq!(place.outcome("elsewhere/store"), place.outcome("link"));
    assert!(place.path("link").is_symlink());
}
