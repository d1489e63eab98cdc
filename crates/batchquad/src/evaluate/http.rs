//! As much of HTTP/1.1 as it takes to ask a server one question: plain TCP, one connection a question, answers of bounded length.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::text::excerpt;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;

/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);

/// How long a question may take to be sent.
const SENDING: Duration = Duration::from_secs(30);

/// How often interrupts and deadlines are looked at while an answer is awaited.
const LOOK: Duration = Duration::from_millis(50);

/// The longest head of an answer.
const LONGEST_HEAD: usize = 1 << 16;

/// Where a server is: `http://host:port/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// As the user wrote it.
    pub(super) url: String,
    host: String,
    port: u16,
    path: String,
}

impl Address {
    /// # Errors
    /// [`Error::Invalid`] for anything but `http://`, a host, perhaps a port, and perhaps a path.
    pub(super) fn new(url: &str) -> Result<Self> {
        let refuse = |expected: &str| Error::invalid("umbridge.url", url, expected);
        let Some(rest) = url.strip_prefix("http://") else {
            let expected = match url.starts_with("https://") {
                true => "http://host:port: encrypted connections are not supported, a tunnel to this machine would be",
                false => "http://host:port",
            };
            return Err(refuse(expected));
        };
        if rest.chars().any(|c| c.is_control() || c.is_whitespace() || !c.is_ascii() || "@?#".contains(c)) {
            return Err(refuse("http://host:port without user, query, fragment, spaces or control characters"));
        }
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match (place.strip_prefix('['), place.rsplit_once(':')) {
            (Some(_), _) => {
                let (host, port) = place[1..].split_once(']').ok_or_else(|| refuse("http://[address]:port"))?;
                (host, port.strip_prefix(':'))
            }
            (None, Some((host, port))) => (host, Some(port)),
            (None, None) => (place, None),
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|&p: &u16| p > 0),
            None => Some(80),
        };
        let port = port.ok_or_else(|| refuse("a port from 1 to 65535"))?;
        if host.is_empty() {
            return Err(refuse("http://host:port"));
        }
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { String::new() } else { format!("/{path}") };
        Ok(Self { url: url.into(), host: host.into(), port, path })
    }

    fn connect(&self, deadline: Option<Instant>) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::new(ErrorKind::NotFound, "the host has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            let left = deadline.map_or(CONNECTING, |d| d.saturating_duration_since(Instant::now()).min(CONNECTING));
            match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
                Ok(stream) => return Ok(stream),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    fn head(&self, method: &str, path: &str, length: usize) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!(
            "{method} {}{path} HTTP/1.1\r\nHost: {host}:{}\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n",
            self.path, self.port
        )
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No connection could be made.
    Unreachable(String),
    /// The connection ended before the answer did.
    Lost(String),
    /// It took too long.
    TimedOut,
    /// The answer is longer than allowed.
    TooMuch,
    /// What came is not HTTP.
    Garbled(String),
    /// We were asked to stop.
    Interrupted,
}

/// What an exchange has to keep to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits<'a> {
    pub(super) deadline: Option<Instant>,
    pub(super) max_body: usize,
    pub(super) interrupt: &'a Interrupt,
}

/// Asks and waits for the answer.
pub(super) fn exchange(
    address: &Address,
    method: &str,
    path: &str,
    body: &str,
    limits: Limits<'_>,
) -> std::result::Result<Response, Trouble> {
    let mut stream = address.connect(limits.deadline).map_err(|e| Trouble::Unreachable(e.to_string()))?;
    let lost = |e: std::io::Error| Trouble::Lost(e.to_string());
    stream.set_read_timeout(Some(LOOK)).map_err(lost)?;
    stream.set_write_timeout(Some(SENDING)).map_err(lost)?;
    // A server may answer and close before it has read all: what it says is looked at whether or not this succeeds.
    let question = address.head(method, path, body.len()) + body;
    let sent = stream.write_all(question.as_bytes()).and_then(|()| stream.flush());
    let mut received = Vec::new();
    let mut buffer = [0; 1 << 14];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => {
                let ended = || match &sent {
                    Err(e) => Trouble::Lost(e.to_string()),
                    Ok(()) => Trouble::Lost("the server closed the connection without a whole answer".into()),
                };
                return parse(&received, limits.max_body, true)?.ok_or_else(ended);
            }
            Ok(n) => {
                received.extend_from_slice(&buffer[..n]);
                if let Some(response) = parse(&received, limits.max_body, false)? {
                    return Ok(response);
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(e) => return Err(lost(e)),
        }
        if limits.interrupt.is_raised() {
            return Err(Trouble::Interrupted);
        }
        if limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Trouble::TimedOut);
        }
    }
}

