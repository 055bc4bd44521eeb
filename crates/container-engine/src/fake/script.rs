//! What tests tell the model to do.

use crate::{BuildSpec, Exec, Stream};
use bytes::Bytes;
use std::time::Duration;

/// How containers of an image behave. By itself a container starts, is well at once, and runs until
/// it is stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Behaviour {
    pub life: Life,
    /// What its health command says, where its spec has one.
    pub health: Wellness,
    /// What it writes when it starts.
    pub output: Vec<(Stream, String)>,
    /// Thousandths of a processor that it would use if it might.
    pub cpu_millis: u32,
    /// Bytes of memory that it uses.
    pub memory: u64,
    /// Whether it has to be killed where it is asked to end.
    pub ignores_stop: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            life: Life::Runs,
            health: Wellness::Healthy,
            output: Vec::new(),
            cpu_millis: 100,
            memory: 32 << 20,
            ignores_stop: false,
        }
    }
}

/// How long a container runs. A look is a call that shows the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    Runs,
    /// It ends as soon as it starts, with this code.
    Exits(i64),
    /// It ends with this code after so many looks.
    ExitsAfterLooks(u32, i64),
    /// It ends with this code after this long.
    ExitsAfter(Duration, i64),
    /// It cannot be started, for this reason.
    CannotStart(String),
}

/// What a health command says. A look is a call that shows the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wellness {
    Healthy,
    /// Well after so many looks.
    HealthyAfterLooks(u32),
    /// Well after this long.
    HealthyAfter(Duration),
    /// It never gets beyond starting.
    Starting,
    /// Not well, from the start.
    Unhealthy,
}

/// A program that was started in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecCall {
    /// The name of the container.
    pub container: String,
    /// The reference that the container's image has in its spec.
    pub image: String,
    pub exec: Exec,
}

/// What a program does, step by step.
pub type Script = Vec<Step>;

/// One thing that a program does. After the last one it ends with 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes to standard output.
    Out(Bytes),
    /// Writes to standard error.
    Err(Bytes),
    /// Reads to the end of its input.
    Read,
    /// Writes to standard output what it reads, to the end of its input.
    Echo,
    /// Goes on until its container ends, or nobody listens any more.
    Wait,
    Exit(i64),
    /// The connection to it is lost.
    CutOff,
}

/// A program that ran, or runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub call: ExecCall,
    /// What it has read so far.
    pub input: Vec<u8>,
    /// How it ended; `None`: it still runs.
    pub ending: Option<Ending>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exit(i64),
    /// With its container, or with the engine.
    CutOff,
    /// Because nobody listened any more.
    Dropped,
}

/// What an engine is asked to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildCall {
    /// What is to be built.
    pub spec: BuildSpec,
    pub context: Vec<u8>,
}

/// What comes of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildScript {
    pub lines: Vec<String>,
    /// Why it fails; `None`: it does not.
    pub failure: Option<String>,
}
