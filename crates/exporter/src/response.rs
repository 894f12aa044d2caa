//! Answers to requests. Each connection has one, after which it is closed.

use crate::request::Refusal;

/// The text format of Prometheus.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

const PAGE: &str = "<!DOCTYPE html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>noisefloor exporter</title></head>
<body><h1>noisefloor exporter</h1>
<p>What uses the CPUs of this machine: <a href=\"/metrics\">metrics</a> for Prometheus.</p>
</body></html>
";

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    status: &'static str,
    content_type: &'static str,
    more: &'static str,
    body: String,
}

impl Response {
    /// The metrics.
    pub(crate) fn metrics(body: String) -> Self {
        Self { status: "200 OK", content_type: METRICS, more: "", body }
    }

    /// The page with a link to the metrics.
    pub(crate) fn page() -> Self {
        Self { content_type: HTML, ..Self::text("200 OK", PAGE) }
    }

    /// It serves.
    pub(crate) fn healthy() -> Self {
        Self::text("200 OK", "ok\n")
    }

    /// There is no such path.
    pub(crate) fn not_found() -> Self {
        Self::text("404 Not Found", "not found: try /metrics\n")
    }

    /// The counters cannot be read.
    pub(crate) fn failed(why: &str) -> Self {
        Self::text("500 Internal Server Error", &format!("{why}\n"))
    }

    /// A refused request.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Bad => Self::text("400 Bad Request", "not an HTTP/1.1 request\n"),
            Refusal::Method => Self {
                more: "Allow: GET, HEAD\r\n",
                ..Self::text("405 Method Not Allowed", "only GET and HEAD are allowed\n")
            },
            Refusal::TooLarge => Self::text(
                "431 Request Header Fields Too Large",
                "the request is longer than 8 KiB\n",
            ),
            Refusal::Version => Self::text(
                "505 HTTP Version Not Supported",
                "only HTTP/1.1 is supported\n",
            ),
        }
    }

    fn text(status: &'static str, body: &str) -> Self {
        Self { status, content_type: TEXT, more: "", body: body.to_owned() }
    }

    /// Its bytes; without the body as an answer to HEAD.
    pub(crate) fn into_bytes(self, is_head: bool) -> Vec<u8> {
        let Self { status, content_type, more, body } = self;
        let mut text = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n{more}\r\n",
            body.len()
        );
        if !is_head {
            text.push_str(&body);
        }
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that HEAD has the head of GET, with its length.
    #[test]
    fn heads() {
        for response in [Response::page(), Response::refused(Refusal::Method)] {
            let whole = String::from_utf8(response.clone().into_bytes(false)).unwrap();
            let head = String::from_utf8(response.into_bytes(true)).unwrap();
            let (before, body) = whole.split_once("\r\n\r\n").unwrap();
            assert_eq!(head, format!("{before}\r\n\r\n"));
            assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
        }
    }
}
