//! Services of an order: programs that run beside the measurement until the guest powers off, such as a
//! scheduler of `sched_ext`.
//!
//! Each is started once the one before it is ready. Its output goes to a file in the guest's memory: a pipe
//! would have to be read while it runs, and the agent would wake up for that.
//!
//! Cannot see: a service that forks and continues in the background, after it was ready.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use agent::Order;
use measure::readiness::{end_text, is_ready, lack};
use recording::ServiceSpec;

use crate::error::Error;
use crate::guest::environment;

/// The longest time that a service may take to become ready.
const LIMIT: Duration = Duration::from_secs(60);
/// The interval at which a service is checked.
const LOOK: Duration = Duration::from_millis(10);
/// The directory of the services, and the folder of their output.
const DIRECTORY: &str = "/";
const OUTPUT: &str = "/tmp";
/// The longest end of the output in a message, in bytes.
const LINE_MAX: usize = 300;

/// Services that run.
pub(crate) struct Services(Vec<Service>);

struct Service {
    name: String,
    child: Child,
    /// The file of its output.
    output: String,
}

/// Prepares the guest for programs if there are any, and starts the services.
///
/// # Errors
/// Which one was not ready, and why, with the last line of its output.
pub(crate) fn start(order: &Order) -> Result<Services, Error> {
    let mut services = Services(Vec::new());
    if !order.services.is_empty() {
        environment::prepare(DIRECTORY)?;
    }
    for (place, spec) in order.services.iter().enumerate() {
        let output = format!("{OUTPUT}/service-{place}");
        services.0.push(Service::start(spec, &order.environment, output)?);
    }
    Ok(services)
}

impl Services {
    /// Refuses services that have ended, except those that succeeded.
    ///
    /// # Errors
    /// Which one has ended, and how, with the last line of its output.
    pub(crate) fn refuse_ended(&mut self) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|service| match service.failure()? {
            Some(how) => {
                Err(service.error(format!("it {how} before the measurement ended")))
            }
            None => Ok(()),
        })
    }
}

impl Service {
    fn start(
        spec: &ServiceSpec,
        environment: &[(String, String)],
        output: String,
    ) -> Result<Self, Error> {
        let name = spec.name.clone();
        let failed = |why: io::Error| {
            Error::new(format!("the service '{name}' cannot be started"), why)
        };
        let file = File::create(&output).map_err(failed)?;
        let mut command = Command::new(spec.command.program().unwrap_or_default());
        command.args(spec.command.arguments()).env_clear();
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(failed)?);
        let child = command.stdout(file).spawn().map_err(failed)?;
        let mut service = Self { name: spec.name.clone(), child, output };
        service.wait(spec)?;
        Ok(service)
    }

    /// Waits until it is ready.
    fn wait(&mut self, spec: &ServiceSpec) -> Result<(), Error> {
        let Some(ready) = &spec.ready else { return Ok(()) };
        let until = Instant::now() + LIMIT;
        while !is_ready(ready) {
            if let Some(how) = self.failure()? {
                return Err(self.error(format!("it {how} before it was ready")));
            }
            if Instant::now() >= until {
                let (limit, lack) = (LIMIT.as_secs(), lack(ready));
                return Err(self.error(format!("it was not ready in {limit} s: {lack}")));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// How it failed, if it has.
    fn failure(&mut self) -> Result<Option<String>, Error> {
        let ended = self.child.try_wait();
        let ended =
            ended.map_err(|why| Error::new("failed to wait for a service", why))?;
        let failed = ended.filter(|status| !status.success());
        Ok(failed.map(|status| end_text(measure::ended(status.into_raw()))))
    }

    fn error(&self, what: String) -> Error {
        let text = fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        let line: Option<String> = line.map(|line| line.chars().take(LINE_MAX).collect());
        let what = match line {
            Some(line) => format!("{what}; the last line of its output: {line}"),
            None => format!("{what}; it wrote nothing"),
        };
        Error::new(format!("the service '{}' failed", self.name), what)
    }
}

#[cfg(test)]
mod tests {
    use recording::{Ready, Words};

    use super::*;

    fn started(script: &str, ready: Option<Ready>) -> Result<Service, String> {
        let spec = ServiceSpec {
            name: "s".to_owned(),
            command: Words::new(["sh".into(), "-c".into(), script.into()]),
            ready,
        };
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let folder = std::env::temp_dir();
        let id = format!("noisefloor-service-{}-{script:.8}", std::process::id());
        let output = folder.join(id.replace([' ', '/'], "")).to_str().unwrap().to_owned();
        let started = Service::start(&spec, &environment, output.clone());
        let _ = fs::remove_file(output);
        started.map_err(|why| units::chain(&why))
    }

    /// Check that a service that ends with an error before it is ready is an error with its last line, and that
    /// one that succeeds, or needs not to be ready, is none.
    #[test]
    fn failures_have_the_last_line() {
        let never = || Some(Ready::File("/no/such/file".to_owned()));
        let why = started("echo first; echo 'no BTF' >&2; exit 3", never()).err();
        let expected = "the service 's' failed: it exited with code 3 before it was ready; the last \
                        line of its output: no BTF";
        assert_eq!(why.as_deref(), Some(expected));
        let why = started("kill -9 $$", never()).err().unwrap();
        assert!(
            why.ends_with("killed by signal 9 before it was ready; it wrote nothing"),
            "{why}"
        );
        let ready = Some(Ready::File("/".to_owned()));
        let mut service = started("exec sleep 600", ready).unwrap();
        assert_eq!(service.failure().unwrap(), None);
        service.child.kill().unwrap();
        service.child.wait().unwrap();
        assert_eq!(service.failure().unwrap().as_deref(), Some("was killed by signal 9"));
    }
}
