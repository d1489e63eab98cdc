//! A page that follows a run, served to this machine alone.
//!
//! The address has a random token, so that other users of the machine cannot guess it. Requests that name another host (a page elsewhere
//! that has its own name lead here) are refused. Nothing but reading is possible.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use batchquad::{journal::Holder, run::peek};

use crate::{
    page::{Live, live},
    store::state,
};

/// The longest request: a browser's has some hundred bytes.
const LONGEST: usize = 16 << 10;

/// How long a client may take to send its request or to receive the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests at the same time.
const MOST: usize = 16;

/// How often signals are looked for.
const GLANCE: Duration = Duration::from_millis(50);

/// A server that has its address.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

struct Shared {
    store: PathBuf,
    token: String,
    hosts: [String; 2],
    last: Mutex<Option<(String, Live)>>,
    busy: AtomicUsize,
}

impl Server {
    /// A server for the run in a store, on a free port of the loopback interface.
    pub fn new(store: &Path) -> Result<Self> {
        // A mistake in the name is reported here rather than in the browser.
        peek(store)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on 127.0.0.1")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Shared {
            store: store.to_owned(),
            token: token()?,
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
            last: Mutex::new(None),
            busy: AtomicUsize::new(0),
        };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Where the page is.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.shared.hosts[0], self.shared.token)
    }

    /// Serves until the user leaves.
    pub fn serve(&self, stopped: &AtomicBool) {
        while !stopped.load(Ordering::SeqCst) {
            let Ok((stream, _)) = self.listener.accept() else {
                std::thread::sleep(GLANCE);
                continue;
            };
            let shared = Arc::clone(&self.shared);
            if shared.busy.fetch_add(1, Ordering::SeqCst) >= MOST {
                shared.busy.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let answer = move || {
                // A client that goes away is its own affair.
                let _ = shared.answer(stream);
                shared.busy.fetch_sub(1, Ordering::SeqCst);
            };
            if std::thread::Builder::new().name("page".into()).spawn(answer).is_err() {
                self.shared.busy.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = read_head(&mut stream)?;
        let (status, kind, body) = self.reply(&request);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        Ok(stream.flush()?)
    }

    fn reply(&self, request: &str) -> (&'static str, &'static str, String) {
        let plain = |status, text: &str| (status, "text/plain", text.to_owned());
        let mut lines = request.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, path, _] = first[..] else { return plain("400 Bad Request", "not a request\n") };
        let host = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        if !host.is_some_and(|host| self.hosts.iter().any(|own| own == host)) {
            return plain("403 Forbidden", "another host was asked for\n");
        }
        let own = path.strip_prefix('/').and_then(|rest| rest.split_once('/'));
        let Some((token, page)) = own.filter(|(token, _)| same(token, &self.token)) else {
            return plain("404 Not Found", "there is nothing here\n");
        };
        if method != "GET" {
            return plain("405 Method Not Allowed", "only GET\n");
        }
        debug_assert_eq!(token.len(), self.token.len());
        match page {
            "" => self.page(|live| live.whole.clone()),
            "body" => self.page(|live| live.body.clone()),
            "state" => plain("200 OK", &self.seen()),
            _ => plain("404 Not Found", "there is nothing here\n"),
        }
    }

    /// What of the page is asked for, made anew if the run has moved on.
    fn page(&self, of: impl Fn(&Live) -> String) -> (&'static str, &'static str, String) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen();
        if let Some((_, live)) = last.as_ref().filter(|(kept, _)| *kept == seen) {
            return ("200 OK", "text/html", of(live));
        }
        let made = peek(&self.store).map_err(anyhow::Error::from).and_then(|(engine, replay)| {
            let (word, writer) = state(&engine, &self.store);
            let word = writer.map_or(word.to_owned(), |h| format!("{word}: process {} on {}", h.pid, h.host));
            live(&engine, &replay, &self.store, &word, &seen)
        });
        match made {
            Ok(live) => {
                let text = of(&live);
                *last = Some((seen, live));
                ("200 OK", "text/html", text)
            }
            Err(e) => ("500 Internal Server Error", "text/plain", format!("{e:#}\n")),
        }
    }

    /// What changes whenever the run does.
    fn seen(&self) -> String {
        let size = std::fs::metadata(self.store.join("journal.jsonl")).map_or(0, |meta| meta.len());
        format!("{size} {}", Holder::at_work(&self.store).is_some())
    }
}

/// The head of a request.
fn read_head(stream: &mut TcpStream) -> Result<String> {
    let (mut head, mut chunk) = (Vec::new(), [0; 2048]);
    while head.len() < LONGEST && !head.windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut chunk)? {
            0 => break,
            n => head.extend_from_slice(&chunk[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (x, y)| all | (x ^ y)) == 0
}

/// 128 random bits.
fn token() -> Result<String> {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut bytes = [0u8; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        // Elsewhere: the keys of two hash tables, which the system makes.
        for half in bytes.chunks_mut(8) {
            half.copy_from_slice(&RandomState::new().build_hasher().finish().to_ne_bytes());
        }
    }
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_and_only_for_those_who_know_its_address() {
        let token = token().unwrap();
        assert!(token.len() == 32 && token != super::token().unwrap());
        let shared = Shared {
            store: "/nowhere".into(),
            token: token.clone(),
            hosts: ["127.0.0.1:80".into(), "localhost:80".into()],
            last: Mutex::new(None),
            busy: AtomicUsize::new(0),
        };
        let status = |request: &str| shared.reply(request).0;
        assert_eq!(status(&format!("GET /{token}/state HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n")), "200 OK");
        assert_eq!(
            status(&format!("GET /{token}/ HTTP/1.1\r\nhost: localhost:80\r\n\r\n")),
            "500 Internal Server Error"
        );
        assert_eq!(status(&format!("POST /{token}/ HTTP/1.1\r\nHost: localhost:80\r\n\r\n")), "405 Method Not Allowed");
        assert_eq!(status(&format!("GET /{token}/../x HTTP/1.1\r\nHost: localhost:80\r\n\r\n")), "404 Not Found");
        assert_eq!(status(&format!("GET /{token}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n")), "403 Forbidden");
        assert_eq!(status(&format!("GET /{token}/ HTTP/1.1\r\n\r\n")), "403 Forbidden");
        assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n"), "404 Not Found");
        assert_eq!(
            status(&format!("GET /{}0/ HTTP/1.1\r\nHost: localhost:80\r\n\r\n", &token[..31])),
            if token.ends_with('0') { "500 Internal Server Error" } else { "404 Not Found" }
        );
        assert_eq!(status("\u{0}\u{0}"), "400 Bad Request");
    }
}
