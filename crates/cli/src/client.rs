//! The HTTP client of the service, for its functions and its other endpoints.

use crate::{
    failure::{Failure, Refusal},
    retry::{self, Patience},
    settings::{Credential, Settings},
};
use contract::{
    ArtifactId, Effect, Function, Page, Spec,
    artifacts::Artifact,
    endpoint::{FinalizeRequest, Readiness, UploadUrl, UploadUrlRequest},
    fault,
    page::Cursor,
};
use reqwest::{
    Method,
    blocking::{RequestBuilder, Response},
    header, redirect,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    error::Error,
    time::{Duration, Instant},
};
use ulid::Ulid;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// How long a command waits for the verification of a file.
const FINALIZE_LIMIT: Duration = Duration::from_secs(600);
const FINALIZE_PAUSE: Duration = Duration::from_secs(2);

/// The address of a service with the credentials and the patience of the caller.
#[derive(Clone)]
pub struct Client {
    http: reqwest::blocking::Client,
    settings: Settings,
    patience: Patience,
}

/// A complete HTTP response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: header::HeaderMap,
    pub body: Vec<u8>,
}

/// Whether a request may be repeated after its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Repeat {
    Safe,
    /// The lost answer holds a secret that a repetition would not return.
    Unsafe,
}

#[derive(Deserialize)]
struct Success<R> {
    result: R,
}

impl Client {
    /// A client for a person who waits at a terminal.
    pub fn new(settings: &Settings) -> Result<Self, Failure> {
        let builder = || {
            reqwest::blocking::Client::builder()
                .connect_timeout(CONNECT_LIMIT)
                .timeout(CALL_LIMIT)
                // A redirect would turn a call into a GET, and send the credentials elsewhere.
                .redirect(redirect::Policy::none())
                .user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")))
        };
        let http = builder().build().or_else(|error| match settings.api_url.starts_with("http:") {
            // A system without certificate authorities can still use plain HTTP.
            true => builder().tls_certs_only([]).build(),
            false => Err(error),
        });
        let http = http.map_err(|error| {
            Failure::local(
                format!("no secure connections can be made: {}", cause(&error)),
                "install the certificates of the system's authorities (ca-certificates)",
            )
        })?;
        Ok(Client { http, settings: settings.clone(), patience: retry::BRIEF })
    }

    /// The same client with another patience.
    pub fn with_patience(self, patience: Patience) -> Self {
        Client { patience, ..self }
    }

    /// The same client without credentials.
    pub fn anonymous(mut self) -> Self {
        self.settings.credential = None;
        self
    }

    pub fn api_url(&self) -> &str {
        &self.settings.api_url
    }

    pub fn patience(&self) -> Patience {
        self.patience
    }

    pub fn call<F: Function>(&self, params: &F) -> Result<F::Reply, Failure> {
        let spec = contract::all().find(|spec| spec.name == F::NAME);
        let secret = spec.is_some_and(|spec| spec.secret);
        self.function(F::NAME, F::EFFECT, secret, params)
    }

    /// Calls a function whose parameters are known only at run time.
    pub fn call_untyped(&self, spec: &Spec, params: &Value) -> Result<Value, Failure> {
        self.function(spec.name, spec.effect, spec.secret, params)
    }

    /// Reads the first page of a list, or all pages.
    pub fn list<F, T>(
        &self,
        all: bool,
        page: impl Fn(Option<Cursor>) -> F,
    ) -> Result<Page<T>, Failure>
    where
        F: Function<Reply = Page<T>>,
    {
        let mut list = self.call(&page(None))?;
        while all && list.next_cursor.is_some() {
            let next = self.call(&page(list.next_cursor.take()))?;
            list.items.extend(next.items);
            list.next_cursor = next.next_cursor;
        }
        Ok(list)
    }

    /// Opens or resumes an upload.
    pub fn open_upload(&self, request: &UploadUrlRequest) -> Result<UploadUrl, Failure> {
        self.post("/api/v1/artifacts/upload-url", request)
    }

