//! `svc man`: writes manual pages.

use crate::{
    failure::Failure,
    printer::{Form, Printer},
};
use std::{fs, path::Path, process::ExitCode};

/// Writes a page for `program`, the root command, and for each of its subcommands.
pub fn manual(folder: &Path, program: clap::Command) -> ExitCode {
    let written = fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program, folder))
        .map_err(|error| Failure::file(folder, &error));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Printer::new(Form::Text, false).failure(&failure);
            failure.exit_code()
        }
    }
}
