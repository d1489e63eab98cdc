//! Files that are not what they seem: nothing that belongs to somebody else is written to, and nothing is waited for.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::common::{Done, PARAMETERS, Place, wait_until};

const STORE: &str = "problem.batchquad";
const NORMAL: &str = "{ normal = { mean = 0, sd = 1 } }";

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
    if std::path::Path::new("/dev/full").exists() {
        let full = ["report", STORE, "-o", "/dev/full"];
        let done = Done::new(&full, soon(&place, &full), 1);
        assert!(done.stderr.contains("No space left") && !done.stderr.contains("reader"), "{}", done.stderr);
    }

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
    assert!(done.stderr.contains("not a page of batchquad's"), "{}", done.stderr);
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
    assert!(done.stderr.contains("not a page of batchquad's"), "{}", done.stderr);
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

#[test]
fn a_flipped_bit_in_the_last_record_is_damage_and_can_be_mended() {
    let place = finished();
    let journal = place.path(STORE).join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    let outcome = place.outcome(STORE);
    for at in (last..whole.len()).step_by(37) {
        let mut bad = whole.clone();
        bad[at] ^= 4;
        fs::write(&journal, &bad).unwrap();
        let done = place.run(&["ask", STORE, "-n", "1", "--max-evaluations", "20"], 5);
        assert!(done.stderr.contains("damaged"), "byte {at}: {}", done.stderr);
        assert_eq!(fs::read(&journal).unwrap(), bad, "nothing is written to it");
        let done = place.run(&["doctor", STORE], 5);
        assert!(done.stdout.contains("put right"), "byte {at}: {}", done.stdout);
    }
    place.run(&["doctor", STORE, "--repair", "mended"], 0);
    assert_eq!(place.outcome("mended"), outcome);
}

