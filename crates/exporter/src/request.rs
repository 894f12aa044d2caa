//! The head of an HTTP/1.1 request (RFC 9112), parsed strictly: what could be understood in two ways is refused.
//!
//! Only requests without a body are accepted; header fields other than `Host` and those of a body have no
//! effect.

/// The most bytes of a request's head.
pub(crate) const HEAD_MAX: usize = 8 << 10;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Whether only the head of the answer is wanted.
    pub(crate) is_head: bool,
    /// The path, without a query.
    pub(crate) path: String,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No request.
    Bad,
    /// Another method than GET and HEAD.
    Method,
    /// The head is longer than [`HEAD_MAX`].
    TooLarge,
    /// Another version of HTTP.
    Version,
}

/// Parses what has arrived so far; `None` if more is needed.
pub(crate) fn parse(bytes: &[u8]) -> Option<Result<Request, Refusal>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    match end {
        Some(end) if end + 4 > HEAD_MAX => Some(Err(Refusal::TooLarge)),
        Some(end) => Some(head(&bytes[..end])),
        None if bytes.len() >= HEAD_MAX => Some(Err(Refusal::TooLarge)),
        // What is no request needs no end.
        None if !begins_well(bytes) => Some(Err(Refusal::Bad)),
        None => None,
    }
}

/// Whether the first line can still become that of a request.
fn begins_well(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or(bytes);
    let is_whole = line.len() < bytes.len();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.iter().all(|byte| (b' '..=b'~').contains(byte))
        && line.first().map_or(!is_whole, u8::is_ascii_alphabetic)
}

fn head(bytes: &[u8]) -> Result<Request, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::Bad)?;
    let has_controls = text
        .replace("\r\n", "")
        .chars()
        .any(|letter| letter.is_control() && letter != '\t');
    if has_controls {
        return Err(Refusal::Bad);
    }
    let mut lines = text.split("\r\n");
    let line = lines.next().ok_or(Refusal::Bad)?;
    let [method, target, version] = words(line).ok_or(Refusal::Bad)?;
    let has_host = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        other if other.starts_with("HTTP/") => return Err(Refusal::Version),
        _ => return Err(Refusal::Bad),
    };
    if !is_token(method) {
        return Err(Refusal::Bad);
    }
    let hosts = fields(lines)?;
    if hosts > 1 || has_host && hosts == 0 {
        return Err(Refusal::Bad);
    }
    let is_head = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(Refusal::Method),
    };
    Ok(Request { is_head, path: path(target).ok_or(Refusal::Bad)? })
}

fn words(line: &str) -> Option<[&str; 3]> {
    let mut words = line.split(' ');
    let found = [words.next()?, words.next()?, words.next()?];
    (words.next().is_none() && found.iter().all(|word| !word.is_empty())).then_some(found)
}

/// Checks header fields; the number of those named `Host`.
fn fields<'a>(lines: impl Iterator<Item = &'a str>) -> Result<usize, Refusal> {
    let mut hosts = 0;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(Refusal::Bad)?;
        if !is_token(name) {
            return Err(Refusal::Bad);
        }
        let has_body = match name.to_ascii_lowercase().as_str() {
            "host" => {
                hosts += 1;
                false
            }
            "transfer-encoding" => true,
            "content-length" => value.trim() != "0",
            _ => false,
        };
        if has_body {
            return Err(Refusal::Bad);
        }
    }
    Ok(hosts)
}

/// The name of a method or a field (RFC 9110, `token`).
fn is_token(text: &str) -> bool {
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_letter)
}

/// The path of a target: of this server, or as a proxy would be asked.
fn path(target: &str) -> Option<String> {
    let local = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let path = local.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Option<Result<Request, Refusal>> {
        parse(text.as_bytes())
    }

    fn get(path: &str) -> Option<Result<Request, Refusal>> {
        Some(Ok(Request { is_head: false, path: path.to_owned() }))
    }

    /// Check requests of Prometheus, curl and proxies.
    #[test]
    fn accepted() {
        for (target, path) in [
            ("/metrics", "/metrics"),
            ("/metrics?a=b", "/metrics"),
            ("http://a:1/x", "/x"),
            ("http://a", "/"),
        ] {
            let text = format!(
                "GET {target} HTTP/1.1\r\nHost: a:1\r\nUser-Agent: Prometheus/2.42.0\r\n\
                 Accept: text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n\r\n"
            );
            assert_eq!(parsed(&text), get(path), "{target}");
        }
        assert_eq!(parsed("GET / HTTP/1.0\r\n\r\n"), get("/"));
        assert_eq!(
            parsed("GET / HTTP/1.1\r\nhost:\r\nContent-Length: 0\r\n\r\nmore"),
            get("/")
        );
        let head = Some(Ok(Request { is_head: true, path: "/".to_owned() }));
        assert_eq!(parsed("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"), head);
    }

    /// Check that each request that is none, or could be read in two ways, is refused.
    #[test]
    fn refused() {
        for bad in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1 x\r\nHost: a\r\n\r\n",
            "GET /\r\nHost: a\r\n\r\n",
            "GET metrics HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n",
            "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / FTP/1.1\r\nHost: a\r\n\r\n",
            "\x16\x03\x01",
            " GET",
            "\r\n",
        ] {
            assert_eq!(parsed(bad), Some(Err(Refusal::Bad)), "{bad:?}");
        }
        for (text, refusal) in [
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Method),
            ("get / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Method),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Refusal::Version),
            ("PRI * HTTP/2.0\r\n\r\n", Refusal::Version),
        ] {
            assert_eq!(parsed(text), Some(Err(refusal)), "{text:?}");
        }
    }

    /// Check that a head of any length is refused at the limit, complete or not.
    #[test]
    fn too_large() {
        let begin = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
        let of_length =
            |length: usize| format!("{begin}{}", "x".repeat(length - begin.len()));
        assert_eq!(parsed(&of_length(HEAD_MAX - 1)), None);
        assert_eq!(parsed(&of_length(HEAD_MAX)), Some(Err(Refusal::TooLarge)));
        let exact = of_length(HEAD_MAX - 4) + "\r\n\r\n";
        assert_eq!(parsed(&exact), get("/"));
        let over = of_length(HEAD_MAX - 3) + "\r\n\r\n";
        assert_eq!(parsed(&over), Some(Err(Refusal::TooLarge)));
    }

    proptest! {
        /// Check that no bytes cause a panic, and that a request means the same however it arrives.
        #[test]
        fn in_parts(text in "(GET|POST|P U|\\PC{0,3}) (/|/[a-z?]{0,5}|\\PC{0,4}) HTTP/1.[01]\r\n(Host: a\r\n|[a-zA-Z: \t\0-]{0,9}\r\n){0,3}\r\n?") {
            let whole = parse(text.as_bytes());
            for end in 0..text.len() {
                if let Some(early) = parse(&text.as_bytes()[..end]) {
                    prop_assert!(early == Err(Refusal::Bad) || Some(early) == whole);
                }
            }
        }
    }
}
