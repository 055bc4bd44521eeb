//! Reads the settings for image registries.

use crate::config::hosting::HostingArgs;
use actors::ports::registries::Registries;
use container_engine::RegistryLogin;
use data_encoding::BASE64;
use serde::Deserialize;
use std::{collections::HashMap, path::Path};

pub fn read(args: &HostingArgs) -> Result<Registries, String> {
    let logins = match &args.registry_logins {
        Some(path) => logins(path).map_err(|e| format!("{}: {e}", path.display()))?,
        None => HashMap::new(),
    };
    Ok(Registries { instead: args.image_mirrors.iter().cloned().collect(), logins })
}

/// The file `config.json` that `docker login` writes.
#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: HashMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    /// `user:password` in base64.
    auth: Option<String>,
}

fn logins(path: &Path) -> Result<HashMap<String, RegistryLogin>, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let file: DockerConfig = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
    let mut logins = HashMap::new();
    for (registry, entry) in file.auths {
        let auth = entry.auth.ok_or_else(|| {
            format!("{registry} has no login in this file; credential helpers are not asked")
        })?;
        let text =
            BASE64.decode(auth.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let login = text.as_deref().and_then(|text| text.split_once(':'));
        let (username, password) =
            login.ok_or_else(|| format!("the login of {registry} is damaged"))?;
        let login = RegistryLogin { username: username.into(), password: password.into() };
        logins.insert(host(&registry), login);
    }
    Ok(logins)
}

/// The host of a registry. The file may contain a URL.
fn host(registry: &str) -> String {
    let rest = registry.split_once("://").map_or(registry, |(_, rest)| rest);
    match rest.split('/').next().unwrap_or(rest) {
        "index.docker.io" => "docker.io".to_owned(),
        host => host.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_read_as_docker_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            logins(&path)
        };
        let both = read(
            r#"{"auths": {"https://index.docker.io/v1/": {"auth": "YWRhOnA6dw=="},
                "registry.example.com:5000": {"auth": "Ym90OnNlY3JldA=="}}, "HttpHeaders": {}}"#,
        );
        let both = both.unwrap();
        assert_eq!(
            both["docker.io"],
            RegistryLogin { username: "ada".into(), password: "p:w".into() }
        );
        assert_eq!(both["registry.example.com:5000"].username, "bot");
        let helper = read(r#"{"auths": {"registry.example.com": {}}, "credsStore": "desktop"}"#);
        assert!(helper.unwrap_err().contains("credential helpers are not asked"));
        assert!(read(r#"{"auths": {"a": {"auth": "%"}}}"#).unwrap_err().contains("damaged"));
    }
}
