//! Calls of functions.

use crate::{
    Builder, Error, Patience, Response,
    error::{self, Facts},
    retry::{AttemptOutcome, Attempts},
    send,
    settings::ClientCredentials,
};
use contract::{
    Cursor, Effect, Function, Page, Spec,
    authentication::{
        ChangePassword, Empty, LoginWithEmail, Logout, NewSession, RegisterUser, SignedIn,
    },
};
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use ulid::Ulid;

/// Calls the functions of one service. A clone shares its connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: String,
    credentials: ClientCredentials,
    patience: Patience,
}

/// What a request is about, beside its parameters.
#[derive(Clone, Copy)]
struct About<'a> {
    url: &'a str,
    change: bool,
    /// Whether a repetition gets the reply again. A reply with a secret comes once.
    repeats_lost: bool,
    idempotency_key: Option<&'a str>,
}

#[derive(Deserialize)]
struct Success<R> {
    result: R,
}

impl Client {
    /// A client of the service with this `{base_url}`, such as `https://svc.example.com/backend`.
    pub fn builder(base_url: &str) -> Builder {
        Builder::new(base_url)
    }

    pub(crate) fn from_parts(
        http: reqwest::Client,
        base_url: String,
        credentials: ClientCredentials,
        patience: Patience,
    ) -> Self {
        Client { http, base_url, credentials, patience }
    }

    /// The same client with another patience.
    pub fn with_patience(self, patience: Patience) -> Self {
        Client { patience, ..self }
    }

    /// The same client without a session, a deploy token and a master key.
    pub fn anonymous(self) -> Self {
        let ClientCredentials { application_id, javascript_key, .. } = self.credentials;
        let credentials =
            ClientCredentials { application_id, javascript_key, ..ClientCredentials::default() };
        Client { credentials, ..self }
    }

    /// How often this client tries.
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// The session token of later calls. `None` signs out on this side only.
    pub fn set_session_token(&mut self, token: Option<String>) {
        self.credentials.session_token = token;
    }

    /// The session token, to keep it beyond the life of the program.
    pub fn session_token(&self) -> Option<&str> {
        self.credentials.session_token.as_deref()
    }

    /// The connections, for requests that are not calls.
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Calls a function.
    ///
    /// A change gets an idempotency key, which its repetitions carry too, so the service makes the
    /// change once. A reply with a secret comes once, so such a call is not repeated after its answer
    /// was lost.
    pub async fn call<F: Function>(&self, params: &F) -> Result<F::Reply, Error> {
        self.function(&F::SPEC, None, params).await
    }

    /// Makes a change with this idempotency key, of at most 256 characters. Further calls of the
    /// same caller with the same key and parameters get the first reply for 24 hours, and change
    /// nothing.
    pub async fn call_once<F: Function>(
        &self,
        idempotency_key: &str,
        params: &F,
    ) -> Result<F::Reply, Error> {
        self.function(&F::SPEC, Some(idempotency_key), params).await
    }

    /// Calls a function whose parameters are known only at run time.
    pub async fn call_untyped(&self, spec: &Spec, params: &Value) -> Result<Value, Error> {
        self.function(spec, None, params).await
    }