#[test]
fn a_damaged_journal_is_looked_at_in_linear_time() {
    let place = finished();
    let journal = place.path(STORE).join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    // Four megabytes of beginnings of records; then forty long bad lines between good ones.
    fs::write(&journal, [whole.as_slice(), &b"{\"crc\":\"".repeat(500_000)].concat()).unwrap();
    let begin = Instant::now();
    place.run(&["status", STORE], 0);
    let bad = format!("{{\"crc\":\"00000000\"{}\n", "x".repeat(11_000));
    let good = whole.split_inclusive(|b| *b == b'\n');
    let mixed: Vec<u8> = good.cycle().take(40).flat_map(|line| [line, bad.as_bytes()].concat()).collect();
    fs::write(&journal, mixed).unwrap();
    place.run(&["doctor", STORE], 5);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn status_believes_the_lock_and_not_a_number() {
    let place = finished();
    for host in [rustix::system::uname().nodename().to_string_lossy().into_owned(), "elsewhere".into()] {
        let left = format!("{{\"pid\":{},\"host\":\"{host}\"}}", std::process::id());
        fs::write(place.path(STORE).join("lock"), left).unwrap();
        assert_eq!(place.run(&["status", STORE, "--json"], 0).json()["state"], "budget");
    }
}

#[test]
fn tell_waits_without_holding_the_store_and_reads_bounded_lines() {
    use std::io::Write;
    let place = Place::bump("max_evaluations = 12\nseed = 1");
    place.run(&["new", "problem.toml"], 0);
    place.run(&["ask", STORE, "-n", "4"], 0);
    let mut tell = place.spawn(&["tell", STORE]);
    let mut input = tell.stdin.take().unwrap();
    writeln!(input, "{{\"id\": 0, \"log_likelihood\": -1.5}}").unwrap();
    place.wait_for(STORE, 1);
    // It waits for more, and somebody else writes.
    wait_until(|| place.command(&["ask", STORE, "-n", "1"]).output().unwrap().status.success());
    // A line far beyond what an answer can be, and one behind it.
    let junk = vec![b'7'; 1 << 20];
    for _ in 0..64 {
        input.write_all(&junk).unwrap();
    }
    writeln!(input, "\n{{\"id\": 1, \"log_likelihood\": -2.5}}").unwrap();
    drop(input);
    let done = Done::new(&["tell"], tell.wait_with_output().unwrap(), 2);
    assert!(done.stderr.contains("line 2: it has more than"), "{}", done.stderr);
    assert!(done.stderr.contains("2 answers recorded"), "{}", done.stderr);
    assert_eq!(place.run(&["status", STORE, "--json"], 0).json()["evaluations"], 2);
}

#[test]
fn numbers_and_columns_mean_what_they_say() {
    let place = Place::bump("max_evaluations = 12");
    place.run(&["new", "problem.toml"], 0);
    place.write("table.csv", "x,y,log_likelihood\n0,0,-1e400\n");
    let done = place.run(&["import", STORE, "table.csv"], 2);
    assert!(done.stderr.contains("line 2: log_likelihood is \"-1e400\""), "{}", done.stderr);
    place.write("table.csv", "x,y,log_likelihood\n0,0,-inf\n0.5,0,-1\n");
    place.run(&["import", STORE, "table.csv"], 0);
    for name in ["log_likelihood", "batch", "seconds", "id"] {
        let parameters = PARAMETERS.replace("\"y\"", &format!("\"{name}\""));
        place.write("other.toml", &format!("{parameters}\n[likelihood]\ncommand = [\"true\"]\n"));
        let done = place.run(&["new", "other.toml"], 2);
        assert!(done.stderr.contains("name of a parameter"), "{}", done.stderr);
    }
}

#[test]
fn more_than_can_be_worked_with_is_refused_or_thinned_and_said() {
    let place = Place::bump("max_evaluations = 200000\nstarts_per_dim = 1000000000");
    assert!(place.run(&["new", "problem.toml"], 2).stderr.contains("at most 1000"));
    let place = Place::bump("max_evaluations = 200000\nseed = 3");
    let mut table = String::from("x,y,log_likelihood\n");
    for i in 0..20_000 {
        let (x, y) = (f64::from(i % 141) * 0.05 - 3.5, f64::from(i / 141) * 0.05 - 3.5);
        table.push_str(&format!("{x},{y},{}\n", -2.0 * ((x - 1.0).powi(2) + y * y) - 0.4515827052894549));
    }
    place.write("table.csv", &table);
    let done = place.run(&["new", "problem.toml", "--import", "table.csv"], 0);
    assert!(done.stderr.contains("rests on at most 1500"), "{}", done.stderr);
    assert!(place.run(&["ask", STORE, "-n", "1000000"], 2).stderr.contains("at most 10000"));
}

#[test]
fn too_few_processes_or_too_little_memory_are_said_or_made_do_with() {
    let program = env!("CARGO_BIN_EXE_batchquad");
    let limited = |place: &Place, limit: &str| {
        let run = format!("ulimit {limit}; exec {program} run problem.toml -q");
        Command::new("bash").args(["-c", &run]).current_dir(place.dir.path()).output().unwrap()
    };
    for limit in ["-v 20000", "-v 40000", "-v 80000", "-v 264000", "-n 6", "-n 12", "-f 0"] {
        let place = Place::bump("max_evaluations = 12\nworkers = 2");
        let done = limited(&place, limit);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(matches!(done.status.code(), Some(0..=5)), "{limit}: {:?} {said}", done.status);
        assert!(!said.contains("panicked"), "{limit}: {said}");
    }
    // The number of processes is limited for ordinary users only.
    let may_change = Command::new("setpriv").args(["--reuid=54321", "--clear-groups", "true"]).status();
    if !may_change.is_ok_and(|status| status.success()) {
        return;
    }
    for most in [1, 3, 4, 5, 6, 7, 8, 10] {
        let place = Place::bump("max_evaluations = 12\nworkers = 2");
        fs::copy(program, place.path("program")).unwrap();
        assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(place.dir.path()).status().unwrap().success());
        let run = format!("ulimit -u {most}; exec ./program run problem.toml -q");
        let done = Command::new("setpriv")
            .args(["--reuid=54321", "--clear-groups", "bash", "-c", &run])
            .current_dir(place.dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(matches!(done.status.code(), Some(0..=5)), "{most}: {:?} {said}", done.status);
        assert!(!said.contains("panicked"), "{most}: {said}");
    }
}

#[test]
fn priors_of_hundreds_of_orders_of_magnitude_have_results_and_pages() {
    let scalar = |prior: &str| format!("[[parameter]]\nname = \"a\"\nprior = {prior}\n");
    for parameters in [
        scalar("{ inverse-gamma = { shape = 0.01, scale = 1 } }"),
        scalar("{ log-normal = { mu = 0, sigma = 200 } }"),
        scalar("{ uniform = { low = -8e307, high = 8e307 } }"),
        "[[parameter]]\nnames = [\"a\", \"b\"]\nprior = { multivariate-normal = { mean = [0, 0], covariance = \
         [[1e308, 0], [0, 1e308]] } }\n"
            .into(),
    ] {
        let place = Place::new("#!/bin/sh\nread q\necho -1.5\n", "", "max_evaluations = 12");
        let problem = fs::read_to_string(place.path("problem.toml")).unwrap();
        let (_, rest) = problem.split_once("[likelihood]").unwrap();
        place.write("problem.toml", &format!("{parameters}[likelihood]{rest}"));
        let found = place.run(&["run", "problem.toml", "-q", "--json"], 0).json();
        assert!((found["log_z"].as_f64().unwrap() + 1.5).abs() < 0.01, "{parameters}: {found}");
        place.run(&["report", STORE], 0);
    }
}

#[test]
fn a_model_that_knows_nothing_is_not_trusted() {
    let place = Place::new("#!/bin/sh\nread q\necho -1.5\n", "", "max_evaluations = 64\ninitial_size = 60\nbatch = 64");
    let parameter = |i: usize| format!("[[parameter]]\nname = \"x{i}\"\nprior = {NORMAL}\n");
    let problem = fs::read_to_string(place.path("problem.toml")).unwrap();
    let (_, rest) = problem.split_once("[likelihood]").unwrap();
    place.write("problem.toml", &format!("{}[likelihood]{rest}", (0..100).map(parameter).collect::<String>()));
    let found = place.run(&["run", "problem.toml", "-q", "--json"], 0).json();
    let near = (found["log_z"].as_f64().unwrap() + 1.5).abs() < 3.0 * found["log_z_sd"].as_f64().unwrap();
    assert!(near || found["verdict"] == "do-not-trust", "{found}");
}

#[test]
fn of_runs_that_begin_together_one_has_the_store_and_the_others_are_told() {
    for _ in 0..5 {
        let place = Place::bump("max_evaluations = 12\nworkers = 1");
        let start = |_| place.spawn(&["run", "problem.toml", "-q"]);
        let runs: Vec<_> = (0..6).map(start).collect();
        for run in runs {
            let done = run.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            // One that comes when the first is through finds a finished run.
            assert!(matches!(done.status.code(), Some(0 | 4)), "{:?}: {said}", done.status);
        }
        place.run(&["result", STORE], 0);
    }
}

#[test]
fn a_hundred_thousand_imported_rows_are_worked_with() {
    // With a known kernel, because a search for one takes a minute.
    let kernel = "surrogate = \"plain\"\nknown_kernel = { log_sigma2 = 0.0, lengthscales = [0.7, 0.7] }";
    let place = Place::bump(&format!("max_evaluations = 100008\nbatch = 8\nseed = 1\n{kernel}"));
    let mut table = String::from("x,y,log_likelihood\n");
    // A spiral through the prior: no two rows alike.
    for i in 0..100_000 {
        let (r, a) = (3.0 * (f64::from(i) / 1e5).sqrt(), 2.4 * f64::from(i));
        let (x, y) = (r * a.cos(), r * a.sin());
        table.push_str(&format!("{x},{y},{}\n", -2.0 * ((x - 1.0).powi(2) + y * y)));
    }
    fs::write(place.path("rows.csv"), table).unwrap();
    place.run(&["new", "problem.toml"], 0);
    let said = place.run(&["import", STORE, "rows.csv"], 0).stderr;
    assert!(said.contains("imported 100000") && said.contains("at most 1500"), "{said}");
    let asked = place.run(&["ask", STORE, "-n", "2"], 0).json_lines();
    assert_eq!(asked.len(), 2);
    let found = place.run(&["result", STORE, "--json"], 0).json();
    // exp(−2(x − 1)² − 2y²) under N(0, I): log(0.25/1.25) − 0.4.
    assert!((found["log_z"].as_f64().unwrap() - (0.2_f64.ln() - 0.4)).abs() < 0.01, "{found}");
    assert_eq!(found["repairs"]["values_left_out"], 98_500);
    place.run(&["report", STORE], 0);
    let page = fs::read_to_string(place.path("problem.html")).unwrap();
    assert!(page.len() < 8_000_000 && page.contains("The last 5000"), "{}", page.len());
    // One can go on, and begin anew with fewer of them.
    let table = place.run(&["export", STORE], 0).stdout;
    let fewer: Vec<&str> = table.lines().take(401).collect();
    fs::write(place.path("fewer.csv"), fewer.join("\n")).unwrap();
    place.run(&["new", "problem.toml", "--store", "fewer", "--import", "fewer.csv"], 0);
    assert_eq!(place.run(&["status", "fewer", "--json"], 0).json()["imported"], 400);
}
