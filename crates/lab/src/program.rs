//! A program in a guest of its own: what it writes there, and how it ends.
//!
//! It is a static one, and alone there with the agent. Only tests use it; nothing is kept.

use std::fs;

use agent::{Answer, Output, Task};

use crate::boot::Ended;
use crate::cell::Ready;
use crate::command_line::{ANSWER, Engine};
use crate::crew::Run;
use crate::error::{Error, Kind};
use crate::lab::Lab;
use crate::places::failed;
use crate::plan::Plan;

impl Lab {
    /// Runs a program in an exact guest of one CPU, with that kernel.
    ///
    /// # Errors
    /// Of finding the kernel and of the cache; `Kind::Guest` where the guest gave no answer.
    pub fn run_program(
        &self,
        kernel: &str,
        program: Vec<u8>,
        arguments: &[&str],
        run: &Run<'_>,
    ) -> Result<Output, Error> {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        let plan = Plan::of_task(kernel, Task::Program(arguments));
        let kernel = self.kernels().find(kernel, false, &mut |_| {})?;
        let ready = Ready::new(&plan, &kernel, Engine::Counted, self)?;
        let ready = ready.uncounted().with_program(program);
        let place = self.cache.workplace()?;
        match ready.boot(place.path(), "", self, run)? {
            Ended::Off => {}
            Ended::Lost(why) => return Err(Error::new(Kind::Guest, why)),
            Ended::Stopped => return Err(Error::new(Kind::Interrupted, "ended early")),
        }
        let file = place.path().join(ANSWER);
        let bytes = fs::read(&file).map_err(|error| failed(&file, &error))?;
        match Answer::from_bytes(&bytes) {
            Ok(Answer::Output(output)) => Ok(output),
            _ => Err(Error::new(Kind::Guest, "the agent did not run the program")),
        }
    }
}