    /// Reads all pages of a list. `page` makes the parameters of the page at a cursor.
    pub async fn list_all<F, T>(&self, page: impl Fn(Option<Cursor>) -> F) -> Result<Vec<T>, Error>
    where
        F: Function<Reply = Page<T>>,
    {
        let mut items = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.call(&page(cursor)).await?;
            items.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(items);
            }
        }
    }

    /// Creates an account, and calls in its session from now on.
    pub async fn register_user(&mut self, params: &RegisterUser) -> Result<SignedIn, Error> {
        let signed_in = self.call(params).await?;
        self.credentials.session_token = Some(signed_in.session_token.clone());
        Ok(signed_in)
    }

    /// Signs in, and calls in the new session from now on.
    pub async fn login_with_email(&mut self, params: &LoginWithEmail) -> Result<SignedIn, Error> {
        let signed_in = self.call(params).await?;
        self.credentials.session_token = Some(signed_in.session_token.clone());
        Ok(signed_in)
    }

    /// Changes the password, and calls in the new session from now on.
    pub async fn change_password(&mut self, params: &ChangePassword) -> Result<NewSession, Error> {
        let session = self.call(params).await?;
        self.credentials.session_token = Some(session.session_token.clone());
        Ok(session)
    }

    /// Ends the session.
    pub async fn logout(&mut self) -> Result<Empty, Error> {
        let ended = self.call(&Logout {}).await?;
        self.credentials.session_token = None;
        Ok(ended)
    }

    /// Posts to an endpoint that is not a function, such as those of artifacts. Only for endpoints
    /// that may be asked twice: the request is repeated like a call.
    pub async fn post<P, R>(&self, url: &str, body: &P) -> Result<R, Error>
    where
        P: Serialize + Sync + ?Sized,
        R: DeserializeOwned,
    {
        let about = About { url, change: true, repeats_lost: true, idempotency_key: None };
        self.exchange(about, body).await
    }

    /// The failure in an answer to a request of [`Client::http`].
    pub fn refusal(&self, answer: &Response) -> Error {
        error::of_answer(&self.base_url, answer, Facts::default())
    }

    /// The failure when a request of [`Client::http`] got no answer.
    pub fn unanswered(&self, error: &reqwest::Error) -> Error {
        error::of_silence(&self.base_url, error, Facts::default())
    }

    async fn function<P, R>(
        &self,
        spec: &Spec,
        idempotency_key: Option<&str>,
        params: &P,
    ) -> Result<R, Error>
    where
        P: Serialize + Sync,
        R: DeserializeOwned,
    {
        let url = format!("{}/functions/{}", self.base_url, spec.name);
        let change = spec.effect == Effect::Change;
        let key = change.then(|| match idempotency_key {
            Some(key) => key.to_owned(),
            None => Ulid::generate().to_string(),
        });
        let about = About {
            url: &url,
            change,
            repeats_lost: !spec.secret,
            idempotency_key: key.as_deref(),
        };
        let answered: Result<Success<R>, Error> = self.exchange(about, params).await;
        match answered {
            Ok(success) => Ok(success.result),
            Err(error) => Err(Error { idempotency_key: key, ..error }),
        }
    }

    /// Sends a request until there is a final answer or patience ends, and reads the answer.
    #[allow(
        clippy::disallowed_methods,
        reason = "a program of its own, without the service's clock"
    )]
    async fn exchange<P, R>(&self, about: About<'_>, body: &P) -> Result<R, Error>
    where
        P: Serialize + Sync + ?Sized,
        R: DeserializeOwned,
    {
        let mut attempts = Attempts::new(self.patience, about.repeats_lost);
        loop {
            let answered = send(self.request(about, body)).await;
            let pause = attempts.after(outcome(&answered));
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
                continue;
            }
            let facts = Facts { change: about.change, lost: attempts.lost_an_answer() };
            let answer =
                answered.map_err(|error| error::of_silence(&self.base_url, &error, facts))?;
            let reply = match answer.is_success() {
                true => serde_json::from_slice(&answer.body).ok(),
                false => None,
            };
            return reply.ok_or_else(|| error::of_answer(&self.base_url, &answer, facts));
        }
    }

    fn request<P: Serialize + ?Sized>(&self, about: About<'_>, body: &P) -> RequestBuilder {
        let mut request = self.http.post(about.url).json(body);
        let ClientCredentials {
            application_id,
            javascript_key,
            session_token,
            deploy_token,
            master_key,
        } = &self.credentials;
        for (header, value) in [
            ("X-Backend-Application-Id", application_id.as_deref()),
            ("X-Backend-Javascript-Key", javascript_key.as_deref()),
            ("X-Backend-Session-Token", session_token.as_deref()),
            ("X-Backend-Master-Key", master_key.as_deref()),
            ("X-Backend-Request-Id", about.idempotency_key),
        ] {
            if let Some(value) = value {
                request = request.header(header, value);
            }
        }
        match deploy_token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

fn outcome(answered: &Result<Response, reqwest::Error>) -> AttemptOutcome {
    match answered {
        Ok(answer) => AttemptOutcome::Answered(answer.status, answer.retry_after()),
        Err(error) if error.is_builder() => AttemptOutcome::Impossible,
        Err(error) if error.is_connect() => AttemptOutcome::NotSent,
        Err(_) => AttemptOutcome::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{Fault, Server, Serves};

    /// Serves each function by a call of it. The compiler refuses this program if [`Client::call`]
    /// does not take a function.
    struct Caller;

    impl Server for Caller {
        type Context = Client;
    }

    impl<F: Function> Serves<F> for Caller {
        async fn serve(&self, client: &Client, params: F) -> Result<F::Reply, Fault> {
            client.call(&params).await.map_err(|_| Fault::Busy)
        }
    }

    #[test]
    fn every_function_can_be_called() {
        assert_eq!(contract::routes::<Caller>().count(), contract::all().count());
    }
}
