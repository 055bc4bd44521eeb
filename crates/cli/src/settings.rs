//! The settings of a command: service, credentials and app.
//!
//! The first source with a value counts: flag, environment, `.svc/config.json` of the repository,
//! login file.

use crate::{args::Global, failure::Failure, login_file::StoredLogin};
use contract::AppId;
use repository::{CONFIG, Config};

/// The address of the service if no source names one.
pub(crate) const DEFAULT_API_URL: &str = "http://127.0.0.1:8080";

/// The sources of settings.
pub struct Sources<'a> {
    pub flags: &'a Global,
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The configuration of the repository.
    pub config: Option<&'a Config>,
    pub login: Option<&'a StoredLogin>,
}

#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The address of the service, without a slash at the end.
    pub api_url: String,
    /// The application id. Calls with a deploy token do not need it.
    pub application_id: Option<String>,
    pub credential: Option<ClientCredential>,
    /// The app of a command that names none.
    pub app: Option<AppId>,
    /// Whether only the repository names the service, where the caller is not signed in. Such a
    /// service gets no secret: a person who can change the repository could have it sent to their
    /// own.
    pub is_repositorys_choice: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ClientCredential {
    DeployToken(String),
    /// The session of a person who is signed in.
    Session(String),
    MasterKey(String),
}

impl ClientCredential {
    fn from_token(token: &str) -> Self {
        if token.starts_with("r:") {
            ClientCredential::Session(token.to_owned())
        } else {
            ClientCredential::DeployToken(token.to_owned())
        }
    }
}

impl ClientSettings {
    /// Takes each setting from the first source that has it.
    pub fn resolve(sources: &Sources<'_>) -> Result<ClientSettings, Failure> {
        let Sources { flags, environment, config, login } = *sources;
        let named = flags.api_url.clone().or_else(|| environment("SVC_API_URL"));
        let of_repository = named.is_none() && config.is_some_and(|c| c.api_url.is_some());
        let api_url = named
            .or_else(|| config?.api_url.clone())
            .or_else(|| Some(login?.api_url.clone()))
            .unwrap_or_else(|| DEFAULT_API_URL.to_owned());
        let api_url = web_address(&api_url)?;
        // Only the service of the login may get its session, not one that a repository names.
        let login = login.filter(|login| login.api_url == api_url);
        let application_id = flags
            .application_id
            .clone()
            .or_else(|| environment("SVC_APPLICATION_ID"))
            .or_else(|| config?.application_id.clone())
            .or_else(|| Some(login?.application_id.clone()));
        let token = flags.token.clone().or_else(|| environment("SVC_TOKEN"));
        let credential = token
            .map(|token| ClientCredential::from_token(token.trim()))
            .or_else(|| Some(ClientCredential::Session(login?.session_token.clone())));
        let app = match environment("SVC_APP_ID") {
            Some(text) => Some(text.parse().map_err(|error| {
                Failure::usage(format!("SVC_APP_ID: {error}"), "`svc apps` lists the ids of apps")
            })?),
            None => config.and_then(|config| config.app),
        };
        let is_repositorys_choice = of_repository && login.is_none();
        let settings = ClientSettings {
            api_url,
            application_id,
            credential: None,
            app,
            is_repositorys_choice,
        };
        match credential {
            Some(credential) => settings.with(credential),
            None => Ok(settings),
        }
    }

    /// The same settings with this credential.
    ///
    /// # Errors
    ///
    /// A usage failure, if only the repository names the service.
    pub fn with(self, credential: ClientCredential) -> Result<ClientSettings, Failure> {
        if !self.is_repositorys_choice {
            return Ok(ClientSettings { credential: Some(credential), ..self });
        }
        let url = &self.api_url;
        let what = match credential {
            ClientCredential::MasterKey(_) => "the master key",
            ClientCredential::DeployToken(_) | ClientCredential::Session(_) => "a token",
        };
        Err(Failure::usage(
            format!("{CONFIG} names the service {url}, and {what} is not sent there for that"),
            format!("if that service is meant, set SVC_API_URL={url} or say --api-url"),
        ))
    }

    /// Whether functions can be called. A call with a deploy token needs no application id.
    pub fn may_call(&self) -> bool {
        self.application_id.is_some()
            || matches!(self.credential, Some(ClientCredential::DeployToken(_)))
    }

    /// The app of a command.
    pub fn app(&self, given: Option<AppId>) -> Result<AppId, Failure> {
        given.or(self.app).ok_or_else(|| {
            Failure::usage(
                "no app is named",
                "say --app, set SVC_APP_ID, or put \"app\" into .svc/config.json; `svc apps` \
                 lists the ids",
            )
        })
    }
}

