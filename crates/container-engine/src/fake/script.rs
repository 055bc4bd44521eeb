//! What tests tell the model to do.

use crate::{BuildSpec, Exec, Stream};
use bytes::Bytes;
use std::time::Duration;

/// How containers of an image behave. By default a container starts, is healthy at once, and runs
/// until it is stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Behaviour {
    pub life: Life,
    /// The result of the health command, if the spec has one.
    pub health: Wellness,
    /// Lines that the container writes when it starts.
    pub output: Vec<(Stream, String)>,
    /// Thousandths of a processor that the container uses, up to its limit.
    pub cpu_millis: u32,
    /// Bytes of memory that the container uses, up to its limit.
    pub memory: u64,
    /// Whether a stop has to kill the container.
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
    /// The container ends as soon as it starts, with this code.
    Exits(i64),
    /// The container ends with this code after so many looks.
    ExitsAfterLooks(u32, i64),
    /// The container ends with this code after this long.
    ExitsAfter(Duration, i64),
    /// The container cannot be started, for this reason.
    CannotStart(String),
}

/// The result of a health command. A look is a call that shows the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wellness {
    Healthy,
    /// Healthy after so many looks.
    HealthyAfterLooks(u32),
    /// Healthy after this long.
    HealthyAfter(Duration),
    /// Starting forever.
    Starting,
    /// Unhealthy from the start.
    Unhealthy,
}

/// A program that was started in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecCall {
    /// The container's name.
    pub container: String,
    /// The reference of the image in the container's spec.
    pub image: String,
    pub exec: Exec,
}

pub type Script = Vec<ProgramStep>;

/// A step of a program. After the last step the program ends with 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStep {
    /// Writes to standard output.
    Out(Bytes),
    /// Writes to standard error.
    Err(Bytes),
    /// Reads its input to the end.
    Read,
    /// Copies its input to standard output, to the end.
    Echo,
    /// Waits until its container ends, or its output is dropped.
    Wait,
    Exit(i64),
    /// The connection is lost.
    CutOff,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub call: ExecCall,
    /// The input that was read so far.
    pub input: Vec<u8>,
    /// `None`: the program still runs.
    pub ending: Option<Ending>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exit(i64),
    /// The container or the engine's connection ended.
    CutOff,
    /// The output was dropped.
    Dropped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildCall {
    pub spec: BuildSpec,
    pub context: Vec<u8>,
}

/// The result of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildScript {
    pub lines: Vec<String>,
    /// `None`: the build succeeds.
    pub failure: Option<String>,
}
