//! All users, organizations and projects, and the audit log.

use super::tab;
use crate::{
    answer::{Answer, Frame, done, form_page, page},
    form::Form,
    list::{CURSOR, Rest, address},
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
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/operations/users", web::get().to(users))
        .route("/operations/users", web::post().to(set_tier))
        .route("/operations/users/new", web::post().to(create_user))
        .route("/operations/organizations", web::get().to(organizations))
        .route("/operations/projects", web::get().to(projects))
        .route("/operations/audit", web::get().to(audit));
}

/// What a person looks for. Each list uses its own fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wanted {
    query: String,
    user_id: String,
    function: String,
    resource: String,
    since: String,
    cursor: String,
}

impl Wanted {
    fn form(&self) -> Form {
        let Wanted { query, user_id, function, resource, since, cursor } = self;
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
struct List {
    frame: Frame,
    here: &'static str,
    form: Form,
    items: Items,
    rest: Rest,
}

enum Items {
    /// The search was refused.
    None,
    Users(Vec<User>),
    Organizations(Vec<Organization>),
    Projects(Vec<Project>),
    Audit(Vec<AuditEvent>),
}

impl List {
    fn tiers(&self) -> [(Tier, &'static str); 4] {
        [
            (Tier::Free, "free"),
            (Tier::Developer, "developer"),
            (Tier::Professional, "professional"),
            (Tier::Enterprise, "enterprise"),
        ]
    }

    fn is_empty(&self) -> bool {
        match &self.items {
            Items::None => false,
            Items::Users(items) => items.is_empty(),
            Items::Organizations(items) => items.is_empty(),
            Items::Projects(items) => items.is_empty(),
            Items::Audit(items) => items.is_empty(),
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
    wanted: Wanted,
    refused: Option<Form>,
    params: fn(&Form) -> Result<F, Fault>,
    items: fn(Vec<T>) -> Items,
) -> Answer
where
    F: Function<Reply = Page<T>>,
{
    let (found, mut form) = visitor.search(wanted.form(), params).await?;
    let rest = match &found {
        None => Rest::of(&Page::<T>::new(Vec::new(), None), here, &form),
        Some(page) => Rest::of(page, here, &form),
    };
    let items = found.map_or(Items::None, |page| items(page.items));
    if let Some(refused) = refused {
        form = refused.beside(form);
    }
    let frame = tab(visitor, here.trim_start_matches("/operations")).await?;
    form_page(&form.clone(), &List { frame, here, form, items, rest })
}

async fn users(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    users_with(&visitor, wanted.into_inner(), None).await
}

async fn users_with(visitor: &Visitor, wanted: Wanted, refused: Option<Form>) -> Answer {
    let params = |form: &Form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(GetUsers { query, limit: Limit::default(), cursor })
    };
    show(visitor, "/operations/users", wanted, refused, params, Items::Users).await
}

async fn set_tier(visitor: Visitor, form: Form) -> Answer {
    let params =
        |form: &Form| Ok(SetTier { user_id: form.get("userId")?, tier: form.get("tier")? });
    match visitor.send(&form, params).await {
        Ok(user) => {
            let note = format!("{} has the tier {}.", user.email, crate::pages::name(&user.tier));
            done(&address("/operations/users", [("query", user.email.as_str())]), &note)
        }
        Err(fault) => users_with(&visitor, Wanted::default(), Some(form.refused(fault))).await,
    }
}

/// The page after an account was made: the only one that shows its link.
#[derive(Template)]
#[template(path = "user_made.html")]
struct Made {
    frame: Frame,
    made: CreatedUser,
}

async fn create_user(visitor: Visitor, form: Form) -> Answer {
    let params =
        |form: &Form| Ok(CreateUser { email: form.get("email")?, name: form.get("name")? });
    match visitor.send(&form, params).await {
        Ok(made) => {
            let frame = Frame::of(&visitor, "New account").await?;
            page(&Made { frame: frame.below("Operations", "/operations"), made })
        }
        Err(fault) => users_with(&visitor, Wanted::default(), Some(form.refused(fault))).await,
    }
}

async fn organizations(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let (here, wanted) = ("/operations/organizations", wanted.into_inner());
    let params = |form: &Form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(GetOrganizations { query, limit: Limit::default(), cursor })
    };
    show(&visitor, here, wanted, None, params, Items::Organizations).await
}

async fn projects(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let (here, wanted) = ("/operations/projects", wanted.into_inner());
    let params = |form: &Form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(GetAllProjects { query, limit: Limit::default(), cursor })
    };
    show(&visitor, here, wanted, None, params, Items::Projects).await
}

async fn audit(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let (here, wanted) = ("/operations/audit", wanted.into_inner());
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
    show(&visitor, here, wanted, None, params, Items::Audit).await
}