/// The canonical form of an address, so that two spellings of it compare equal.
fn web_address(text: &str) -> Result<String, Failure> {
    let address = reqwest::Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.query().is_none()
            && url.fragment().is_none()
    });
    let address = address.ok_or_else(|| {
        Failure::usage(
            format!("{text:?} is not the address of a service"),
            format!("give one such as {DEFAULT_API_URL} with --api-url or SVC_API_URL"),
        )
    })?;
    Ok(address.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Timestamp;

    const APP: &str = "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S";

    fn login() -> StoredLogin {
        StoredLogin {
            api_url: "https://svc.example.com".into(),
            application_id: "from-login".into(),
            email: "ada@example.com".parse().unwrap(),
            session_token: "r:0123".into(),
            expires_at: Timestamp::from_millis(0),
        }
    }

    fn config(text: &str) -> Config {
        serde_json::from_str(text).unwrap()
    }

    fn resolve(
        flags: &Global,
        variables: &[(&str, &str)],
        config: Option<&Config>,
        login: Option<&StoredLogin>,
    ) -> Result<ClientSettings, Failure> {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned())
        };
        ClientSettings::resolve(&Sources { flags, environment: &environment, config, login })
    }

    #[test]
    fn flag_goes_before_environment_before_repository_before_login() {
        let flags = Global { application_id: Some("from-flag".into()), ..Global::default() };
        let variables = [("SVC_APPLICATION_ID", "from-environment")];
        let config = config(r#"{"applicationId": "from-config"}"#);
        let login = login();
        let id = |flags, variables: &[_], config| {
            resolve(flags, variables, config, Some(&login)).unwrap().application_id.unwrap()
        };
        let none = Global::default();
        assert_eq!(id(&flags, &variables, Some(&config)), "from-flag");
        assert_eq!(id(&none, &variables, Some(&config)), "from-environment");
        assert_eq!(id(&none, &[], Some(&config)), "from-config");
        assert_eq!(id(&none, &[], None), "from-login");
    }

    #[test]
    fn a_session_is_not_sent_to_a_service_that_the_repository_names() {
        let login = login();
        let none = Global::default();
        let own = resolve(&none, &[], None, Some(&login)).unwrap();
        assert_eq!(own.credential, Some(ClientCredential::Session("r:0123".into())));
        let config = config(r#"{"apiUrl": "https://elsewhere.example.com"}"#);
        let elsewhere = resolve(&none, &[], Some(&config), Some(&login)).unwrap();
        assert_eq!(elsewhere.api_url, "https://elsewhere.example.com");
        assert_eq!(elsewhere.credential, None);
        assert_eq!(elsewhere.application_id, None);
    }

    #[test]
    fn a_token_goes_only_to_a_service_that_its_holder_names() {
        let config = config(r#"{"apiUrl": "https://svc.example.com"}"#);
        let token = ("SVC_TOKEN", "svc_dt_x");
        let none = Global::default();
        let refused = resolve(&none, &[token], Some(&config), None).unwrap_err();
        assert!(refused.hint().contains("SVC_API_URL"), "{refused}");
        let flags = Global { token: Some("svc_dt_x".into()), ..Global::default() };
        assert!(resolve(&flags, &[], Some(&config), None).is_err());
        assert!(resolve(&none, &[], Some(&config), None).is_ok(), "nothing to be sent");
        let sent = |variables: &[_], login| resolve(&none, variables, Some(&config), login);
        assert!(sent(&[token, ("SVC_API_URL", "https://svc.example.com")], None).is_ok());
        let there = login();
        assert!(sent(&[token], Some(&there)).is_ok(), "its holder is signed in there");
        let elsewhere = StoredLogin { api_url: "https://elsewhere.example.com".into(), ..login() };
        assert!(sent(&[token], Some(&elsewhere)).is_err());
    }

    #[test]
    fn a_master_key_goes_only_to_a_service_that_its_holder_names() {
        let config = config(r#"{"apiUrl": "https://svc.example.com"}"#);
        let with_key = |variables: &[_]| {
            let settings = resolve(&Global::default(), variables, Some(&config), None).unwrap();
            settings.with(ClientCredential::MasterKey("key".into()))
        };
        assert!(with_key(&[]).unwrap_err().to_string().contains("master key"));
        let named = with_key(&[("SVC_API_URL", "https://svc.example.com")]).unwrap();
        assert_eq!(named.credential, Some(ClientCredential::MasterKey("key".into())));
    }

    #[test]
    fn a_token_goes_before_the_session() {
        let login = login();
        let settings =
            resolve(&Global::default(), &[("SVC_TOKEN", "svc_dt_x\n")], None, Some(&login));
        let credential = settings.unwrap().credential;
        assert_eq!(credential, Some(ClientCredential::DeployToken("svc_dt_x".into())));
    }

    #[test]
    fn the_app_comes_from_flag_environment_or_repository() {
        let config = config(&format!(r#"{{"app": "{APP}"}}"#));
        let none = Global::default();
        let settings = resolve(&none, &[], Some(&config), None).unwrap();
        assert_eq!(settings.app(None).unwrap().to_string(), APP);
        assert!(resolve(&none, &[("SVC_APP_ID", "prj_1")], Some(&config), None).is_err());
        assert!(resolve(&none, &[], None, None).unwrap().app(None).is_err());
    }

    #[test]
    fn addresses_are_checked_and_compared_in_one_form() {
        assert_eq!(web_address("https://SVC.example.com/").unwrap(), "https://svc.example.com");
        assert_eq!(web_address("http://10.0.0.1:8080/svc/").unwrap(), "http://10.0.0.1:8080/svc");
        assert!(web_address("svc.example.com").is_err());
        assert!(web_address("file:///etc/passwd").is_err());
    }
}
