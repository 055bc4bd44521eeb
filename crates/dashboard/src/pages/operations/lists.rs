//! All users, organizations and projects, and the audit log.

use super::tab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, Rest, address},
    response::{PageResult, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Function, Limit, Page,
    authentication::{Tier, User},
    operators::{
        AuditEvent, CreateUser, CreatedUser, GetAllProjects, GetAuditLog, GetOrganizations,
        GetUsers, SetTier,
    },
    organizations::Organization,
    projects::Project,
};
use messages::Messages;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/operations/users", web::get().to(users))
        .route("/operations/users", web::post().to(set_tier))
        .route("/operations/users/new", web::post().to(create_user))
        .route("/operations/organizations", web::get().to(organizations))
        .route("/operations/projects", web::get().to(projects))
        .route("/operations/audit", web::get().to(audit));
}

/// What a person searches for. Each list uses its own fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OperationsQuery {
    query: String,
    user_id: String,
    function: String,
    resource: String,
    since: String,
    cursor: String,
}

impl OperationsQuery {
    fn form(&self) -> Form {
        let OperationsQuery { query, user_id, function, resource, since, cursor } = self;
        Form::search([
            ("query", query),
            ("userId", user_id),
            ("function", function),
            ("resource", resource),
            ("since", since),
            (CURSOR, cursor),
        ])
    }
}

/// One of the lists: a part of it, and how somebody found it.
#[derive(Template)]
#[template(path = "operations_list.html")]
struct OperationsListPage {
    frame: Frame,
    here: &'static str,
    form: Form,
    items: ListItems,
    rest: Rest,
}

enum ListItems {
    /// The search was refused.
    None,
    Users(Vec<User>),
    Organizations(Vec<Organization>),
    Projects(Vec<Project>),
    Audit(Vec<AuditEvent>),
}

impl OperationsListPage {
    fn tiers(&self) -> [(Tier, String, String); 4] {
        let words = |tier: &Tier| crate::pages::name(&self.frame.messages, tier);
        [Tier::Free, Tier::Developer, Tier::Professional, Tier::Enterprise]
            .map(|tier| (tier, crate::pages::wire(&tier), words(&tier)))
    }

    fn is_empty(&self) -> bool {
        match &self.items {
            ListItems::None => false,
            ListItems::Users(items) => items.is_empty(),
            ListItems::Organizations(items) => items.is_empty(),
            ListItems::Projects(items) => items.is_empty(),
            ListItems::Audit(items) => items.is_empty(),
        }
    }

    /// The command that shows the same.
    fn command(&self) -> &'static str {
        match self.here {
            "/operations/users" => "svc call svc_admin_getUsers --param query=TEXT",
            "/operations/organizations" => "svc call svc_admin_getOrganizations --param query=TEXT",
            "/operations/projects" => "svc call svc_admin_getProjects --param query=TEXT",
            _ => "svc call svc_admin_getAuditLog --param function=NAME",
        }
    }
}

/// Reads a part of a list and shows it.
async fn show<F, T>(
    visitor: &Visitor,
    here: &'static str,
    query: OperationsQuery,
    refused: Option<Form>,
    params: fn(&Form) -> Result<F, Fault>,
    items: fn(Vec<T>) -> ListItems,
) -> PageResult
where
    F: Function<Reply = Page<T>>,
{
    let (found, mut form) = visitor.search(query.form(), params).await?;
    let rest = match &found {
        None => Rest::of(&Page::<T>::new(Vec::new(), None), here, &form),
        Some(page) => Rest::of(page, here, &form),
    };
    let items = found.map_or(ListItems::None, |page| items(page.items));
    if let Some(refused) = refused {
        form = refused.beside(form);
    }
    let frame = tab(visitor, here.trim_start_matches("/operations")).await?;
    form_page(&form.clone(), &OperationsListPage { frame, here, form, items, rest })
}

async fn users(visitor: Visitor, query: web::Query<OperationsQuery>) -> PageResult {
    users_with(&visitor, query.into_inner(), None).await
}

async fn users_with(
    visitor: &Visitor,
    query: OperationsQuery,
    refused: Option<Form>,
) -> PageResult {
    let params = |form: &Form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(GetUsers { query, limit: Limit::default(), cursor })
    };
    show(visitor, "/operations/users", query, refused, params, ListItems::Users).await
}

async fn set_tier(visitor: Visitor, form: Form) -> PageResult {
    let params =
        |form: &Form| Ok(SetTier { user_id: form.get("userId")?, tier: form.get("tier")? });
    match visitor.send(&form, params).await {
        Ok(user) => {
            let tier = crate::pages::name(&visitor.say(), &user.tier);
            let note = visitor.say().has_the_tier(&user.email, tier);
            done(&address("/operations/users", [("query", user.email.as_str())]), &note)
        }
        Err(fault) => {
            users_with(&visitor, OperationsQuery::default(), Some(form.refused(fault))).await
        }
    }
}

/// The page after an account was made: the only one that shows its link.
#[derive(Template)]
#[template(path = "user_made.html")]
struct UserMadePage {
    frame: Frame,
    made: CreatedUser,
}

async fn create_user(visitor: Visitor, form: Form) -> PageResult {
    let params =
        |form: &Form| Ok(CreateUser { email: form.get("email")?, name: form.get("name")? });
    match visitor.send(&form, params).await {
        Ok(made) => {
            let frame = Frame::of(&visitor, Messages::new_account).await?;
            page(&UserMadePage {
                frame: frame.below_page(Messages::menu_operations, "/operations"),
                made,
            })
        }
        Err(fault) => {
            users_with(&visitor, OperationsQuery::default(), Some(form.refused(fault))).await
        }
    }
}

async fn organizations(visitor: Visitor, query: web::Query<OperationsQuery>) -> PageResult {
    let (here, query) = ("/operations/organizations", query.into_inner());
    let params = |form: &Form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(GetOrganizations { query, limit: Limit::default(), cursor })
    };
    show(&visitor, here, query, None, params, ListItems::Organizations).await
}

async fn projects(visitor: Visitor, query: web::Query<OperationsQuery>) -> PageResult {
    let (here, query) = ("/operations/projects", query.into_inner());
    let params = |form: &Form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(GetAllProjects { query, limit: Limit::default(), cursor })
    };
    show(&visitor, here, query, None, params, ListItems::Projects).await
}

async fn audit(visitor: Visitor, query: web::Query<OperationsQuery>) -> PageResult {
    let (here, query) = ("/operations/audit", query.into_inner());
    let params = |form: &Form| {
        Ok(GetAuditLog {
            user_id: form.get("userId")?,
            function: form.get("function")?,
            resource: form.get("resource")?,
            since: form.get("since")?,
            limit: Limit::default(),
            cursor: form.get(CURSOR)?,
        })
    };
    show(&visitor, here, query, None, params, ListItems::Audit).await
}
