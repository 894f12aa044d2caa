//! Connections: one thread that sleeps in poll(2) until a client, or the request to stop, needs it.
//!
//! Everything that a client can use up is bounded: the number of connections (a further one replaces the
//! oldest), the length of a request, and the time until it is complete and its answer is read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown,
};

use crate::address::Listener;
use crate::error::{Error, Kind};
use crate::request::{HEAD_MAX, Refusal, Request, parse};
use crate::response::Response;

/// The most connections at a time.
const CONNECTIONS: usize = 32;
/// How long a request may take to arrive, and its answer to be read.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the client may take to close a connection that was answered.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long no connection is accepted after that failed, for example without a free file descriptor.
const PAUSE: Duration = Duration::from_secs(1);

/// What is served.
pub(crate) trait Service {
    /// Answers a request.
    fn answer(&mut self, request: &Request) -> Response;
    /// When [`Self::wake`] is to be called, if there is no request before.
    fn wakes_at(&self) -> Instant;
    /// Does what cannot wait for the next request.
    fn wake(&mut self);
    /// There is nothing to do for now.
    fn rest(&mut self);
}

/// Serves until `stop` can be read.
///
/// # Errors
/// `Kind::System`: the kernel does not wait for events.
pub fn serve(
    listener: &Listener,
    stop: impl AsFd,
    collector: &mut crate::Collector,
) -> Result<(), Error> {
    run(listener, stop.as_fd(), collector)
}

fn run(
    listener: &Listener,
    stop: BorrowedFd<'_>,
    service: &mut impl Service,
) -> Result<(), Error> {
    let mut connections: Vec<Connection> = Vec::new();
    let mut paused_until: Option<Instant> = None;
    let mut has_worked = true;
    loop {
        if connections.is_empty() && std::mem::take(&mut has_worked) {
            service.rest();
        }
        paused_until = paused_until.filter(|until| *until > Instant::now());
        let is_open = paused_until.is_none();
        let ends = connections.iter().map(|connection| connection.until);
        let until = ends.chain(paused_until).fold(service.wakes_at(), Instant::min);
        let Some(ready) = wait(listener, stop, &connections, is_open, until)? else {
            continue;
        };
        if ready.has_stopped {
            return Ok(());
        }
        let mut is_ready = ready.connections.into_iter();
        let now = Instant::now();
        connections.retain_mut(|connection| {
            let is_ready = is_ready.next().unwrap_or(false);
            (!is_ready || connection.advance(service)) && connection.until > now
        });
        if ready.has_client {
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    make_room(&mut connections);
                    connections.push(Connection::new(socket));
                    has_worked = true;
                }
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => paused_until = Some(now + PAUSE),
            }
        }
        if service.wakes_at() <= now {
            service.wake();
            has_worked = true;
        }
    }
}

/// Closes the connection that has waited longest, if there are too many: clients that send nothing do not keep
/// others out, whose requests arrive at once.
fn make_room(connections: &mut Vec<Connection>) {
    let oldest =
        connections.iter().enumerate().min_by_key(|(_, connection)| connection.until);
    if let Some((oldest, _)) = oldest.filter(|_| connections.len() >= CONNECTIONS) {
        connections.remove(oldest);
    }
}

/// What poll(2) reported.
struct Ready {
    has_stopped: bool,
    has_client: bool,
    connections: Vec<bool>,
}

/// Waits for an event, or until then; `None`: a signal came.
fn wait(
    listener: &Listener,
    stop: BorrowedFd<'_>,
    connections: &[Connection],
    is_open: bool,
    until: Instant,
) -> Result<Option<Ready>, Error> {
    let mut all = Vec::with_capacity(connections.len() + 2);
    all.push(PollFd::new(&stop, PollFlags::IN));
    all.extend(connections.iter().map(Connection::awaited));
    if is_open {
        all.push(PollFd::new(listener, PollFlags::IN));
    }
    // Rounded up, so that the time has come.
    let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    match poll(&mut all, Some(&timeout)) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(None),
        Err(errno) => {
            let error = Error::new(Kind::System, "failed to wait for connections");
            return Err(error.caused_by(std::io::Error::from(errno)));
        }
    }
    let mut ready = all.iter().map(|one| !one.revents().is_empty());
    let has_stopped = ready.next().unwrap_or(false);
    let of_connections = ready.by_ref().take(connections.len()).collect();
    let has_client = ready.next().unwrap_or(false);
    Ok(Some(Ready { has_stopped, has_client, connections: of_connections }))
}

/// A connection.
struct Connection {
    socket: OwnedFd,
    state: State,
    /// When it is closed, at the latest.
    until: Instant,
}

enum State {
    /// The request so far.
    Reading(Vec<u8>),
    /// The answer, and how much of it was sent.
    Writing(Vec<u8>, usize),
    /// The answer was sent; if the socket were closed while there is unread data, the client might lose it.
    Closing,
}

impl Connection {
    fn new(socket: OwnedFd) -> Self {
        let until = Instant::now() + PATIENCE;
        Self { socket, state: State::Reading(Vec::new()), until }
    }

