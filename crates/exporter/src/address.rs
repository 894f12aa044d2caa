//! Where the exporter listens: an IP address with a port, or a Unix socket. Names are not looked up, so that it
//! never listens on an address that was not given.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Error, Kind};

/// Before the path of a Unix socket.
const UNIX: &str = "unix:";

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port; port 0 is any free one.
    Tcp(SocketAddr),
    /// The path of a Unix socket, which is created.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix(UNIX) {
            let path = PathBuf::from(path);
            return match path.is_absolute() {
                true => Ok(Self::Unix(path)),
                false => Err(Error::new(
                    Kind::Address,
                    "expected an absolute path, as unix:/run/noisefloor.sock",
                )),
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            let hint = match text.rsplit_once(':') {
                Some(("", _)) => "; all addresses of this machine are 0.0.0.0 and [::]",
                Some(("localhost", _)) => "; the address of localhost is 127.0.0.1",
                _ => "",
            };
            let text = format!(
                "expected an IP address and a port (127.0.0.1:9924, [::1]:9924) or \
                 unix:/PATH{hint}"
            );
            Error::new(Kind::Address, text)
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// A socket that listens. That of a path is removed with it.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: Address,
    /// The device and the inode of a Unix socket's file.
    file: Option<(u64, u64)>,
}

impl Listener {
    /// Listens on an address. A Unix socket on which no process listens is replaced.
    ///
    /// # Errors
    /// `Kind::Listen`: it is in use, or not permitted.
    pub fn bind(address: &Address) -> Result<Self, Error> {
        let failed = |error: io::Error| of_bind(address, error);
        let listener = match address {
            Address::Tcp(wanted) => {
                let socket = TcpListener::bind(wanted).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                let address = Address::Tcp(socket.local_addr().map_err(failed)?);
                Self { socket: socket.into(), address, file: None }
            }
            Address::Unix(path) => {
                remove_unused(path);
                let socket = UnixListener::bind(path).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                let (address, file) = (address.clone(), identity(path));
                Self { socket: socket.into(), address, file }
            }
        };
        Ok(listener)
    }

    /// The address, with the port that was chosen.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another process may have replaced it.
        if let Address::Unix(path) = &self.address {
            if self.file.is_some() && identity(path) == self.file {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let file = std::fs::symlink_metadata(path).ok()?;
    file.file_type().is_socket().then(|| (file.dev(), file.ino()))
}

/// Removes a socket that a killed process has left.
fn remove_unused(path: &Path) {
    let refused = UnixStream::connect(path)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if refused && identity(path).is_some() {
        let _ = std::fs::remove_file(path);
    }
}

fn of_bind(address: &Address, error: io::Error) -> Error {
    let hint = match (error.kind(), address) {
        (io::ErrorKind::AddrInUse, Address::Tcp(_)) => {
            "; hint: another program listens there: choose another port, or end it (ss -ltnp)"
        }
        (io::ErrorKind::AddrInUse, Address::Unix(_)) => {
            "; hint: the file is in use, or is no socket: choose another path, or remove it"
        }
        (io::ErrorKind::PermissionDenied, Address::Tcp(address))
            if address.port() < 1024 =>
        {
            "; hint: ports below 1024 need root or CAP_NET_BIND_SERVICE"
        }
        (io::ErrorKind::AddrNotAvailable, _) => {
            "; hint: no network interface of this machine has that address (ip address)"
        }
        _ => "",
    };
    let text = format!("failed to listen on {address}: {error}{hint}");
    Error::new(Kind::Listen, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<Address>().unwrap_err().to_string()
    }

    /// Check addresses with ports and paths, and that names and addresses without one of both are refused
    /// with what is expected.
    #[test]
    fn addresses() {
        for text in ["127.0.0.1:9924", "[::1]:9924", "0.0.0.0:0", "unix:/run/x y"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in
            ["", "9924", "127.0.0.1", "[::1]", "127.0.0.1:99999", "node:9924", "::1"]
        {
            assert!(message(text).starts_with("expected an IP address"), "{text}");
        }
        assert!(message(":9924").ends_with("0.0.0.0 and [::]"));
        assert!(message("localhost:1").ends_with("127.0.0.1"));
        assert!(message("unix:x").starts_with("expected an absolute path"));
    }

    /// Check that a port and a path in use are refused with the remedy, and that a socket that was left
    /// behind is replaced, but no other file.
    #[test]
    fn in_use() {
        let any: Address = "127.0.0.1:0".parse().unwrap();
        let first = Listener::bind(&any).unwrap();
        let why = Listener::bind(first.address()).unwrap_err();
        assert_eq!(why.kind(), Kind::Listen);
        assert!(why.to_string().contains("choose another port"), "{why}");

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let address = Address::Unix(path.clone());
        drop(UnixListener::bind(&path).unwrap());
        let bound = Listener::bind(&address).unwrap();
        let why = Listener::bind(&address).unwrap_err();
        assert!(why.to_string().contains("choose another path"), "{why}");
        drop(bound);
        assert!(!path.exists());
        std::fs::write(&path, "text").unwrap();
        assert!(Listener::bind(&address).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
    }
}
