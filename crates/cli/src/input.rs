//! Secrets on standard input, where neither the history of the shell nor the list of processes has
//! them.

use crate::failure::Failure;
use std::io;

/// The first line of standard input, without its end.
///
/// # Errors
///
/// A usage failure that names `what`, if the line cannot be read.
pub fn line(what: &str) -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| {
        Failure::usage(
            format!("standard input: {error}"),
            format!("send the {what} on one line, in UTF-8"),
        )
    })?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
