//! Files that are not what they seem: nothing that belongs to somebody else is written to, and nothing is waited for.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::common::{Done, Place};

const STORE: &str = "problem.batchquad";

/// A run that is over.
fn finished() -> Place {
    let place = Place::bump("max_evaluations = 12\nseed = 1");
    place.run(&["run", "problem.toml", "-q"], 0);
    place
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The program's end, which must come soon.
fn soon(place: &Place, args: &[&str]) -> Output {
    let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("{args:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_page_replaces_files_and_nothing_else() {
    let place = finished();
    let write = ["report", STORE, "-o", "page.html"];

    // A pipe: the page goes through it, and it stays a pipe. Without a reader that is said.
    fifo(&place.path("page.html"));
    let done = Done::new(&write, soon(&place, &write), 1);
    assert!(done.stderr.contains("a pipe needs a reader"), "{}", done.stderr);
    let read = fs::File::create(place.path("read")).unwrap();
    let mut reader = Command::new("cat").arg(place.path("page.html")).stdout(read).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    Done::new(&write, soon(&place, &write), 0);
    reader.wait().unwrap();
    let read = fs::read(place.path("read")).unwrap();
    assert!(read.starts_with(b"<!DOCTYPE html>") && read.trim_ascii_end().ends_with(b"</html>"));
    assert!(fs::symlink_metadata(place.path("page.html")).unwrap().file_type().is_fifo());
    Done::new(&["compare"], soon(&place, &["compare", STORE, STORE, "--html", "page.html"]), 1);
    assert!(fs::symlink_metadata(place.path("page.html")).unwrap().file_type().is_fifo());
    fs::remove_file(place.path("page.html")).unwrap();

    // A device, through a link of ours so that a mistake costs only the link.
    symlink("/dev/null", place.path("page.html")).unwrap();
    place.run(&write, 0);
    assert!(place.path("page.html").is_symlink());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    fs::remove_file(place.path("page.html")).unwrap();

    // A link to what is no page: refused. To a page: the page is replaced and the link stays.
    place.write("precious", "years of work");
    symlink("precious", place.path("page.html")).unwrap();
    let done = place.run(&write, 2);
    assert!(done.stderr.contains("no page of batchquad's"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(place.path("precious")).unwrap(), "years of work");
    place.write("precious", "");
    place.run(&write, 0);
    place.run(&write, 0);
    assert!(place.path("page.html").is_symlink());
    assert!(fs::read_to_string(place.path("precious")).unwrap().trim_end().ends_with("</html>"));

    // A file that the user named is replaced, a directory is not.
    place.write("named.html", "old");
    place.run(&["report", STORE, "-o", "named.html"], 0);
    assert!(fs::read_to_string(place.path("named.html")).unwrap().starts_with("<!DOCTYPE html>"));
    fs::create_dir(place.path("folder")).unwrap();
    place.run(&["report", STORE, "-o", "folder"], 2);
    let left: Vec<_> = fs::read_dir(place.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
}

#[test]
fn a_page_that_nobody_named_replaces_only_pages() {
    let place = finished();
    place.write("problem.html", "<html>a page of my own</html>");
    let done = place.run(&["report", STORE], 2);
    assert!(done.stderr.contains("no page of batchquad's"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(place.path("problem.html")).unwrap(), "<html>a page of my own</html>");
    fs::remove_file(place.path("problem.html")).unwrap();
    place.run(&["report", STORE], 0);
    place.run(&["report", STORE], 0);

    // Stores whose names differ after a dot have pages of their own.
    for name in ["model.1", "model.2"] {
        assert!(Command::new("cp").args(["-r", STORE, name]).current_dir(place.dir.path()).status().unwrap().success());
        place.run(&["report", name], 0);
        assert!(place.path(&format!("{name}.html")).is_file());
    }
}

#[test]
fn a_store_from_elsewhere_cannot_make_us_erase_a_file() {
    for hard in [false, true] {
        let place = finished();
        let precious = place.path("precious");
        let lock = place.path(STORE).join("lock");
        fs::write(&precious, "years of work").unwrap();
        fs::remove_file(&lock).unwrap();
        if hard {
            fs::hard_link(&precious, &lock).unwrap()
        } else {
            symlink(&precious, &lock).unwrap()
        }
        for args in [&["ask", STORE, "-n", "1", "--max-evaluations", "20"][..], &["run", "problem.toml", "-q"]] {
            let done = place.run(args, 1);
            assert!(done.stderr.contains("expected a file of the store's own"), "{}", done.stderr);
        }
        place.run(&["status", STORE], 0);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "years of work");
    }

    // Nor write to a journal elsewhere.
    let place = finished();
    let journal = place.path(STORE).join("journal.jsonl");
    fs::rename(&journal, place.path("elsewhere")).unwrap();
    symlink(place.path("elsewhere"), &journal).unwrap();
    let before = fs::read(place.path("elsewhere")).unwrap();
    let done = place.run(&["ask", STORE, "-n", "1", "--max-evaluations", "20"], 2);
    assert!(done.stderr.contains("symbolic link"), "{}", done.stderr);
    assert_eq!(fs::read(place.path("elsewhere")).unwrap(), before);
}

#[test]
fn a_pipe_in_a_store_is_not_waited_for() {
    let place = finished();
    let lock = place.path(STORE).join("lock");
    fs::remove_file(&lock).unwrap();
    fifo(&lock);
    Done::new(&["status"], soon(&place, &["status", STORE]), 0);
    Done::new(&["doctor"], soon(&place, &["doctor", STORE]), 0);
    let ask = ["ask", STORE, "-n", "1", "--max-evaluations", "20"];
    let done = Done::new(&ask, soon(&place, &ask), 1);
    assert!(done.stderr.contains("lock") && done.stderr.contains("expected a file"), "{}", done.stderr);

    let journal = place.path(STORE).join("journal.jsonl");
    fs::remove_file(&journal).unwrap();
    fifo(&journal);
    Done::new(&["status"], soon(&place, &["status", STORE]), 2);
}
