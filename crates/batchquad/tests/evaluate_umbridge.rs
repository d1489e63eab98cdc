//! UM-Bridge servers: what they say, how they fail, and who takes over.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use batchquad::{
    evaluate::{Evaluator, Finished, UmbridgeEvaluator, UmbridgeSpec},
    types::{FailureKind, Job, JobId, Outcome},
};
use serde_json::{Value, json};

/// What a server does with a point: the bytes of its answer, or none and the connection ends.
type Answer = dyn Fn(&[f64]) -> Option<String> + Send + Sync;

/// A server in a thread, until it is dropped.
struct Stub {
    port: u16,
    over: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// A whole answer.
fn http(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} Something\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn value(value: f64) -> Option<String> {
    Some(http(200, &json!({"output": [[value]]}).to_string()))
}

impl Stub {
    fn new(answer: impl Fn(&[f64]) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::at(0, json!({"inputSizes": [2]}), json!({"outputSizes": [1]}), answer)
    }

    fn at(
        port: u16,
        inputs: Value,
        outputs: Value,
        answer: impl Fn(&[f64]) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (heed, count) = (Arc::clone(&over), Arc::clone(&asked));
        let answer: Arc<Answer> = Arc::new(answer);
        let serve = move || {
            for stream in listener.incoming() {
                if heed.load(Ordering::SeqCst) {
                    break;
                }
                let (answer, count, inputs, outputs) =
                    (Arc::clone(&answer), Arc::clone(&count), inputs.clone(), outputs.clone());
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let Some((path, body)) = request(&mut stream) else { return };
                    let said = match path.as_str() {
                        "/Info" => Some(http(200, r#"{"protocolVersion": 1.0, "models": ["forward", "posterior"]}"#)),
                        "/InputSizes" => Some(http(200, &inputs.to_string())),
                        "/OutputSizes" => Some(http(200, &outputs.to_string())),
                        "/Evaluate" => {
                            count.fetch_add(1, Ordering::SeqCst);
                            let input: Vec<Vec<f64>> = serde_json::from_value(body["input"].clone()).unwrap();
                            answer(&input.concat())
                        }
                        other => panic!("{other}"),
                    };
                    if let Some(said) = said {
                        let _ = stream.write_all(said.as_bytes());
                    }
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        };
        Self { port, over, asked, thread: Some(std::thread::spawn(serve)) }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes it up; it closes its door.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.thread.take().unwrap().join().unwrap();
    }
}

/// The path and the JSON of a question.
fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length =
                head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).unwrap().parse::<usize>().unwrap();
            if bytes.len() >= end + 4 + length {
                let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
                return Some((head.split(' ').nth(1).unwrap().to_owned(), body));
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

fn spec(urls: &[String]) -> UmbridgeSpec {
    serde_json::from_value(json!({"umbridge": {"url": urls, "model": "posterior", "config": {"level": 2}}})).unwrap()
}

fn evaluator(spec: UmbridgeSpec, workers: usize) -> UmbridgeEvaluator {
    UmbridgeEvaluator::new(spec, &["x", "y"], workers).unwrap()
}

fn job(id: u64, x: f64, y: f64) -> Job {
    Job { id: JobId(id), theta: vec![x, y], seed: 0 }
}

fn one(evaluator: &mut UmbridgeEvaluator, x: f64, y: f64) -> Finished {
    evaluator.submit(job(0, x, y)).unwrap();
    evaluator.wait(Duration::from_secs(60)).unwrap().unwrap()
}

fn failure(finished: Finished) -> (FailureKind, String) {
    match finished.outcome {
        Outcome::Failed { kind, message } => (kind, message),
        Outcome::Value(value) => panic!("{value}"),
    }
}

#[test]
fn values_of_every_kind() {
    let stub = Stub::new(|t| match t[0] as i32 {
        0 => value(0.1 + t[1]),
        1 => Some(http(200, r#"{"output": [[-Infinity]]}"#)),
        2 => Some(http(200, r#"{"output": [[NaN]]}"#)),
        3 => Some(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"output\r\nA\r\n\": [[-2]]}\r\n0\r\n\r\n"
                .into(),
        ),
        4 => Some("HTTP/1.0 200 OK\r\n\r\n{\"output\": [[-3]], \"more\": 1}".into()),
        _ => Some(http(200, r#"{"output": [[1, 2]]}"#)),
    });
    let mut evaluator = evaluator(spec(&[stub.url()]), 1);
    // To the bit, both ways.
    assert_eq!(one(&mut evaluator, 0.25, 0.2).outcome, Outcome::Value(0.1 + 0.2));
    assert_eq!(one(&mut evaluator, 1.0, 0.0).outcome, Outcome::Value(f64::NEG_INFINITY));
    assert_eq!(failure(one(&mut evaluator, 2.0, 0.0)).0, FailureKind::Nan);
    assert_eq!(one(&mut evaluator, 3.0, 0.0).outcome, Outcome::Value(-2.0));
    assert_eq!(one(&mut evaluator, 4.0, 0.0).outcome, Outcome::Value(-3.0));
    let (kind, message) = failure(one(&mut evaluator, 5.0, 0.0));
    assert!(kind == FailureKind::Parse && message.contains("[[1, 2]]") && message.contains("[[number]]"), "{message}");
}

#[test]
fn parameters_are_dealt_out_to_the_inputs() {
    let answer = |t: &[f64]| value(10.0 * t[0] + t[1]);
    let stub = Stub::at(0, json!({"inputSizes": [1, 1]}), json!({"outputSizes": [1]}), answer);
    assert_eq!(one(&mut evaluator(spec(&[stub.url()]), 1), 1.0, 2.0).outcome, Outcome::Value(12.0));
}

#[test]
fn what_a_server_complains_of_is_a_failure_that_is_not_tried_again() {
    let stub = Stub::new(|t| {
        Some(match t[0] as i32 {
            0 => http(500, r#"{"error": {"type": "InvalidEvaluation", "message": "did not\nconverge"}}"#),
            1 => http(500, "500 Internal Server Error\n\nServer got itself in trouble"),
            2 => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot JSON!".into(),
            3 => "220 mail.example.org ESMTP\r\n".into(),
            _ => http(200, &format!(r#"{{"output": [[1]], "pad": "{}"}}"#, "x".repeat(3000))),
        })
    });
    let mut evaluator = evaluator(UmbridgeSpec { max_output: 2000, ..spec(&[stub.url()]) }, 1);
    for (x, kind, words) in [
        (0.0, FailureKind::Exception, "InvalidEvaluation: did not | converge"),
        (1.0, FailureKind::Exception, "status 500: 500 Internal Server Error"),
        (2.0, FailureKind::Parse, "not JSON!"),
        (3.0, FailureKind::Parse, "no HTTP/1.1"),
        (4.0, FailureKind::Parse, "more than 2000 bytes"),
    ] {
        let finished = one(&mut evaluator, x, 0.0);
        assert_eq!(finished.attempts, 1);
        let (found, message) = failure(finished);
        assert!(found == kind && message.contains(words) && message.contains(&stub.url()), "{found} {message}");
    }
}

#[test]
fn lost_connections_and_timeouts_are_tried_again() {
    let tries = AtomicUsize::new(0);
    let stub = Stub::new(move |t| match (t[0] as i32, tries.fetch_add(1, Ordering::SeqCst)) {
        // Answers the third time, whatever was wrong before.
        (_, 2) => value(-1.0),
        (0, 0) => None,
        (0, _) => Some("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"output\":".into()),
        (_, _) => Some(http(503, "busy")),
    });
    let finished = one(&mut evaluator(spec(&[stub.url()]), 1), 0.0, 0.0);
    assert_eq!((finished.outcome, finished.attempts), (Outcome::Value(-1.0), 3));
    assert!(finished.retried.iter().all(|a| a.kind == FailureKind::LostWorker), "{:?}", finished.retried);
    // More often than allowed: the point has failed.
    let finished = one(&mut evaluator(UmbridgeSpec { retries: 1, ..spec(&[stub.url()]) }, 1), 1.0, 0.0);
    assert_eq!(finished.attempts, 2);
    let (kind, message) = failure(finished);
    assert!(kind == FailureKind::LostWorker && message.contains("status 503"), "{message}");

    let slow = Stub::new(|_| {
        std::thread::sleep(Duration::from_secs(3));
        value(0.0)
    });
    let begin = Instant::now();
    let quick = UmbridgeSpec { retries: 1, timeout: Some(Duration::from_millis(300)), ..spec(&[slow.url()]) };
    let finished = one(&mut evaluator(quick, 1), 0.0, 0.0);
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    let (kind, message) = failure(finished);
    assert!(kind == FailureKind::Timeout && message.contains("no answer within 0.3 s"), "{message}");
}

#[test]
fn several_servers_share_the_work_and_one_that_dies_is_replaced() {
    let slow = |t: &[f64]| {
        std::thread::sleep(Duration::from_millis(20));
        value(t[0])
    };
    let (first, second) = (Stub::new(slow), Stub::new(slow));
    let mut evaluator = evaluator(spec(&[first.url(), second.url()]), 4);
    let mut run = |ids: std::ops::Range<u64>| {
        let n = ids.end - ids.start;
        ids.for_each(|id| evaluator.submit(job(id, id as f64, 0.0)).unwrap());
        for _ in 0..n {
            let finished = evaluator.wait(Duration::from_secs(60)).unwrap().unwrap();
            assert_eq!(finished.outcome, Outcome::Value(finished.id.0 as f64));
        }
    };
    run(0..20);
    let shares = [&first, &second].map(|stub| stub.asked.load(Ordering::SeqCst));
    assert!(shares[0] + shares[1] == 20 && shares.iter().all(|n| *n >= 5), "{shares:?}");
    let port = first.port;
    drop(first);
    run(20..40);
    assert_eq!(second.asked.load(Ordering::SeqCst), shares[1] + 20);
    // It comes back, and the other goes: nothing is lost.
    let again = Stub::at(port, json!({"inputSizes": [2]}), json!({"outputSizes": [1]}), slow);
    drop(second);
    run(40..60);
    assert_eq!(again.asked.load(Ordering::SeqCst), 20);
}

#[test]
fn no_server_at_all_is_an_error_and_no_failure_of_a_point() {
    let stub = Stub::new(|t| value(t[0]));
    let mut evaluator = evaluator(UmbridgeSpec { retries: 1, ..spec(&[stub.url()]) }, 1);
    assert_eq!(one(&mut evaluator, 1.0, 0.0).outcome, Outcome::Value(1.0));
    let url = stub.url();
    drop(stub);
    evaluator.submit(job(1, 1.0, 0.0)).unwrap();
    let error = evaluator.wait(Duration::from_secs(60)).unwrap_err().to_string();
    assert!(error.contains(&url) && error.contains("a server that can be reached"), "{error}");
    // Nor can one begin.
    let error =
        UmbridgeEvaluator::new(spec(std::slice::from_ref(&url)), &["x", "y"], 1).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains(&url) && error.contains("a server that can be reached"), "{error}");
}

#[test]
fn servers_that_do_not_fit_are_refused() {
    let refused = |stub: &Stub, model: &str| {
        let mut spec = spec(&[stub.url()]);
        spec.umbridge.model = model.into();
        UmbridgeEvaluator::new(spec, &["x", "y"], 1).map(|_| ()).unwrap_err().to_string()
    };
    let with = |inputs: Value, outputs: Value| {
        Stub::at(0, json!({"inputSizes": inputs}), json!({"outputSizes": outputs}), |t| value(t[0]))
    };
    let error = refused(&with(json!([2]), json!([1])), "likelihood");
    assert!(error.contains("\"likelihood\"") && error.contains("forward, posterior"), "{error}");
    let error = refused(&with(json!([3]), json!([1])), "posterior");
    assert!(error.contains("inputSizes") && error.contains("[3]") && error.contains("x, y"), "{error}");
    let error = refused(&with(json!([2]), json!([4])), "posterior");
    assert!(error.contains("outputSizes") && error.contains("[4]") && error.contains("log-likelihood"), "{error}");
    let error = refused(&with(json!("two"), json!([1])), "posterior");
    assert!(error.contains("inputSizes") && error.contains("whole numbers"), "{error}");
    let error = refused(
        &Stub::at(0, json!({"error": {"type": "X", "message": "no such config"}}), json!({}), |t| value(t[0])),
        "posterior",
    );
    assert!(error.contains("no such config"), "{error}");
    for (text, words) in [
        (r#"{"umbridge": {"url": [], "model": "m"}}"#, "at least one address"),
        (r#"{"umbridge": {"url": "localhost:4242", "model": "m"}}"#, "http://host:port"),
        (r#"{"umbridge": {"url": "http://localhost:1", "model": ""}}"#, "the name of a model"),
        (r#"{"umbridge": {"url": "http://localhost:1", "model": "m"}, "timeout": 0}"#, "seconds > 0"),
        (r#"{"umbridge": {"url": "http://localhost:1", "model": "m"}, "max_output": 0}"#, "bytes > 0"),
    ] {
        let error = serde_json::from_str::<UmbridgeSpec>(text).unwrap().validate().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn an_interrupt_is_heeded_while_an_answer_is_awaited() {
    let stub = Stub::new(|_| {
        std::thread::sleep(Duration::from_secs(2));
        value(0.0)
    });
    let mut evaluator = evaluator(spec(&[stub.url()]), 1);
    evaluator.submit(job(0, 0.0, 0.0)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let begin = Instant::now();
    evaluator.interrupt().raise();
    assert_eq!(evaluator.wait(Duration::from_secs(60)).unwrap(), None);
    evaluator.shutdown();
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}
