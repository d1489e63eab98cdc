//! UM-Bridge: models that are served over HTTP. Protocol 1.0.
//!
//! `GET /Info` names the models, `POST /InputSizes` and `/OutputSizes` say what goes in and out, `POST /Evaluate` with
//! `{"name": …, "input": [[…]], "config": {…}}` answers `{"output": [[…]]}` or `{"error": {"type": …, "message": …}}`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::http::{Address, Limits, Response, Trouble, exchange};
use super::pool::{Evaluated, Pool, Pooled, Work};
use super::protocol::{RawNumber, quote_non_finite};
use super::spec::{defaults, optional_seconds};
use super::text::{excerpt, one_line};
use super::{Attempt, Interrupt};
use crate::error::{Error, Result};
use crate::types::{FailureKind, Job, Outcome};

/// The protocol that is spoken.
const PROTOCOL: f64 = 1.0;

/// How long a server may take to say what it has.
const INTRODUCTION: Duration = Duration::from_secs(30);

/// A log-likelihood that UM-Bridge servers compute, as written in a problem file.
///
/// ```
/// use batchquad::evaluate::UmbridgeSpec;
///
/// let text = r#"{"umbridge": {"url": "http://localhost:4242", "model": "posterior"}, "timeout": 60}"#;
/// let spec: UmbridgeSpec = serde_json::from_str(text).unwrap();
/// assert_eq!((spec.umbridge.url.len(), spec.retries), (1, 2));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UmbridgeSpec {
    /// Which servers, and which model.
    pub umbridge: Bridge,
    /// How long one attempt may take (seconds in a problem file).
    #[serde(default, with = "optional_seconds", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How often an evaluation is tried again after a timeout or a lost connection. Other failures would repeat.
    #[serde(default = "defaults::retries")]
    pub retries: u32,
    /// The longest answer in bytes.
    #[serde(default = "defaults::max_output")]
    pub max_output: usize,
}

/// Servers of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// Where they are, `http://host:port`; one may be written without a list.
    #[serde(deserialize_with = "one_or_several")]
    pub url: Vec<String>,
    /// The name of the model.
    pub model: String,
    /// What the model is told beside the point.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected an address, for instance \"http://localhost:4242\", or a list of these")]
    enum Given {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::One(url) => vec![url],
        Given::Several(urls) => urls,
    })
}

impl UmbridgeSpec {
    /// Checks what can be checked without a server.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the field.
    pub fn validate(&self) -> Result<()> {
        self.addresses()?;
        if self.umbridge.model.is_empty() {
            return Err(Error::invalid("umbridge.model", &self.umbridge.model, "the name of a model"));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::invalid("timeout", 0.0, "a number of seconds > 0"));
        }
        if self.max_output == 0 {
            return Err(Error::invalid("max_output", 0, "a number of bytes > 0"));
        }
        Ok(())
    }

    fn addresses(&self) -> Result<Vec<Address>> {
        if self.umbridge.url.is_empty() {
            return Err(Error::invalid("umbridge.url", &self.umbridge.url, "at least one address"));
        }
        self.umbridge.url.iter().map(|url| Address::new(url)).collect()
    }
}

/// Evaluates a model of UM-Bridge servers, several points at a time.
///
/// Worker `k` begins with server `k` modulo their number, and goes to the next one when it cannot reach it. A connection that ends without an
/// answer and a timeout cost an attempt. When no server can be reached at all, that is an error and not a failure of a point: the jobs stay to be
/// done, and the run can be resumed when servers are back.
pub struct UmbridgeEvaluator {
    pool: Pool,
    retries: u32,
}

struct Shared {
    spec: UmbridgeSpec,
    addresses: Vec<Address>,
    /// How the parameters are dealt out to the inputs of the model.
    sizes: Vec<usize>,
    interrupt: Interrupt,
}

impl UmbridgeEvaluator {
    /// `workers` questions at a time, about points whose coordinates are called `names`. The servers are asked whether they have the model and
    /// whether it takes so many numbers and gives one; those that cannot be reached are passed over as long as one can.
    ///
    /// # Errors
    /// When `spec` is not valid, no server can be reached, or one of them has no such model.
    pub fn new(spec: UmbridgeSpec, names: &[impl AsRef<str>], workers: usize) -> Result<Self> {
        spec.validate()?;
        let addresses = spec.addresses()?;
        let interrupt = Interrupt::default();
        let mut sizes: Option<Vec<usize>> = None;
        let mut unreachable = Vec::new();
        for address in &addresses {
            match introduce(&spec, address, names, &interrupt) {
                Ok(found) if sizes.as_ref().is_none_or(|known| *known == found) => sizes = Some(found),
                Ok(found) => {
                    let expected = format!("{:?}, as those of the servers before", sizes.unwrap_or_default());
                    return Err(Error::invalid(format!("sizes of the inputs at {}", address.url), found, expected));
                }
                Err(Refused::Unreachable(reason)) => unreachable.push(format!("{}: {reason}", address.url)),
                Err(Refused::Wrong(error)) => return Err(error),
            }
        }
        let Some(sizes) = sizes else { return Err(no_server(&spec, &unreachable)) };
        let retries = spec.retries;
        let shared = Arc::new(Shared { spec, addresses, sizes, interrupt: interrupt.clone() });
        let pool = Pool::new(workers, interrupt, |worker| Client { shared: Arc::clone(&shared), at: worker })?;
        Ok(Self { pool: pool.joined(), retries })
    }
}

