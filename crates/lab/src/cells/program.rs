//! A program in a guest of its own: its output, and how it ends.
//!
//! It runs alone with the agent. Only tests use it; nothing is cached.

use std::fs;

use agent::{Answer, Output, Task, order};
use kernels::Fetch;
use recording::Mode;

use crate::cells::cell::Ready;
use crate::cells::lab::Lab;
use crate::cells::prepare::unproven;
use crate::cells::run::Run;
use crate::error::{Error, failed};
use crate::guest::boot::Ended;
use crate::guest::command_line::ANSWER;
use crate::guest::request::Request;

/// The guest's memory: tests are large, and some copy the program that they call.
const MEMORY_MIB: u32 = 512;

/// A program, and the guest that it runs in.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    /// The program.
    pub bytes: Vec<u8>,
    /// Other files of the guest: programs and libraries, by their paths without the first slash.
    pub others: Vec<(String, Vec<u8>)>,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// Whether guest time is the number of instructions, or real time under emulation.
    pub mode: Mode,
    /// The number of the guest's CPUs.
    pub cpus: u32,
    /// The value of QEMU's `-cpu`, if not the default.
    pub cpu: Option<&'a str>,
    /// Boot parameters.
    pub params: &'a str,
}

impl Program<'_> {
    fn request(&self) -> Request {
        let arguments = self.arguments.iter().map(|&word| word.to_owned()).collect();
        let mut request = Request::new(Task::Program(arguments));
        self.params.clone_into(&mut request.params);
        request.machine.cpus = self.cpus;
        request.machine.memory_mib = MEMORY_MIB;
        if let Some(cpu) = self.cpu {
            cpu.clone_into(&mut request.machine.cpu);
        }
        Request { mode: self.mode, ..request }
    }

    /// The files, by their names in the guest.
    fn files(self) -> Vec<(String, Vec<u8>)> {
        let program = (order::PROGRAM.trim_start_matches('/').to_owned(), self.bytes);
        std::iter::once(program).chain(self.others).collect()
    }
}

impl Lab {
    /// Runs a program in a guest with that kernel.
    ///
    /// # Errors
    /// Those of finding the kernel and of the cache; `Kind::Guest` if the guest sent no answer.
    pub fn run_program(
        &self,
        kernel: &str,
        program: Program<'_>,
        run: &Run<'_>,
    ) -> Result<Output, Error> {
        let request = program.request();
        let engine = unproven(request.mode);
        let mut fetch = Fetch { fresh: false, stop: run.stop, say: &mut |_| {} };
        let kernel = self.kernels.find(kernel, &mut fetch)?;
        let ready = Ready::new(request, None, &kernel, engine, self)?;
        let ready = ready.uncounted().with_files(program.files());
        let place = self.cache.workplace()?;
        match ready.boot(place.path(), "", self, run)? {
            Ended::Off(_) => {}
            Ended::Lost(why) => return Err(Error::Guest(why)),
            Ended::Stopped => return Err(Error::Interrupted),
        }
        let file = place.path().join(ANSWER);
        let bytes = fs::read(&file).map_err(failed(&file))?;
        match Answer::from_bytes(&bytes) {
            Ok(Answer::Output(output)) => Ok(output),
            _ => Err(Error::Guest("the agent did not run the program".to_owned())),
        }
    }
}
