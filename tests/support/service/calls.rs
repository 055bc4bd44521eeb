//! Calls of a service, and the people who make them.

use super::{LONGEST, Service, fixture, sha256};
use serde_json::{Value, json};

/// The status and the JSON of an answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub headers: reqwest::header::HeaderMap,
}

impl Answer {
    /// The reply of a function. Asserts that the call succeeded.
    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body["result"].clone()
    }

    /// The status and the code of a refusal.
    pub fn refusal(&self) -> (u16, i64) {
        let code = self.body["code"].as_i64().unwrap_or_else(|| panic!("no code in {}", self.body));
        assert!(self.body["error"].as_str().is_some_and(|e| !e.is_empty()), "{}", self.body);
        (self.status, code)
    }
}

/// A person who is signed in.
#[derive(Clone)]
pub struct Person {
    pub id: String,
    pub email: String,
    pub token: String,
}

impl Service {
    /// Calls a function as this person, or without credentials.
    pub fn call(&self, who: Option<&Person>, function: &str, params: Value) -> Answer {
        self.try_call(who, function, params, None)
            .unwrap_or_else(|e| panic!("{function}: {e}\n{}", self.last_words()))
    }

    /// Posts to an artifact endpoint as this person, or without credentials.
    pub fn post(&self, who: Option<&Person>, path: &str, body: &Value) -> Answer {
        let mut request =
            self.http.post(format!("{}/api/v1/artifacts/{path}", self.url)).json(body);
        if let Some(person) = who {
            request = if person.token.starts_with("svc_dt_") {
                request.bearer_auth(&person.token)
            } else {
                request.header("X-Backend-Session-Token", &person.token)
            };
        }
        Self::answer(request.send().unwrap()).unwrap()
    }

    /// Like [`call`](Service::call), but the connection may break.
    pub fn try_call(
        &self,
        who: Option<&Person>,
        function: &str,
        params: Value,
        once: Option<&str>,
    ) -> reqwest::Result<Answer> {
        let mut request =
            self.http.post(format!("{}/backend/functions/{function}", self.url)).json(&params);
        request = request.header("X-Backend-Application-Id", &self.application_id);
        if let Some(person) = who {
            request = if person.token.starts_with("svc_dt_") {
                request.bearer_auth(&person.token)
            } else {
                request.header("X-Backend-Session-Token", &person.token)
            };
        }
        if let Some(once) = once {
            request = request.header("X-Backend-Request-Id", once);
        }
        Self::answer(request.send()?)
    }