impl Pooled for UmbridgeEvaluator {
    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn retries(&self) -> u32 {
        self.retries
    }
}

fn no_server(spec: &UmbridgeSpec, reasons: &[String]) -> Error {
    Error::invalid("umbridge.url", &spec.umbridge.url, format!("a server that can be reached ({})", reasons.join("; ")))
}

/// Why a server cannot be used.
enum Refused {
    Unreachable(String),
    Wrong(Error),
}

/// Asks a server what it has; gives the sizes of the model's inputs.
fn introduce(
    spec: &UmbridgeSpec,
    address: &Address,
    names: &[impl AsRef<str>],
    interrupt: &Interrupt,
) -> Result<Vec<usize>, Refused> {
    let wrong = |what: &str, value: &dyn std::fmt::Debug, expected: String| {
        Refused::Wrong(Error::invalid(format!("{what} of {}", address.url), value, expected))
    };
    let ask = |method: &str, path: &str, body: &str| -> Result<Value, Refused> {
        let limits = Limits { deadline: Some(Instant::now() + INTRODUCTION), max_body: spec.max_output, interrupt };
        let response = exchange(address, method, path, body, limits).map_err(|trouble| match trouble {
            Trouble::Unreachable(reason) | Trouble::Lost(reason) => Refused::Unreachable(reason),
            Trouble::TimedOut => Refused::Unreachable(format!("no answer within {} s", INTRODUCTION.as_secs())),
            other => wrong(&format!("answer to {path}"), &other, "what an UM-Bridge server says".into()),
        })?;
        let text = excerpt(&response.body);
        let value: Value = serde_json::from_slice(&response.body)
            .map_err(|_| wrong(&format!("answer to {path}"), &text, "JSON, from an UM-Bridge server".into()))?;
        match value.pointer("/error/message").and_then(Value::as_str) {
            Some(message) => Err(wrong(&format!("answer to {path}"), &one_line(message), "no error".into())),
            None if response.status != 200 => {
                Err(wrong(&format!("answer to {path}"), &text, format!("status 200, not {}", response.status)))
            }
            None => Ok(value),
        }
    };
    let info = ask("GET", "/Info", "")?;
    let version = info.get("protocolVersion").and_then(Value::as_f64);
    if version != Some(PROTOCOL) {
        return Err(wrong("protocolVersion", &info.get("protocolVersion"), format!("{PROTOCOL:.1}")));
    }
    let model = &spec.umbridge.model;
    let models: Vec<&str> =
        info.get("models").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if !models.contains(&model.as_str()) {
        let expected = format!("one of the models of {}: {}", address.url, models.join(", "));
        return Err(Refused::Wrong(Error::invalid("umbridge.model", model, expected)));
    }
    let question = json!({"name": model, "config": spec.umbridge.config}).to_string();
    let sizes = |path: &str, key: &str| -> Result<Vec<usize>, Refused> {
        let answer = ask("POST", path, &question)?;
        let list = answer.get(key).cloned().unwrap_or_default();
        serde_json::from_value(list).map_err(|_| wrong(key, &answer, "a list of whole numbers".into()))
    };
    let (inputs, outputs) = (sizes("/InputSizes", "inputSizes")?, sizes("/OutputSizes", "outputSizes")?);
    if inputs.iter().try_fold(0_usize, |sum, n| sum.checked_add(*n)) != Some(names.len()) {
        let listed: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let expected = format!("{} numbers, one for each parameter: {}", names.len(), listed.join(", "));
        return Err(wrong("inputSizes", &inputs, expected));
    }
    if outputs != [1] {
        return Err(wrong("outputSizes", &outputs, "[1], the log-likelihood".into()));
    }
    Ok(inputs)
}

/// One worker.
struct Client {
    shared: Arc<Shared>,
    /// The server that it asks first.
    at: usize,
}

/// What came of one attempt.
enum Tried {
    Done(Outcome),
    /// No server could be reached, and why.
    Nobody(Vec<String>),
    Interrupted,
}