    fn awaited(&self) -> PollFd<'_> {
        let events = match self.state {
            State::Reading(_) | State::Closing => PollFlags::IN,
            State::Writing(..) => PollFlags::OUT,
        };
        PollFd::new(&self.socket, events)
    }

    /// Does what is possible without waiting; whether the connection stays open.
    fn advance(&mut self, service: &mut impl Service) -> bool {
        match &mut self.state {
            State::Reading(request) => {
                let Some(parsed) = receive(&self.socket, request) else { return false };
                let Some(parsed) = parsed else { return true };
                let answer = match parsed {
                    Ok(request) => service.answer(&request).into_bytes(request.is_head),
                    Err(refusal) => Response::refused(refusal).into_bytes(false),
                };
                self.state = State::Writing(answer, 0);
                self.until = Instant::now() + PATIENCE;
                self.advance(service)
            }
            State::Writing(answer, sent) => {
                match send(&self.socket, &answer[*sent..], SendFlags::NOSIGNAL) {
                    Ok(more) => *sent += more,
                    Err(Errno::AGAIN | Errno::INTR) => return true,
                    Err(_) => return false,
                }
                if *sent < answer.len() {
                    return true;
                }
                self.state = State::Closing;
                self.until = Instant::now() + FAREWELL;
                shutdown(&self.socket, Shutdown::Write).is_ok()
            }
            State::Closing => {
                let mut ignored = [0; HEAD_MAX];
                match recv(&self.socket, &mut ignored, RecvFlags::empty()) {
                    Ok((0, _)) => false,
                    Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
                    Err(_) => false,
                }
            }
        }
    }
}

/// Reads a part of a request: `None`, the connection has ended; `Some(None)`, more is needed.
fn receive(
    socket: &OwnedFd,
    request: &mut Vec<u8>,
) -> Option<Option<Result<Request, Refusal>>> {
    let mut part = [0; HEAD_MAX];
    match recv(socket, &mut part, RecvFlags::empty()) {
        Ok((0, _)) => None,
        Ok((length, _)) => {
            request.extend_from_slice(&part[..length]);
            Some(parse(request))
        }
        Err(Errno::AGAIN | Errno::INTR) => Some(None),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::address::Address;

    /// Counts requests, and answers with a long text.
    struct Long(usize);

    const LONG: usize = 3 << 20;

    impl Service for Long {
        fn answer(&mut self, request: &Request) -> Response {
            self.0 += 1;
            match request.path.as_str() {
                "/metrics" => Response::metrics("x".repeat(LONG)),
                _ => Response::not_found(),
            }
        }

        fn wakes_at(&self) -> Instant {
            Instant::now() + Duration::from_secs(600)
        }

        fn wake(&mut self) {}

        fn rest(&mut self) {}
    }

    /// Runs `client` with the address of a server; returns the number of requests.
    fn served(client: impl FnOnce(SocketAddr)) -> usize {
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let Address::Tcp(address) = *listener.address() else { panic!() };
        let (stop, stopped) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || {
            let mut service = Long(0);
            run(&listener, stopped.as_fd(), &mut service).unwrap();
            service.0
        });
        client(address);
        drop(stop);
        server.join().unwrap()
    }

    fn answer(mut stream: TcpStream, request: &str) -> String {
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    const GET: &str = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

    /// Check that requests are answered while other clients have sent nothing, a part of a request, or do not
    /// read their answer; also if there are more of these than connections.
    #[test]
    fn slow_clients() {
        let requests = served(|address| {
            let connect = || TcpStream::connect(address).unwrap();
            let silent: Vec<TcpStream> = (0..8).map(|_| connect()).collect();
            let mut partial = connect();
            partial.write_all(&GET.as_bytes()[..20]).unwrap();
            let mut unread = connect();
            unread.write_all(GET.as_bytes()).unwrap();
            for _ in 0..3 {
                assert!(answer(connect(), GET).ends_with("xxx"));
            }
            partial.write_all(&GET.as_bytes()[20..]).unwrap();
            assert!(answer(partial, "").len() > LONG);
            let more: Vec<TcpStream> = (0..CONNECTIONS * 4).map(|_| connect()).collect();
            assert!(answer(connect(), GET).len() > LONG);
            drop((silent, more, unread));
        });
        assert_eq!(requests, 6);
    }

    /// Check that the client has the whole answer to a request that is refused before it was read.
    #[test]
    fn refused() {
        let requests = served(|address| {
            let connect = || TcpStream::connect(address).unwrap();
            let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_MAX * 8));
            for (request, status) in [
                (long.as_str(), "431 "),
                (
                    "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
                    "400 ",
                ),
                ("DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405 "),
                ("\x16\x03\x01\x02", "400 "),
            ] {
                let text = answer(connect(), request);
                assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
            }
            let mut closed = connect();
            closed.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(closed.read(&mut [0; 9]).unwrap(), 0);
        });
        assert_eq!(requests, 0);
    }
}
