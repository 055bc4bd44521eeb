//! `svc completions`: prints the completion script of a shell.

use crate::{
    args::Shell,
    printer::{Form, Printer},
};
use std::{fmt::Write, process::ExitCode};

/// Prints the completion script for `program`, the root command with all subcommands. The arguments
/// of `call` complete to the names of functions.
pub fn completions(shell: Shell, program: &mut clap::Command) -> ExitCode {
    let printer = Printer::new(Form::Text, false);
    match printer.text(&script(shell, program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer.failure(&failure);
            failure.exit_code()
        }
    }
}

fn script(shell: Shell, program: &mut clap::Command) -> String {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, program, &name, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Fish {
        // The generator for fish omits the values of arguments.
        let condition = format!("__fish_{name}_using_subcommand call");
        let functions: Vec<_> = contract::all().map(|spec| spec.name).collect();
        let functions = functions.join(" ");
        let _ = writeln!(script, "complete -c {name} -n \"{condition}\" -f -a \"{functions}\"");
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Subcommand;

    #[test]
    fn every_shell_completes_commands_and_functions() {
        let mut program = crate::Command::augment_subcommands(clap::Command::new("svc"));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, &mut program);
            for word in ["rollback", "svc_createRelease", "google-play"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