    /// Reads an answer.
    pub fn answer(response: reqwest::blocking::Response) -> reqwest::Result<Answer> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text()?;
        let body = match serde_json::from_str(&text) {
            Ok(body) => body,
            // A balancer says it in its own words.
            Err(_) if (502..=504).contains(&status) => Value::String(text),
            Err(_) => panic!("{status} is not JSON: {text:?}"),
        };
        Ok(Answer { status, body, headers })
    }

    /// The token of the link that the server prints until it has an administrator.
    pub fn first_start_token(&self) -> Option<String> {
        let file = std::fs::read(self.data().join("secrets/first-start.json")).ok()?;
        let first: Value = serde_json::from_slice(&file).unwrap();
        first["token"].as_str().map(str::to_owned)
    }

    /// A new session of the first administrator, who is made if there is none.
    pub fn administrator(&self) -> Person {
        let mut first = administrator();
        if let Some(token) = self.first_start_token() {
            first["token"] = token.into();
            let made = self.call(None, "svc_createFirstAdministrator", first.clone());
            if made.status == 200 {
                return person(&made.ok());
            }
        }
        let signed_in = self.call(None, "loginWithEmail", administrator()).ok();
        person(&signed_in)
    }

    /// Registers an account without a rate limit.
    pub fn register(&self, name: &str) -> Person {
        let email = format!("{name}@example.com");
        let made = self.call(
            None,
            "registerUser",
            json!({"email": email, "password": "correct horse", "name": name}),
        );
        let person = person(&made.ok());
        let tier = json!({"userId": person.id, "tier": "enterprise"});
        let administrator = self.administrator.get_or_init(|| self.administrator());
        let set = self.call(Some(administrator), "svc_admin_setTier", tier.clone());
        if set.status != 200 {
            // The test has ended that session, or changed the store.
            self.call(Some(&self.administrator()), "svc_admin_setTier", tier).ok();
        }
        person
    }

    /// Registers an account with the rate limit of the free tier.
    pub fn register_free(&self, name: &str) -> Person {
        let email = format!("{name}@example.com");
        let params = json!({"email": email, "password": "correct horse", "name": name});
        person(&self.call(None, "registerUser", params).ok())
    }

    /// The same person with a new deploy token instead of a session.
    pub fn with_token(&self, maker: &Person, params: Value) -> Person {
        let made = self.call(Some(maker), "svc_createDeployToken", params).ok();
        Person { token: made["token"].as_str().unwrap().to_owned(), ..maker.clone() }
    }

    /// Signs the person in again.
    pub fn sign_in(&self, person: &Person, password: &str) -> Person {
        let params = json!({"email": person.email, "password": password});
        self::person(&self.call(None, "loginWithEmail", params).ok())
    }

    pub fn master_key(&self) -> String {
        let keys = std::fs::read(self.data().join("secrets/keys.json")).unwrap();
        let keys: Value = serde_json::from_slice(&keys).unwrap();
        keys["masterKey"].as_str().unwrap().to_owned()
    }

    /// An HTTP client that calls from this loopback address.
    pub fn client_at(address: [u8; 4]) -> reqwest::blocking::Client {
        let client = reqwest::blocking::Client::builder().timeout(LONGEST);
        client.local_address(std::net::IpAddr::from(address)).build().unwrap()
    }

    /// A call of a function, which the caller may change and must send.
    pub fn request(
        &self,
        client: &reqwest::blocking::Client,
        function: &str,
        params: &Value,
    ) -> reqwest::blocking::RequestBuilder {
        let address = format!("{}/backend/functions/{function}", self.url);
        client.post(address).json(params).header("X-Backend-Application-Id", &self.application_id)
    }

    /// Makes a project with one app in an organization. Returns their ids.
    pub fn project_with_app(&self, who: &Person, organization: Option<&Value>) -> (Value, Value) {
        let mut params = json!({"name": "Shop"});
        if let Some(organization) = organization {
            params["organizationId"] = organization.clone();
        }
        let project = self.call(Some(who), "svc_createProject", params).ok();
        let params = json!({"name": "Shop", "projectId": project["id"]});
        let app = self.call(Some(who), "createApp", params).ok();
        (project["id"].clone(), app["id"].clone())
    }

    /// Uploads a fixture and has it verified. Returns the artifact.
    pub fn upload(&self, who: &Person, app: &Value, file: &str, version: &str) -> Value {
        let id = self.send(who, app, file, Some(version));
        let bytes = std::fs::read(fixture(file)).unwrap();
        let verified =
            self.post(Some(who), &format!("{id}/finalize"), &json!({"sha256": sha256(&bytes)}));
        assert_eq!(verified.status, 201, "{}", verified.body);
        verified.body
    }

    /// Uploads a fixture without finalizing it. Returns the id of the artifact.
    pub fn send(&self, who: &Person, app: &Value, file: &str, version: Option<&str>) -> String {
        let platform = if file.ends_with(".ipa") { "ios" } else { "android" };
        let mut opening = json!({"appId": app, "platform": platform, "fileName": file});
        if let Some(version) = version {
            opening["version"] = json!(version);
        }
        let opened = self.post(Some(who), "upload-url", &opening);
        assert_eq!(opened.status, 201, "{}", opened.body);
        let bytes = std::fs::read(fixture(file)).unwrap();
        let put = self.http.put(opened.body["uploadUrl"].as_str().unwrap()).body(bytes).send();
        assert_eq!(put.unwrap().status(), 200);
        opened.body["artifactId"].as_str().unwrap().to_owned()
    }
}

/// Who the first administrator of tests is.
pub fn administrator() -> Value {
    json!({"email": "admin@localhost", "password": "a password of tests"})
}

pub fn person(signed_in: &Value) -> Person {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Person {
        id: text(&signed_in["user"]["id"]),
        email: text(&signed_in["user"]["email"]),
        token: text(&signed_in["sessionToken"]),
    }
}
