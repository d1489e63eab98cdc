//! The page that follows a run while it goes on.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    chromium::Browser,
    common::{BUMP, Place},
    pages::require_local,
};

/// What a server answers to a request for a path.
fn ask(address: &str, path: &str, host: Option<&str>) -> String {
    let own = address.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(own).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", host.unwrap_or(own)).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_page_follows_a_run() {
    let Some(mut browser) = Browser::start() else { return };
    let place = Place::new(BUMP, "env = { SLEEP = \"0.25\" }", "max_evaluations = 40\nworkers = 2");
    let mut run = place.spawn(&["run", "problem.toml", "-q"]);
    place.wait_for("problem.batchquad", 10);
    let mut server = place.spawn(&["watch", "problem.batchquad", "--html"]);
    let mut address = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim().to_owned();
    // Loopback, and a token that nobody guesses.
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert!(host.starts_with("127.0.0.1:") && path.len() == 33 && path.ends_with('/'), "{address}");
    assert!(ask(&address, "/", None).starts_with("HTTP/1.1 404"));
    assert!(ask(&address, &format!("/{path}"), Some("evil.example")).starts_with("HTTP/1.1 403"));
    let whole = ask(&address, &format!("/{path}"), None);
    assert!(whole.starts_with("HTTP/1.1 200") && whole.contains("connect-src 'self'"), "{whole}");

    browser.width(1000);
    require_local(&browser.open_url(&address), &address);
    assert_eq!(browser.evaluate("window.violations"), json!([]));
    let done = "Number(document.querySelector('progress').value)";
    let first = browser.evaluate(done).as_f64().unwrap();
    assert!((10.0..40.0).contains(&first), "{first}");
    assert_eq!(browser.evaluate("document.querySelector('.kicker').textContent.includes('running')"), true);
    for id in ["convergence", "marginals", "timeline"] {
        let drawn =
            browser.evaluate(&format!("document.getElementById('{id}').querySelectorAll('path, rect').length > 5"));
        assert_eq!(drawn, true, "{id}");
    }
    browser.picture("live");
    // Nobody reloads it: it follows by itself, to the end.
    let begin = Instant::now();
    while browser.evaluate(done) != json!(40)
        || browser.evaluate("document.body.textContent.includes('budget')") != true
    {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", browser.evaluate(done));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(run.wait().unwrap().success());
    require_local(&browser.events(), &address);
    assert_eq!(browser.evaluate("window.violations"), json!([]));
    assert_eq!(browser.evaluate("document.getElementById('lost').hidden"), true);
    // Ctrl-C ends it in good order; the page says that nobody answers.
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let begin = Instant::now();
    while browser.evaluate("document.getElementById('lost').hidden") != false {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(200));
    }
}
