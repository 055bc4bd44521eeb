//! The failpoint: a function that panics on purpose, in its handler or in an owner.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::people::projects::{self, Projects},
};
use contract::{
    Fault, Serves,
    authentication::Empty,
    failpoints::{Failpoint, PanicPoint},
};

impl Serves<Failpoint> for Platform {
    async fn serve(&self, cx: &Call, p: Failpoint) -> Result<Empty, Fault> {
        match p.place {
            #[allow(clippy::panic, reason = "it is what this function is for")]
            PanicPoint::Serve => panic!("{}", p.message),
            PanicPoint::Owner => {
                let command = projects::Command::Panic(p.message.to_string());
                cx.to::<Projects>(p.project_id).change(command, |_| Ok(Empty {})).await
            }
        }
    }
}
