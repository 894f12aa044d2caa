//! Whether a service is ready, and what it lacks if it is not.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use recording::{Ended, Ready};

/// Whether a service is ready.
pub fn is_ready(ready: &Ready) -> bool {
    match ready {
        Ready::Port(port) => TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_ok(),
        Ready::Socket(path) => UnixStream::connect(path).is_ok(),
        Ready::File(path) => Path::new(path).exists(),
        Ready::Text { file, text } => {
            fs::read_to_string(file).is_ok_and(|found| found.trim() == text)
        }
    }
}

/// What a service that is not ready lacks, as a clause.
pub fn lack(ready: &Ready) -> String {
    match ready {
        Ready::Port(port) => format!("TCP port {port} accepts no connection"),
        Ready::Socket(path) => format!("the socket {path} accepts no connection"),
        Ready::File(path) => format!("there is no file {path}"),
        Ready::Text { file, text } => match fs::read_to_string(file) {
            Ok(found) => format!("{file} has '{}', and not '{text}'", found.trim()),
            Err(why) => format!("failed to read {file}: {why}"),
        },
    }
}

/// How a process ended, as a predicate.
pub fn end_text(ended: Ended) -> String {
    match ended {
        Ended::Exited(code) => format!("exited with code {code}"),
        Ended::Killed(signal) => format!("was killed by signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a service with a text is ready once the file has it, and that the reason before that has
    /// both texts.
    #[test]
    fn texts_of_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let ready = Ready::Text { file: path.clone(), text: "enabled".to_owned() };
        fs::write(&path, "disabled\n").unwrap();
        assert!(!is_ready(&ready));
        assert_eq!(lack(&ready), format!("{path} has 'disabled', and not 'enabled'"));
        fs::write(&path, "enabled\n").unwrap();
        assert!(is_ready(&ready));
        fs::remove_file(&path).unwrap();
        assert!(!is_ready(&ready));
        assert!(lack(&ready).starts_with("failed to read"), "{}", lack(&ready));
    }
}