    /// Has an upload verified, and waits for the result up to [`FINALIZE_LIMIT`].
    pub fn finalize(&self, id: ArtifactId, request: &FinalizeRequest) -> Result<Artifact, Failure> {
        let started = Instant::now();
        loop {
            let reply = self.post(&format!("/api/v1/artifacts/{id}/finalize"), request);
            let unfinished = matches!(&reply, Err(failure)
                if failure.refused_with(100).is_some_and(|refusal| refusal.status == 424));
            if !unfinished || started.elapsed() > FINALIZE_LIMIT {
                return reply;
            }
            std::thread::sleep(FINALIZE_PAUSE);
        }
    }

    /// Asks whether the service answers calls. An answer with a failing status counts, too.
    pub fn readiness(&self) -> Result<Readiness, Failure> {
        let request = self.http.get(format!("{}/readyz", self.api_url()));
        let answer = send(request).map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&answer.body).map_err(|_| self.stranger(&answer))
    }

    /// A request to a signed address, without credentials.
    pub fn signed(&self, method: Method, address: &str) -> Result<RequestBuilder, Failure> {
        let base = reqwest::Url::parse(&format!("{}/", self.api_url()));
        let address =
            base.and_then(|base| base.join(address)).map_err(|_| Failure::Unreachable {
                problem: "the service named an invalid upload address".into(),
                hint: format!("is the service at {} of this version?", self.api_url()),
            })?;
        Ok(self.http.request(method, address))
    }

    fn function<P: Serialize, R: DeserializeOwned>(
        &self,
        name: &str,
        effect: Effect,
        secret: bool,
        params: &P,
    ) -> Result<R, Failure> {
        if !self.settings.may_call() {
            return Err(Failure::usage(
                "no application id is known",
                "say --application-id, set SVC_APPLICATION_ID, or sign in with `svc login`; who \
                 operates the service knows it. A deploy token in SVC_TOKEN needs none",
            ));
        }
        let url = format!("{}/backend/functions/{name}", self.api_url());
        let mut request = self.http.post(url).json(params);
        if effect == Effect::Change {
            // Repetitions carry the same id, so the service makes the change once.
            request = request.header("X-Backend-Request-Id", Ulid::generate().to_string());
        }
        let repeat = if secret { Repeat::Unsafe } else { Repeat::Safe };
        let answer = self.deliver(self.authorized(request), repeat)?;
        let success: Success<R> = self.read(&answer)?;
        Ok(success.result)
    }

    fn post<P: Serialize, R: DeserializeOwned>(&self, path: &str, body: &P) -> Result<R, Failure> {
        let request = self.http.post(format!("{}{path}", self.api_url())).json(body);
        let answer = self.deliver(self.authorized(request), Repeat::Safe)?;
        self.read(&answer)
    }

    fn authorized(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(id) = &self.settings.application_id {
            request = request.header("X-Backend-Application-Id", id);
        }
        match &self.settings.credential {
            Some(Credential::DeployToken(token)) => request.bearer_auth(token),
            Some(Credential::Session(token)) => request.header("X-Backend-Session-Token", token),
            None => request,
        }
    }

    /// Sends a request until there is a final answer or patience ends.
    fn deliver(&self, request: RequestBuilder, repeat: Repeat) -> Result<Answer, Failure> {
        let mut failures = 0;
        loop {
            let Some(attempt) = request.try_clone() else {
                // Only a streamed body cannot be cloned, and these requests have none.
                return send(request).map_err(|error| self.unreachable(&error));
            };
            failures += 1;
            match send(attempt) {
                Ok(answer) if self.patience.repeats(answer.status) => {
                    if !self.patience.rest(failures, answer.retry_after()) {
                        return Ok(answer);
                    }
                }
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    let again = repeat == Repeat::Safe || error.is_connect();
                    if !again || error.is_builder() || !self.patience.rest(failures, None) {
                        return Err(self.unreachable(&error));
                    }
                }
            }
        }
    }

    fn read<R: DeserializeOwned>(&self, answer: &Answer) -> Result<R, Failure> {
        if !answer.is_success() {
            return Err(self.refusal(answer));
        }
        serde_json::from_slice(&answer.body).map_err(|_| self.stranger(answer))
    }

    /// The failure in an answer that is not a success.
    pub fn refusal(&self, answer: &Answer) -> Failure {
        match answer.failure() {
            Some(body) => Failure::Refused(Refusal {
                status: answer.status,
                body: Box::new(body),
                retry_after: answer.retry_after(),
                advice: None,
            }),
            None => self.stranger(answer),
        }
    }

    /// The failure when no answer came.
    pub fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let url = self.api_url();
        let problem = if error.is_builder() {
            format!("the request to {url} cannot be made: {}", cause(error))
        } else if error.is_timeout() {
            format!("{url} gave no answer in time")
        } else {
            format!("{url} cannot be reached: {}", cause(error))
        };
        let hint = format!(
            "is `svc serve` running at {url}? Name another service with --api-url or SVC_API_URL"
        );
        Failure::Unreachable { problem, hint }
    }

    /// The failure when another program answered at the address.
    fn stranger(&self, answer: &Answer) -> Failure {
        let url = self.api_url();
        let problem =
            format!("{url} answered, but not as this service does (HTTP {})", answer.status);
        let hint = match answer.header("location") {
            Some(place) => format!("it points to {place}: give the address there with --api-url"),
            None => {
                "check --api-url and SVC_API_URL, and what stands between here and there".into()
            }
        };
        Failure::Unreachable { problem, hint }
    }
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The pause that the service asks for, in seconds. A date is ignored.
    pub fn retry_after(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.header("retry-after")?.trim().parse().ok()?))
    }

    pub fn failure(&self) -> Option<fault::Failure> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// Sends a request once. Errors do not show the address, because a signed address is a credential.
