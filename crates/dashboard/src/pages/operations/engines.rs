//! The container engines, and the instances on each.

use super::tab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, Rest},
    response::{PageResult, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    EngineId, Fault, Limit, Page,
    engines::{
        AddEngine, ContainerEngine, DrainEngine, EngineState, GetEngineInstances, GetEngines,
        MoveInstance, PlacedInstance, RecoverInstance, RemoveEngine, UpdateEngine,
    },
    quotas::Unit,
};
use serde::Deserialize;

const HERE: &str = "/operations/engines";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(show))
        .route(HERE, web::post().to(add))
        .route("/operations/engines/change", web::post().to(change))
        .route("/operations/engines/drain", web::post().to(drain))
        .route("/operations/engines/remove", web::post().to(remove))
        .route("/operations/engines/move", web::post().to(move_instance))
        .route("/operations/engines/recover", web::post().to(recover));
}

/// The engine whose instances a person looks at, and where in their list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EnginesQuery {
    engine: String,
    cursor: String,
}

#[derive(Template)]
#[template(path = "operations_engines.html")]
struct EnginesPage {
    frame: Frame,
    form: Form,
    engines: Vec<ContainerEngine>,
    /// The engine whose instances are shown.
    chosen: Option<EngineId>,
    instances: Vec<PlacedInstance>,
    rest: Rest,
}

impl EnginesPage {
    fn chosen_engine(&self) -> Option<&ContainerEngine> {
        self.engines.iter().find(|engine| engine.id == self.chosen)
    }

    /// The chosen engine, if it was added. That of the settings has no form.
    fn chosen_added(&self) -> Option<&ContainerEngine> {
        self.chosen_engine().filter(|engine| engine.id.is_some())
    }

    /// Where the instances of the chosen engine may go.
    fn others(&self) -> impl Iterator<Item = &ContainerEngine> {
        self.engines.iter().filter(|engine| engine.id != self.chosen && !engine.draining)
    }

    /// The id of an engine in a form. Empty: that of the settings.
    fn id(engine: &ContainerEngine) -> String {
        engine.id.map(|id| id.to_string()).unwrap_or_default()
    }

    /// Whether instances can only begin anew elsewhere.
    fn is_lost(engine: &ContainerEngine) -> bool {
        engine.state == EngineState::Unreachable
    }

    /// The backup that was named for an instance, if that was refused.
    fn backup_for(&self, instance: &PlacedInstance) -> &str {
        let is_it = self.form.value("instanceId") == instance.id.to_string();
        if is_it { self.form.value("backupId") } else { "" }
    }
}

/// What an added engine is, in the form that changes it.
fn present(engine: &ContainerEngine) -> Form {
    let lines = engine.labels.iter().map(|(name, value)| format!("{name}={value}\n"));
    Form::filled([("name", engine.name.to_string()), ("labels", lines.collect())])
}

async fn show(visitor: Visitor, query: web::Query<EnginesQuery>) -> PageResult {
    show_with(&visitor, &query, Form::default()).await
}

async fn show_with(visitor: &Visitor, query: &EnginesQuery, refused: Form) -> PageResult {
    let engines = visitor.read(&GetEngines {}).await?.items;
    let list = Form::search([("engine", &query.engine), (CURSOR, &query.cursor)]);
    let params = |form: &Form| {
        let engine_id = form.get("engine")?;
        Ok(GetEngineInstances { engine_id, limit: Limit::default(), cursor: form.get(CURSOR)? })
    };
    let (found, list) = visitor.search(list, params).await?;
    let found = found.unwrap_or_else(|| Page::new(Vec::new(), None));
    let rest = Rest::of(&found, HERE, &list);
    let form = if refused.fault().is_some() { refused } else { list };
    let frame = tab(visitor, "/engines").await?;
    let (chosen, instances) = (query.engine.parse().ok(), found.items);
    let added = engines.iter().find(|engine| engine.id.is_some() && engine.id == chosen);
    let form = form.beside(added.map(present).unwrap_or_default());
    form_page(&form.clone(), &EnginesPage { frame, form, engines, chosen, instances, rest })
}

async fn refused(visitor: &Visitor, form: Form, fault: Fault) -> PageResult {
    let engine = form.value("from").to_owned();
    show_with(visitor, &EnginesQuery { engine, ..EnginesQuery::default() }, form.refused(fault))
        .await
}

async fn add(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(AddEngine {
            name: form.get("name")?,
            address: form.get("address")?,
            private_address: form.get("privateAddress")?,
            authority: form.get("authority")?,
            certificate: form.get("certificate")?,
            host_key: form.get("hostKey")?,
            key: form.get("key")?,
            labels: form.get("labels")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(engine) => done(HERE, visitor.say().the_engine_is_added(engine.name)),
        Err(fault) => refused(&visitor, form, fault).await,
    }
}

async fn change(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(UpdateEngine {
            engine_id: form.get("from")?,
            name: form.get("name")?,
            labels: Some(form.get("labels")?),
            authority: form.get("authority")?,
            certificate: form.get("certificate")?,
            host_key: form.get("hostKey")?,
            key: form.get("key")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(engine) => done(&back(&form), visitor.say().the_engine_is_changed(engine.name)),
        Err(fault) => refused(&visitor, form, fault).await,
    }
}

async fn drain(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        let draining = form.value("draining") == "true";
        Ok(DrainEngine { engine_id: form.get("engineId")?, draining })
    };
    match visitor.send(&form, params).await {
        Ok(engine) if engine.draining => {
            done(HERE, visitor.say().the_engine_is_drained(engine.name))
        }
        Ok(engine) => done(HERE, visitor.say().the_engine_takes_instances(engine.name)),
        Err(fault) => refused(&visitor, form, fault).await,
    }
}

async fn remove(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(RemoveEngine { engine_id: form.get("engineId")?, lost: form.value("lost") == "true" })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(HERE, visitor.say().the_engine_is_removed()),
        Err(fault) => refused(&visitor, form, fault).await,
    }
}

async fn move_instance(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(MoveInstance { instance_id: form.get("instanceId")?, engine_id: form.get("engineId")? })
    };
    match visitor.send(&form, params).await {
        Ok(instance) => {
            done(&back(&form), visitor.say().the_instance_is_being_moved(instance.name))
        }
        Err(fault) => refused(&visitor, form, fault).await,
    }
}

async fn recover(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(RecoverInstance {
            instance_id: form.get("instanceId")?,
            engine_id: form.get("engineId")?,
            backup_id: form.get("backupId")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(instance) => done(&back(&form), visitor.say().the_instance_begins_anew(instance.name)),
        Err(fault) => refused(&visitor, form, fault).await,
    }
}

/// The page that a form was on.
fn back(form: &Form) -> String {
    format!("{HERE}?engine={}", form.value("from"))
}
