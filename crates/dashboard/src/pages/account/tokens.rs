//! Deploy tokens of a person and of an app, and the trusted publishers of an app.

use super::tab;
use crate::{
    form::{Form, value},
    frame::Frame,
    list::{CURSOR, ListPart},
    pages::ListQuery,
    response::{PageResult, Refused, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Fault, Limit, Patch, Scope,
    apps::App,
    home::{GetHome, HomeApp},
    tokens::{CreateDeployToken, DeployToken, GetDeployTokens, NewDeployToken, RevokeDeployToken},
    trusted_publishers::{
        AddTrustedPublisher, GetTrustedPublishers, RemoveTrustedPublisher, TrustedPublisher,
    },
};
use messages::{Messages, Sentence};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/account/tokens", web::get().to(show_own))
        .route("/account/tokens", web::post().to(create_own))
        .route("/account/tokens/revoke", web::post().to(revoke_own))
        .route("/apps/{id}/access", web::get().to(show_app))
        .route("/apps/{id}/access", web::post().to(create_for_app))
        .route("/apps/{id}/access/revoke", web::post().to(revoke_of_app))
        .route("/apps/{id}/access/publishers", web::post().to(add_publisher))
        .route("/apps/{id}/access/remove", web::post().to(remove_publisher));
}

/// The scopes, and what each allows.
const SCOPES: [(Scope, Sentence); 7] = [
    (Scope::ArtifactUpload, Messages::may_upload),
    (Scope::ReleaseCreate, Messages::may_create_releases),
    (Scope::ReleasePublish, Messages::may_publish),
    (Scope::BuildRun, Messages::may_run_builds),
    (Scope::BuildTrigger, Messages::may_trigger_builds),
    (Scope::Deploy, Messages::may_deploy),
    (Scope::InstanceRead, Messages::may_read_instances),
];

/// The tokens that a page lists, and the form for a new one.
struct TokenList {
    /// The address of the page, and of the form for a new token.
    at: String,
    list: ListPart<DeployToken>,
    /// The apps that a new token may be for. None: the page is about one app.
    apps: Vec<HomeApp>,
}