pub fn send(request: RequestBuilder) -> Result<Answer, reqwest::Error> {
    let read = |response: Response| {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes()?.to_vec() })
    };
    request.send().and_then(read).map_err(reqwest::Error::without_url)
}

/// The innermost cause of an error, which a person can act on.
fn cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{IMPATIENT, LOST, Service, failure};
    use contract::{
        BoundedSet, Scope,
        authentication::{GetCurrentUser, Logout},
        tokens::CreateDeployToken,
    };
    use serde_json::json;

    fn done() -> Value {
        json!({"result": {}})
    }

    #[test]
    fn a_change_that_is_repeated_carries_the_same_id() {
        let busy = (503, failure(100, None));
        let replies = [busy, LOST, (200, done()), (200, done())];
        let service = Service::start([]).answering("logout", replies);
        service.client().call(&Logout {}).unwrap();
        service.client().call(&Logout {}).unwrap();
        let calls = service.calls();
        let id = |call: usize| calls[call]["x-backend-request-id"].clone();
        assert_eq!((id(0), id(1)), (id(1), id(2)));
        assert_ne!(id(2), id(3));
        assert_eq!(calls[0]["x-backend-application-id"], "svc");
        assert_eq!(calls[0]["authorization"], "Bearer svc_dt_test");
    }

    #[test]
    fn who_waits_at_a_terminal_hears_of_a_limit_at_once() {
        let service = Service::start([]).answering("getCurrentUser", [(429, failure(429, None))]);
        let brief = Patience { waits_for_limits: false, ..IMPATIENT };
        let client = service.client().with_patience(brief);
        let refused = client.call(&GetCurrentUser {}).unwrap_err();
        assert!(refused.refused_with(429).is_some(), "{refused}");
    }

    #[test]
    fn a_secret_that_may_be_lost_is_not_asked_for_twice() {
        let service = Service::start([]).answering("svc_createDeployToken", [LOST]);
        let params = CreateDeployToken {
            name: "ci".parse().unwrap(),
            scopes: BoundedSet::one(Scope::ArtifactUpload),
            app_id: None,
            expires_at: None,
        };
        let failure = service.client().call(&params).unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }), "{failure}");
        assert_eq!(service.calls().len(), 1);
    }

    #[test]
    fn another_program_at_the_address_is_not_taken_for_the_service() {
        let page = (404, json!("not found"));
        let service = Service::start([]).answering("getCurrentUser", [page]);
        let failure = service.client().call(&GetCurrentUser {}).unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }), "{failure}");
        assert!(failure.to_string().contains("HTTP 404"));
    }
}
