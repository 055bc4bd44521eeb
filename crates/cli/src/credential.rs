//! `svc credential`: what signs an app, and what opens its stores.

use crate::{
    Context,
    args::{CredentialCommand as Command, NewCredential},
    failure::Failure,
    input, lists,
    printer::{Fields, Table, cell, moment, word},
};
use contract::{
    Name,
    credentials::{
        CheckCredential, Credential, CredentialKind, DeleteCredential, GetCredentials,
        SetCredential,
    },
    page::Limit,
    text::{FileData, PasswordAttempt},
};
use data_encoding::BASE64;
use std::{
    io::{self, Read},
    path::Path,
};

pub fn credential(cx: &Context<'_>, command: Command) -> Result<(), Failure> {
    let client = cx.client()?;
    match command {
        Command::Set(new) => {
            let stored = client.call(&request(cx, *new)?)?;
            cx.printer.reply(&stored, fields)?;
            cx.printer.note("next: `svc credential check` signs in with it");
            Ok(())
        }
        Command::List { app, all } => {
            let (app_id, limit) = (cx.settings.app(app)?, Limit::default());
            let credentials =
                client.list(all, |cursor| GetCredentials { app_id, kind: None, limit, cursor })?;
            lists::print(cx, &credentials, table)
        }
        Command::Check { credential } => {
            let checked = client.call(&CheckCredential { credential_id: credential })?;
            cx.printer.reply(&checked, fields)?;
            match &checked.check {
                Some(check) if !check.ok => Err(Failure::told(
                    format!("{} does not open what it is for", checked.name),
                    check.text.clone(),
                )),
                _ => Ok(()),
            }
        }
        Command::Delete { credential } => {
            let deleted = client.call(&DeleteCredential { credential_id: credential })?;
            cx.printer.reply(&deleted, |deleted| format!("{} is deleted", deleted.deleted))
        }
    }
}

fn request(cx: &Context<'_>, new: NewCredential) -> Result<SetCredential, Failure> {
    let has_password =
        matches!(new.kind, CredentialKind::IosSigning | CredentialKind::AndroidKeystore);
    let secret = |of: &str| -> Result<PasswordAttempt, Failure> {
        let text = match new.password_stdin {
            true => input::line("password")?,
            false => cx.printer.ask_secret(&format!("Password of {of}"))?,
        };
        text.parse().map_err(|why: String| Failure::usage(why, "give the password again"))
    };
    let password = has_password.then(|| secret(&new.file.display().to_string())).transpose()?;
    let key_password = new.key_password.then(|| secret("the key")).transpose()?;
    let key_id = new.key_id.or_else(|| key_id(&new.file));
    Ok(SetCredential {
        app_id: cx.settings.app(new.app)?,
        kind: new.kind,
        name: new.name,
        data: file(&new.file)?,
        password,
        profile: new.profile.as_deref().map(file).transpose()?,
        alias: new.alias,
        key_password,
        key_id: key_id.filter(|_| new.kind == CredentialKind::AppStoreConnectKey),
        issuer_id: new.issuer_id,
        currency: new.currency,
    })
}

fn file(path: &Path) -> Result<FileData, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("{}: {why}", path.display()), "name the file of the credential")
    };
    let bytes = bytes.map_err(|error| unusable(&error))?;
    BASE64.encode(&bytes).parse().map_err(|why: String| unusable(&why))
}

/// The id of a key, from the name that Apple gives to its file: `AuthKey_ABCDE12345.p8`.
fn key_id(file: &Path) -> Option<Name> {
    file.file_stem()?.to_str()?.strip_prefix("AuthKey_")?.parse().ok()
}

fn fields(credential: &Credential) -> Fields {
    let facts = &credential.facts;
    let certificate = facts.certificate.as_ref();
    let profile = facts.profile.as_ref();
    let check = credential.check.as_ref();
    let fields = Fields::new()
        .with("id", credential.id)
        .with("kind", word(&credential.kind))
        .with("name", credential.name.as_str())
        .with_some("certificate", certificate.map(|certificate| &certificate.subject))
        .with_some("sha256", certificate.map(|certificate| &certificate.sha256))
        .with_some("alias", facts.alias.as_ref())
        .with_some("profile", profile.map(|p| format!("{} ({})", p.name, word(&p.distribution))))
        .with_some("for", profile.map(|profile| &profile.bundle_id))
        .with_some("key", facts.key_id.as_ref().or(facts.key_hint.as_ref()))
        .with_some("money", facts.live.map(|live| if live { "real" } else { "for tests" }))
        .with_some("account", facts.client_email.as_ref())
        .with_some("expires", credential.expires_at.map(moment))
        .with_some("check", check.map(|check| &check.text));
    credential.warnings.iter().fold(fields, |fields, warning| fields.with("warning", warning))
}

fn table(credentials: &[Credential]) -> Table {
    let headings = ["ID", "KIND", "NAME", "EXPIRES", "CHECK", "USED"];
    credentials.iter().fold(Table::new(headings), |table, credential| {
        let check = credential.check.as_ref();
        table.row([
            credential.id.to_string(),
            word(&credential.kind),
            credential.name.to_string(),
            cell(credential.expires_at.map(moment)),
            cell(check.map(|check| if check.ok { "ok" } else { "failed" })),
            cell(credential.last_used_at.map(moment)),
        ])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_apple_gives_tells_the_id_of_the_key() {
        let id = |name: &str| key_id(Path::new(name)).map(|id| id.to_string());
        assert_eq!(id("keys/AuthKey_ABCDE12345.p8").as_deref(), Some("ABCDE12345"));
        assert_eq!(id("key.p8"), None);
    }
}
