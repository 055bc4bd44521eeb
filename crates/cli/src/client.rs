//! The HTTP client of the service, for its functions and its other endpoints.

use crate::{
    failure::{Failure, ServiceRefusal},
    settings::{ClientCredential, ClientSettings},
};
use contract::{
    AppId, ArtifactId, Function, Page, Spec,
    artifacts::Artifact,
    endpoint::{
        self, FinalizeRequest, Readiness, UploadUrl, UploadUrlRequest,
        sources::{SourceUrl, SourceUrlRequest},
    },
    page::Cursor,
};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use svc_client::{BuildError, Error, Patience, Response, varied};
use tokio::runtime::{self, Runtime};

/// How long a command waits for the verification of a file.
const FINALIZE_LIMIT: Duration = Duration::from_secs(600);
const FINALIZE_PAUSE: Duration = Duration::from_secs(2);

/// A client of the service with the settings of the caller, for threads that wait.
#[derive(Clone)]
pub struct Client {
    service: svc_client::Client,
    runtime: Arc<Runtime>,
    settings: ClientSettings,
}

impl Client {
    /// A client for a person who waits at a terminal.
    pub fn new(settings: &ClientSettings) -> Result<Self, Failure> {
        let base_url = format!("{}{}", settings.api_url, endpoint::BASE_PATH);
        let mut service = svc_client::Client::builder(&base_url)
            .user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")));
        if let Some(id) = &settings.application_id {
            service = service.application_id(id);
        }
        service = match &settings.credential {
            Some(ClientCredential::DeployToken(token)) => service.deploy_token(token),
            Some(ClientCredential::Session(token)) => service.session_token(token),
            Some(ClientCredential::MasterKey(key)) => service.master_key(key),
            None => service,
        };
        let service = service.build().map_err(|error| {
            let hint = match error {
                BuildError::Address(_) => "give the address of the service with --api-url",
                BuildError::Certificates(_) => {
                    "install the certificates of the system's authorities (ca-certificates)"
                }
            };
            Failure::local(error.to_string(), hint)
        })?;
        // Its own thread keeps the connections alive between calls.
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::local(format!("no thread can be started: {error}"), "end other programs")
        })?;
        Ok(Client { service, runtime: Arc::new(runtime), settings: settings.clone() })
    }

    /// The same client with another patience.
    pub fn with_patience(self, patience: Patience) -> Self {
        Client { service: self.service.with_patience(patience), ..self }
    }

    /// The same client without credentials.
    pub fn anonymous(self) -> Self {
        let settings = ClientSettings { credential: None, ..self.settings };
        Client { service: self.service.anonymous(), settings, ..self }
    }

    pub fn api_url(&self) -> &str {
        &self.settings.api_url
    }

    pub fn patience(&self) -> Patience {
        self.service.patience()
    }

    pub fn call<F: Function>(&self, params: &F) -> Result<F::Reply, Failure> {
        self.check_application()?;
        self.wait(self.service.call(params))
    }

    /// Calls a function whose parameters are known only at run time.
    pub fn call_untyped(&self, spec: &Spec, params: &Value) -> Result<Value, Failure> {
        self.check_application()?;
        self.wait(self.service.call_untyped(spec, params))
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
        if !all {
            return self.call(&page(None));
        }
        self.check_application()?;
        let items = self.wait(self.service.list_all(page))?;
        Ok(Page::new(items, None))
    }

    /// Opens or resumes an upload.
    pub fn open_upload(&self, request: &UploadUrlRequest) -> Result<UploadUrl, Failure> {
        let url = format!("{}/api/v1/artifacts/upload-url", self.api_url());
        self.wait(self.service.post(&url, request))
    }

    /// Opens the upload of a folder's archive.
    pub fn open_source(
        &self,
        app: AppId,
        request: &SourceUrlRequest,
    ) -> Result<SourceUrl, Failure> {
        let url = format!("{}/api/v1/apps/{app}/sources", self.api_url());
        self.wait(self.service.post(&url, request))
    }

    /// Has an upload verified, and waits for the result up to [`FINALIZE_LIMIT`].
    pub fn finalize(&self, id: ArtifactId, request: &FinalizeRequest) -> Result<Artifact, Failure> {
        let url = format!("{}/api/v1/artifacts/{id}/finalize", self.api_url());
        let started = Instant::now();
        loop {
            let reply = self.wait(self.service.post(&url, request));
            let unfinished = matches!(&reply, Err(failure)
                if failure.refused_with(100).is_some_and(|refusal| refusal.status == 424));
            if !unfinished || started.elapsed() > FINALIZE_LIMIT {
                return reply;
            }
            std::thread::sleep(varied(FINALIZE_PAUSE));
        }
    }

    /// Asks whether the service answers calls. An answer with a failing status counts, too.
    pub fn readiness(&self) -> Result<Readiness, Failure> {
        let request = self.service.http().get(format!("{}/readyz", self.api_url()));
        let answer = self.send(request).map_err(|error| self.unanswered(&error))?;
        serde_json::from_slice(&answer.body).map_err(|_| self.refusal(&answer))
    }

    /// A request to a signed address, without credentials.
    pub fn signed(&self, method: Method, address: &str) -> Result<RequestBuilder, Failure> {
        let base = reqwest::Url::parse(&format!("{}/", self.api_url()));
        let address =
            base.and_then(|base| base.join(address)).map_err(|_| Failure::Unreachable {
                problem: "the service named an invalid upload address".into(),
                hint: format!("is the service at {} of this version?", self.api_url()),
            })?;
        Ok(self.service.http().request(method, address))
    }

    /// Sends a request once.
    pub fn send(&self, request: RequestBuilder) -> Result<Response, reqwest::Error> {
        self.runtime.block_on(svc_client::send(request))
    }

    /// The failure in an answer that is not a success.
    pub fn refusal(&self, answer: &Response) -> Failure {
        self.failure(self.service.refusal(answer))
    }

    /// The failure when no answer came.
    pub fn unanswered(&self, error: &reqwest::Error) -> Failure {
        self.failure(self.service.unanswered(error))
    }

    fn check_application(&self) -> Result<(), Failure> {
        if self.settings.may_call() {
            return Ok(());
        }
        Err(Failure::usage(
            "no application id is known",
            "say --application-id, set SVC_APPLICATION_ID, or sign in with `svc login`; who \
             operates the service knows it. A deploy token in SVC_TOKEN needs none",
        ))
    }

    fn wait<R>(&self, call: impl Future<Output = Result<R, Error>>) -> Result<R, Failure> {
        self.runtime.block_on(call).map_err(|error| self.failure(error))
    }

    fn failure(&self, error: Error) -> Failure {
        let url = self.api_url();
        match (error.failure, error.status) {
            (Some(body), Some(status)) => Failure::Refused(ServiceRefusal {
                status,
                body,
                retry_after: error.retry_after,
                credential: self.settings.credential.clone(),
                advice: None,
            }),
            // Another program answered at the address.
            (None, Some(_)) => Failure::Unreachable {
                problem: error.message,
                hint: "check --api-url and SVC_API_URL, and what stands between here and there"
                    .into(),
            },
            (_, None) => Failure::Unreachable {
                problem: error.message,
                hint: format!(
                    "is `svc serve` running at {url}? Name another service with --api-url or \
                     SVC_API_URL"
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{IMPATIENT, LOST, TestService, failure};
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
        let service = TestService::start([]).answering("logout", replies);
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
        let service =
            TestService::start([]).answering("getCurrentUser", [(429, failure(429, None))]);
        let brief = Patience { waits_for_limits: false, ..IMPATIENT };
        let client = service.client().with_patience(brief);
        let refused = client.call(&GetCurrentUser {}).unwrap_err();
        assert!(refused.refused_with(429).is_some(), "{refused}");
    }

    #[test]
    fn a_secret_that_may_be_lost_is_not_asked_for_twice() {
        let service = TestService::start([]).answering("svc_createDeployToken", [LOST]);
        let params = CreateDeployToken {
            name: "ci".parse().unwrap(),
            scopes: BoundedSet::one(Scope::ArtifactUpload),
            app_id: None,
            expires_at: contract::Patch::Keep,
        };
        let failure = service.client().call(&params).unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }), "{failure}");
        assert_eq!(service.calls().len(), 1);
    }

    #[test]
    fn another_program_at_the_address_is_not_taken_for_the_service() {
        let page = (404, json!("not found"));
        let service = TestService::start([]).answering("getCurrentUser", [page]);
        let failure = service.client().call(&GetCurrentUser {}).unwrap_err();
        assert!(matches!(failure, Failure::Unreachable { .. }), "{failure}");
        assert!(failure.to_string().contains("HTTP 404"));
    }
}