impl TokenList {
    /// The scopes on the wire, and what each allows.
    fn scopes(&self, say: &Messages) -> [(&'static str, String); 7] {
        SCOPES.map(|(scope, what)| (scope.name(), what(*say)))
    }
}

#[derive(Template)]
#[template(path = "tokens.html")]
struct OwnTokensPage {
    frame: Frame,
    tokens: TokenList,
    form: Form,
}

/// The page after a token was made: the only one that shows it.
#[derive(Template)]
#[template(path = "token_made.html")]
struct TokenMadePage {
    frame: Frame,
    made: NewDeployToken,
    back: String,
}

impl TokenList {
    /// Reads a part of the tokens that the page with this address lists.
    async fn read(
        visitor: &Visitor,
        at: String,
        app_id: Option<AppId>,
        query: &ListQuery,
    ) -> Result<TokenList, Refused> {
        let list = ListPart::read(visitor, &at, query.form(), |form| {
            Ok(GetDeployTokens { app_id, limit: Limit::default(), cursor: form.get(CURSOR)? })
        })
        .await?;
        let apps = match app_id {
            Some(_) => Vec::new(),
            None => visitor.read(&GetHome {}).await?.apps,
        };
        Ok(TokenList { at, list, apps })
    }
}

async fn show_own(visitor: Visitor, query: web::Query<ListQuery>) -> PageResult {
    own_with(&visitor, Form::default(), &query).await
}

async fn own_with(visitor: &Visitor, form: Form, query: &ListQuery) -> PageResult {
    let frame = tab(visitor, "/tokens").await?;
    let tokens = TokenList::read(visitor, "/account/tokens".into(), None, query).await?;
    form_page(&form.clone(), &OwnTokensPage { frame, tokens, form })
}

/// The parameters of a new token. A day begins at midnight, UTC. Without a day, the service's default
/// counts, unless the form says that the token never expires.
fn new_token(form: &Form, app_id: Option<AppId>) -> Result<CreateDeployToken, Fault> {
    let day = form.value("expiresAt");
    let expires_at = if form.value("never") == "true" {
        Patch::Clear
    } else if day.is_empty() {
        Patch::Keep
    } else {
        let midnight = format!("{day}T00:00:00Z");
        Patch::Set(value::read("expiresAt", [midnight.as_str()])?)
    };
    let (name, scopes) = (form.get("name")?, form.get("scopes")?);
    Ok(CreateDeployToken { name, scopes, app_id, expires_at })
}

async fn made(visitor: &Visitor, made: NewDeployToken, back: String) -> PageResult {
    let frame = Frame::of(visitor, Messages::new_deploy_token).await?;
    page(&TokenMadePage { frame, made, back })
}

async fn create_own(visitor: Visitor, form: Form) -> PageResult {
    match visitor.send(&form, |form| new_token(form, form.get("appId")?)).await {
        Ok(new) => made(&visitor, new, "/account/tokens".into()).await,
        Err(fault) => own_with(&visitor, form.refused(fault), &ListQuery::default()).await,
    }
}

async fn revoke_own(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(RevokeDeployToken { token_id: form.get("tokenId")? });
    match visitor.send(&form, params).await {
        Ok(token) => done("/account/tokens", visitor.say().the_token_is_revoked(token.name)),
        Err(fault) => own_with(&visitor, form.refused(fault), &ListQuery::default()).await,
    }
}

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage {
    frame: Frame,
    app: App,
    tokens: TokenList,
    publishers: Vec<TrustedPublisher>,
    form: Form,
}

impl AccessPage {
    /// The events of runs that are trusted, as a person reads them.
    fn events(publisher: &TrustedPublisher) -> String {
        let names: Vec<_> = publisher.events.iter().map(ToString::to_string).collect();
        names.join(", ")
    }
}

async fn show_app(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    let app_id = crate::pages::id(path, "app")?;
    app_with(&visitor, app_id, Form::default(), &query).await
}

async fn app_with(visitor: &Visitor, app_id: AppId, form: Form, query: &ListQuery) -> PageResult {
    let at = format!("/apps/{app_id}/access");
    let tokens = TokenList::read(visitor, at, Some(app_id), query).await?;
    // An app has at most twenty.
    let all = GetTrustedPublishers { app_id, limit: Limit::default(), cursor: None };
    let publishers = visitor.read(&all).await?.items;
    let (frame, app) = Frame::in_app(visitor, Messages::access, app_id).await?;
    form_page(&form.clone(), &AccessPage { frame, app, tokens, publishers, form })
}

async fn create_for_app(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = crate::pages::id(path, "app")?;
    match visitor.send(&form, |form| new_token(form, Some(app_id))).await {
        Ok(new) => made(&visitor, new, format!("/apps/{app_id}/access")).await,
        Err(fault) => app_with(&visitor, app_id, form.refused(fault), &ListQuery::default()).await,
    }
}

async fn revoke_of_app(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = crate::pages::id(path, "app")?;
    let params = |form: &Form| Ok(RevokeDeployToken { token_id: form.get("tokenId")? });
    match visitor.send(&form, params).await {
        Ok(token) => {
            done(&format!("/apps/{app_id}/access"), visitor.say().the_token_is_revoked(token.name))
        }
        Err(fault) => app_with(&visitor, app_id, form.refused(fault), &ListQuery::default()).await,
    }
}

async fn add_publisher(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = crate::pages::id(path, "app")?;
    let params = |form: &Form| {
        let events = form.value("events").split([' ', ',']);
        Ok(AddTrustedPublisher {
            app_id,
            repository: form.get("repository")?,
            workflow: form.get("workflow")?,
            environment: form.get("environment")?,
            git_ref: form.get("ref")?,
            events: value::read("events", events)?,
            repository_id: None,
            repository_owner_id: None,
            issuer: None,
        })
    };
    match visitor.send(&form, params).await {
        Ok(trusted) => done(
            &format!("/apps/{app_id}/access"),
            visitor.say().workflow_is_trusted(trusted.workflow, trusted.repository),
        ),
        Err(fault) => app_with(&visitor, app_id, form.refused(fault), &ListQuery::default()).await,
    }
}

async fn remove_publisher(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = crate::pages::id(path, "app")?;
    let params =
        |form: &Form| Ok(RemoveTrustedPublisher { publisher_id: form.get("publisherId")? });
    match visitor.send(&form, params).await {
        Ok(_) => {
            done(&format!("/apps/{app_id}/access"), visitor.say().workflow_is_trusted_no_longer())
        }
        Err(fault) => app_with(&visitor, app_id, form.refused(fault), &ListQuery::default()).await,
    }
}