/// The answer in what was received, once it is all there.
fn parse(received: &[u8], max_body: usize, ended: bool) -> std::result::Result<Option<Response>, Trouble> {
    let garbled = |what: &str| Err(Trouble::Garbled(format!("{what} in {}", excerpt(received))));
    let begins_well = received.starts_with(b"HTTP/1.") || b"HTTP/1.".starts_with(received);
    if !begins_well {
        return garbled("no HTTP/1.1");
    }
    let Some(end) = received.windows(4).position(|w| w == b"\r\n\r\n") else {
        return if received.len() > LONGEST_HEAD { garbled("no end of the head") } else { Ok(None) };
    };
    let Ok(head) = std::str::from_utf8(&received[..end]) else { return garbled("a head that is not text") };
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|word| word.parse::<u16>().ok());
    let Some(status) = status.filter(|s| (100..600).contains(s)) else { return garbled("no status") };
    let rest = &received[end + 4..];
    if status < 200 {
        // "Go on": the answer follows.
        return if rest.is_empty() && !ended { Ok(None) } else { parse(rest, max_body, ended) };
    }
    let fields: Vec<(String, &str)> =
        lines.filter_map(|line| line.split_once(':')).map(|(k, v)| (k.trim().to_ascii_lowercase(), v.trim())).collect();
    let field = |name: &str| fields.iter().find(|(k, _)| k == name).map(|(_, v)| *v);
    let body = if field("transfer-encoding").is_some_and(|v| v.to_ascii_lowercase().contains("chunked")) {
        match chunks(rest, max_body) {
            Chunks::Whole(body) => body,
            Chunks::Unfinished => return Ok(None),
            Chunks::TooMuch => return Err(Trouble::TooMuch),
            Chunks::Garbled => return garbled("no chunks"),
        }
    } else if let Some(length) = field("content-length") {
        let Ok(length) = length.parse::<usize>() else { return garbled("no length") };
        if length > max_body {
            return Err(Trouble::TooMuch);
        }
        match rest.get(..length) {
            Some(body) => body.to_vec(),
            None => return Ok(None),
        }
    } else if rest.len() > max_body {
        return Err(Trouble::TooMuch);
    } else if ended {
        rest.to_vec()
    } else {
        return Ok(None);
    };
    Ok(Some(Response { status, body }))
}

enum Chunks {
    Whole(Vec<u8>),
    Unfinished,
    TooMuch,
    Garbled,
}

/// A body that comes in pieces, each with its length in hexadecimal digits before it.
fn chunks(mut rest: &[u8], max_body: usize) -> Chunks {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|w| w == b"\r\n") else {
            return if rest.len() > 1024 { Chunks::Garbled } else { Chunks::Unfinished };
        };
        let digits = std::str::from_utf8(&rest[..end]).ok().map(|line| line.split(';').next().unwrap_or("").trim());
        let Some(length) = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()) else {
            return Chunks::Garbled;
        };
        if length > max_body || body.len() + length > max_body {
            return Chunks::TooMuch;
        }
        let Some(piece) = rest.get(end + 2..end + 2 + length) else { return Chunks::Unfinished };
        if length == 0 {
            return Chunks::Whole(body);
        }
        body.extend_from_slice(piece);
        match rest.get(end + 2 + length..end + 4 + length) {
            Some(b"\r\n") => rest = &rest[end + 4 + length..],
            Some(_) => return Chunks::Garbled,
            None => return Chunks::Unfinished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses() {
        let read = |url: &str| Address::new(url).map(|a| (a.host, a.port, a.path));
        let of = |host: &str, port: u16, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(read("http://localhost:4242").unwrap(), of("localhost", 4242, ""));
        assert_eq!(read("http://node-3.cluster/").unwrap(), of("node-3.cluster", 80, ""));
        assert_eq!(read("http://[::1]:4242/models/").unwrap(), of("::1", 4242, "/models"));
        assert_eq!(read("http://10.0.0.1:80/a/b").unwrap(), of("10.0.0.1", 80, "/a/b"));
        for (url, expected) in [
            ("localhost:4242", "http://host:port"),
            ("https://localhost", "encrypted"),
            ("http://", "http://host:port"),
            ("http://:4242", "http://host:port"),
            ("http://a:0", "a port"),
            ("http://a:65536", "a port"),
            ("http://a:b", "a port"),
            ("http://me:secret@a", "without user"),
            ("http://a/?b", "without user"),
            ("http://a\r\nX: y", "control characters"),
            ("http://[::1:4242", "[address]"),
        ] {
            let error = read(url).unwrap_err().to_string();
            assert!(error.contains("umbridge.url") && error.contains(expected), "{url}: {error}");
        }
    }

    #[test]
    fn answers_in_every_form_and_at_every_length() {
        let whole = |text: &str| Response { status: 200, body: text.as_bytes().to_vec() };
        for (text, needs_end) in [
            ("HTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\n\r\nhello", false),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello", true),
        ] {
            let bytes = text.as_bytes();
            let last = if text.contains("chunked") { bytes.len() - 2 } else { bytes.len() };
            for n in 0..last {
                assert_eq!(parse(&bytes[..n], 100, false).unwrap(), None, "{n} of {text:?}");
            }
            assert_eq!(parse(bytes, 100, needs_end).unwrap(), Some(whole("hello")), "{text:?}");
            assert!(matches!(parse(bytes, 4, true), Err(Trouble::TooMuch)), "{text:?}");
        }
        for text in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        ] {
            assert!(matches!(parse(text.as_bytes(), 100, true), Err(Trouble::Garbled(_))), "{text:?}");
        }
        // A chunk longer than any memory is too much, not an overflow.
        let huge = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n";
        assert_eq!(parse(huge.as_bytes(), 100, true), Err(Trouble::TooMuch));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "[0-9a-fA-F;: \r\n]{0,60}", ended: bool) {
            let _ = parse(&bytes, 10, ended);
            for head in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
                let _ = parse(format!("{head}{text}").as_bytes(), 10, ended);
            }
        }
    }
}
