//! `svc engine`: the machines that have the containers of instances.

use crate::{
    Context,
    args::{EngineCommand, EngineKeyArgs},
    failure::Failure,
    lists,
    printer::{Table, cell, moment, word},
};
use contract::{
    engines::{
        AddEngine, ContainerEngine, DrainEngine, GetEngineInstances, GetEngines, MoveInstance,
        RecoverInstance, RemoveEngine, UpdateEngine,
    },
    page::Limit,
    ssh::SshHostKey,
    text::{CertificatePem, PrivateKeyPem},
};
use std::{path::Path, str::FromStr};

pub fn engine(cx: &Context<'_>, command: EngineCommand) -> Result<(), Failure> {
    let client = cx.client()?;
    match command {
        EngineCommand::Add { name, address, private_address, keys, labels } => {
            let Keys { authority, certificate, host_key, key } = read(keys)?;
            let labels = labels.into_iter().map(|label| (label.name, label.value)).collect();
            let added = client.call(&AddEngine {
                name,
                address,
                private_address,
                authority,
                certificate,
                host_key,
                key,
                labels,
            })?;
            cx.printer
                .reply(&added, |added| format!("{} is added as {}", added.name, cell(added.id)))
        }
        EngineCommand::List => {
            let engines = client.call(&GetEngines {})?;
            cx.printer.reply(&engines, |engines| table(&engines.items))
        }
        EngineCommand::Instances { engine, all } => {
            let (engine_id, limit) = (engine, Limit::default());
            let placed =
                client.list(all, |cursor| GetEngineInstances { engine_id, limit, cursor })?;
            lists::print(cx, &placed, |placed| {
                let headings = ["ID", "NAME", "STATE", "PROBLEM"];
                placed.iter().fold(Table::new(headings), |table, instance| {
                    let state = word(&instance.state);
                    let state = if instance.moving { format!("{state}, moving") } else { state };
                    let problem = cell(instance.last_error.as_ref());
                    table.row([instance.id.to_string(), instance.name.to_string(), state, problem])
                })
            })
        }
        EngineCommand::Move { instance, engine } => {
            let moved = client.call(&MoveInstance { instance_id: instance, engine_id: engine })?;
            cx.printer.reply(&moved, |moved| match moved.moving {
                true => format!("{} is being moved; see `svc engine instances`", moved.name),
                false => format!("{} is there", moved.name),
            })
        }
        EngineCommand::Renew { engine, keys } => {
            let Keys { authority, certificate, host_key, key } = read(keys)?;
            let renewed = client.call(&UpdateEngine {
                engine_id: engine,
                name: None,
                labels: None,
                authority,
                certificate,
                host_key,
                key: Some(key),
            })?;
            cx.printer.reply(&renewed, |renewed| format!("{} has new keys", renewed.name))
        }
        EngineCommand::Drain { engine, undo } => {
            let drained = client.call(&DrainEngine { engine_id: engine, draining: !undo })?;
            cx.printer.reply(&drained, |engine| match engine.draining {
                true => format!("{} takes no more instances", engine.name),
                false => format!("{} takes instances again", engine.name),
            })
        }
        EngineCommand::Recover { instance, engine, backup } => {
            let params =
                RecoverInstance { instance_id: instance, engine_id: engine, backup_id: backup };
            let begun = client.call(&params)?;
            cx.printer.reply(&begun, |begun| format!("{} begins anew", begun.name))
        }
        EngineCommand::Remove { engine, lost } => {
            let removed = client.call(&RemoveEngine { engine_id: engine, lost })?;
            cx.printer.reply(&removed, |removed| format!("{} is removed", removed.removed))
        }
    }
}

fn table(engines: &[ContainerEngine]) -> Table {
    let headings = [
        "ID",
        "NAME",
        "ADDRESS",
        "STATE",
        "INSTANCES",
        "PROMISED",
        "MEMORY",
        "DISK FREE",
        "KEYS END",
    ];
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    engines.iter().fold(Table::new(headings), |table, engine| {
        let state = word(&engine.state);
        table.row([
            cell(engine.id),
            engine.name.to_string(),
            cell(engine.address.as_ref()),
            if engine.draining { format!("{state}, draining") } else { state },
            engine.instances.to_string(),
            gib(engine.promised_memory),
            cell(engine.memory.map(gib)),
            cell(engine.disk_free_bytes.map(gib)),
            cell(engine.certificate_expires_at.map(moment)),
        ])
    })
}

struct Keys {
    authority: Option<CertificatePem>,
    certificate: Option<CertificatePem>,
    host_key: Option<SshHostKey>,
    key: PrivateKeyPem,
}

/// Reads the file of a key, or those that Docker's documentation has a client keep in one folder.
fn read(keys: EngineKeyArgs) -> Result<Keys, Failure> {
    let EngineKeyArgs { certificates, key, host_key } = keys;
    match (certificates, key) {
        (Some(folder), _) => Ok(Keys {
            authority: Some(read_pem(&folder.join("ca.pem"))?),
            certificate: Some(read_pem(&folder.join("cert.pem"))?),
            host_key: None,
            key: read_pem(&folder.join("key.pem"))?,
        }),
        (None, Some(file)) => {
            Ok(Keys { authority: None, certificate: None, host_key, key: read_pem(&file)? })
        }
        (None, None) => Err(Failure::usage("no keys are named".to_owned(), HINT)),
    }
}

const HINT: &str = "name the folder that has ca.pem, cert.pem and key.pem of a client of the engine, or over ssh the \
    file of a private key";

fn read_pem<T: FromStr<Err = String>>(path: &Path) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("{}: {e}", path.display()), HINT))?;
    text.parse().map_err(|problem| Failure::usage(format!("{} {problem}", path.display()), HINT))
}