impl Client {
    fn attempt(&mut self, job: &Job, question: &str) -> Tried {
        let Shared { spec, addresses, interrupt, .. } = &*self.shared;
        let deadline = spec.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut reasons = Vec::new();
        for _ in 0..addresses.len() {
            let address = &addresses[self.at % addresses.len()];
            let limits = Limits { deadline, max_body: spec.max_output, interrupt };
            let failed = |kind: FailureKind, message: String| {
                Tried::Done(Outcome::Failed { kind, message: format!("{}: {message}", address.url) })
            };
            let tried = match exchange(address, "POST", "/Evaluate", question, limits) {
                Ok(response) => judge(job, &address.url, &response),
                Err(Trouble::Interrupted) => return Tried::Interrupted,
                Err(Trouble::Unreachable(reason)) => {
                    reasons.push(format!("{}: {reason}", address.url));
                    self.at += 1;
                    continue;
                }
                Err(Trouble::Lost(reason)) => failed(FailureKind::LostWorker, reason),
                Err(Trouble::TimedOut) => {
                    let seconds = spec.timeout.unwrap_or_default().as_secs_f64();
                    failed(FailureKind::Timeout, format!("no answer within {seconds} s"))
                }
                Err(Trouble::TooMuch) => {
                    failed(FailureKind::Parse, format!("the answer has more than {} bytes", spec.max_output))
                }
                Err(Trouble::Garbled(what)) => failed(FailureKind::Parse, what),
            };
            // What one server could not do another may.
            if let Tried::Done(Outcome::Failed { kind, .. }) = &tried
                && kind.is_infrastructure()
            {
                self.at += 1;
            }
            return tried;
        }
        Tried::Nobody(reasons)
    }

    /// Whether the whole pause passed without an interrupt.
    fn pause(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        while Instant::now() < end && !self.shared.interrupt.is_raised() {
            std::thread::sleep(Duration::from_millis(20));
        }
        !self.shared.interrupt.is_raised()
    }
}

impl Work for Client {
    fn run(&mut self, job: &Job) -> Result<Option<Evaluated>> {
        let dim: usize = self.shared.sizes.iter().sum();
        if job.theta.len() != dim {
            return Err(Error::length(format!("point of job {}", job.id), dim, job.theta.len()));
        }
        let mut rest = job.theta.as_slice();
        let mut input: Vec<&[f64]> = Vec::new();
        for &size in &self.shared.sizes {
            let (block, after) = rest.split_at(size);
            input.push(block);
            rest = after;
        }
        let bridge = &self.shared.spec.umbridge;
        let question = json!({"name": bridge.model, "input": input, "config": bridge.config}).to_string();
        let (mut attempts, mut retried) = (0, Vec::new());
        loop {
            attempts += 1;
            let again = attempts <= self.shared.spec.retries;
            match self.attempt(job, &question) {
                Tried::Interrupted => return Ok(None),
                Tried::Nobody(reasons) if again => {
                    let message = format!("no server can be reached ({})", reasons.join("; "));
                    retried.push(Attempt { number: attempts, kind: FailureKind::LostWorker, message });
                }
                Tried::Nobody(reasons) => return Err(no_server(&self.shared.spec, &reasons)),
                Tried::Done(Outcome::Failed { kind, message }) if kind.is_infrastructure() && again => {
                    retried.push(Attempt { number: attempts, kind, message });
                }
                Tried::Done(outcome) => {
                    let stderr_tail = String::new();
                    return Ok(Some(Evaluated { outcome, sd: None, attempts, retried, stderr_tail }));
                }
            }
            // A server that is being restarted needs a moment.
            if !self.pause(Duration::from_millis(300) * attempts.min(10)) {
                return Ok(None);
            }
        }
    }
}

/// What an answer to `/Evaluate` says.
fn judge(job: &Job, url: &str, response: &Response) -> Tried {
    #[derive(Deserialize)]
    struct Answer {
        output: Option<Vec<Vec<RawNumber>>>,
        error: Option<Complaint>,
    }
    #[derive(Deserialize)]
    struct Complaint {
        #[serde(rename = "type")]
        kind: Option<String>,
        message: Option<String>,
    }
    let failed = |kind: FailureKind, message: String| {
        Tried::Done(Outcome::Failed { kind, message: format!("{url}: {message}") })
    };
    // A gateway in front of the servers that has none to offer.
    if matches!(response.status, 502..=504) {
        return failed(FailureKind::LostWorker, format!("status {}", response.status));
    }
    let text = String::from_utf8_lossy(&response.body);
    let answer: Answer = match serde_json::from_str(&quote_non_finite(&text)) {
        Ok(answer) => answer,
        Err(_) if response.status != 200 => {
            let said = one_line(&text);
            return failed(FailureKind::Exception, format!("status {}: {said}", response.status));
        }
        Err(e) => {
            let said = excerpt(&response.body);
            return failed(FailureKind::Parse, format!("answer is {said}, expected {{\"output\": [[number]]}}: {e}"));
        }
    };
    if let Some(Complaint { kind, message }) = answer.error {
        let said = one_line(&format!("{}: {}", kind.unwrap_or_default(), message.unwrap_or_default()));
        return failed(FailureKind::Exception, said);
    }
    let number = match answer.output.as_deref() {
        Some([block]) => match block.as_slice() {
            [number] => number.get(),
            _ => None,
        },
        _ => None,
    };
    match number {
        Some(value) if response.status == 200 => Tried::Done(Outcome::from_log_likelihood(&job.theta, value)),
        _ => {
            let said = excerpt(&response.body);
            failed(FailureKind::Parse, format!("answer is {said}, expected {{\"output\": [[number]]}}"))
        }
    }
}
