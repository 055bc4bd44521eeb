//! The pages of the documentation that list all commands and all settings, in Markdown.

use clap::{Arg, Command};
use std::fmt::Write;

/// The page of all commands of `program`, the root command, which must be built. `apart` names the commands whose options have
/// a page of their own, with its address.
pub fn commands(program: &Command, apart: &[(&str, &str)]) -> String {
    let mut page = String::from(
        "# Commands\n\nThis page is generated from the declarations. Do not edit it. `svc COMMAND --help` says the same.\n",
    );
    let global: Vec<_> = shown(program).filter(|option| option.is_global_set()).collect();
    page.push_str("\n## Options of every client\n");
    options(&mut page, &global);
    for command in listed(program) {
        section(&mut page, command, "svc", apart);
    }
    page
}

/// The page of the options of one command, by their groups, as settings: the environment variable first.
pub fn settings(command: &Command) -> String {
    let mut page = String::from(
        "# Settings\n\nThis page is generated from the declarations. Do not edit it. Each setting of `svc serve` is an\nenvironment variable and a flag; the flag wins.\n",
    );
    let mut groups: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for option in shown(command) {
        let heading = option.get_help_heading().unwrap_or("Others");
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, options)) => options.push(option),
            None => groups.push((heading, vec![option])),
        }
    }
    for (heading, options) in groups {
        let _ = write!(
            page,
            "\n## {heading}\n\n| variable | flag | default | meaning |\n|---|---|---|---|\n"
        );
        for option in options {
            let variable = option.get_env().map(|name| format!("`{}`", name.display()));
            let _ = writeln!(
                page,
                "| {} | `--{}` | {} | {} |",
                variable.unwrap_or_default(),
                option.get_long().unwrap_or_default(),
                default(option),
                meaning(option)
            );
        }
    }
    page
}

fn section(page: &mut String, command: &Command, above: &str, apart: &[(&str, &str)]) {
    let name = format!("{above} {}", command.get_name());
    let depth = "#".repeat(name.split(' ').count());
    let told = command.get_long_about().or_else(|| command.get_about());
    let told = told.map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n{depth} {name}\n\n{}\n", sentence(&told));
    let inner: Vec<_> = listed(command).collect();
    if inner.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").trim();
        let _ = write!(page, "\n```sh\n{usage}\n```\n");
    }
    if let Some((_, address)) = apart.iter().find(|(own, _)| *own == name) {
        let _ = write!(page, "\n[All its options]({address})\n");
        return;
    }
    let own: Vec<_> = shown(command).filter(|option| !option.is_global_set()).collect();
    options(page, &own);
    for command in inner {
        section(page, command, &name, apart);
    }
}

fn options(page: &mut String, options: &[&Arg]) {
    if options.is_empty() {
        return;
    }
    page.push_str("\n| option | default | meaning |\n|---|---|---|\n");
    for option in options {
        let mut told = meaning(option);
        if let Some(variable) = option.get_env()
            && !told.contains("[env")
        {
            let _ = write!(told, " [env: {}]", variable.display());
        }
        let _ = writeln!(page, "| {} | {} | {told} |", label(option), default(option));
    }
}

/// The subcommands that people see.
fn listed(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

/// The arguments that people see, without those of every command.
fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let of_all = |option: &&Arg| matches!(option.get_id().as_str(), "help" | "version");
    command.get_arguments().filter(move |option| !option.is_hide_set() && !of_all(option))
}

/// `--flag VALUE`, or the name of an argument without a flag.
fn label(option: &Arg) -> String {
    let names = option.get_value_names().unwrap_or_default();
    let names = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match option.get_long() {
        Some(long) if option.get_action().takes_values() => format!("`--{long} {names}`"),
        Some(long) => format!("`--{long}`"),
        None => format!("`{names}`"),
    }
}

fn default(option: &Arg) -> String {
    let values = option.get_default_values().iter();
    let values: Vec<_> = values.map(|value| value.display().to_string()).collect();
    let is_flag = !option.get_action().takes_values();
    if values.is_empty() || is_flag { String::new() } else { format!("`{}`", values.join(",")) }
}

/// What an option does, and the values that it takes if they are few.
fn meaning(option: &Arg) -> String {
    let told = option.get_long_help().or_else(|| option.get_help());
    let mut told = sentence(&told.map(ToString::to_string).unwrap_or_default());
    let values = option.get_possible_values();
    let values: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
    // The names of all functions are in the reference.
    if option.get_action().takes_values() && (1..=12).contains(&values.len()) {
        let _ = write!(told, " One of {}.", values.join(", "));
    }
    told.replace('|', "\\|").replace('\n', " ")
}

/// Text that ends with a full stop: the parser of the command line takes it away.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let ends = text.is_empty() || text.ends_with(['.', ':', '?', '!']);
    if ends { text.to_owned() } else { format!("{text}.") }
}
