//! What runs inside of an instance: its cloud functions, and the connection to its SQL database.

use super::InstanceTab;
use crate::{
    form::Form,
    frame::Frame,
    response::{PageResult, Refused, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, InstanceId,
    backend_instances::GetBackendInstance,
    instance_helpers::{
        AppMetrics, GetAppMetrics, ListCloudFunctions, RunCloudFunction, SqlConnection,
        TestSqlConnection,
    },
};
use serde_json::Value;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/functions", web::get().to(functions))
        .route("/instances/{id}/functions", web::post().to(run))
        .route("/instances/{id}/database", web::get().to(database));
}

#[derive(Template)]
#[template(path = "instance_functions.html")]
struct CloudFunctionsPage {
    frame: Frame,
    tab: InstanceTab,
    /// The names, or why they are not known.
    functions: Result<Vec<String>, String>,
    form: Form,
    /// What the function that was run gave, as JSON.
    result: Option<String>,
}

async fn functions(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let form = Form::filled([("parameters", "{}".to_owned())]);
    functions_with(&visitor, super::super::id(path, "instance")?, form, None).await
}

async fn functions_with(
    visitor: &Visitor,
    instance_id: InstanceId,
    form: Form,
    result: Option<String>,
) -> PageResult {
    let (frame, tab) = InstanceTab::open(visitor, instance_id, "/functions").await?;
    let all = ListCloudFunctions { app_id: tab.instance.app_id, kind: Some(tab.instance.kind) };
    let functions = match visitor.read(&all).await {
        Ok(all) => Ok(all.functions),
        Err(Refused(fault)) => Err(fault.to_string()),
    };
    form_page(&form.clone(), &CloudFunctionsPage { frame, tab, functions, form, result })
}

async fn run(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    match ran(&visitor, instance_id, &form).await {
        Ok(result) => {
            let text = serde_json::to_string_pretty(&result).unwrap_or_default();
            functions_with(&visitor, instance_id, form, Some(text)).await
        }
        Err(fault) => functions_with(&visitor, instance_id, form.refused(fault), None).await,
    }
}

async fn ran(visitor: &Visitor, instance_id: InstanceId, form: &Form) -> Result<Value, Fault> {
    let instance =
        visitor.read(&GetBackendInstance { instance_id }).await.map_err(|Refused(fault)| fault)?;
    let params = RunCloudFunction {
        app_id: instance.app_id,
        kind: None,
        function_name: form.get("functionName")?,
        parameters: form.get_json("parameters")?,
        session_token: form.get("sessionToken")?,
    };
    visitor.call(&params, form.key()).await
}

#[derive(Template)]
#[template(path = "instance_database.html")]
struct DatabasePage {
    frame: Frame,
    tab: InstanceTab,
    /// The connection test, or why there is none.
    test: Result<SqlConnection, String>,
    /// The number of users and sessions, or why they are not known.
    metrics: Result<AppMetrics, String>,
}

async fn database(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let instance_id = super::super::id(path, "instance")?;
    let (frame, tab) = InstanceTab::open(&visitor, instance_id, "/database").await?;
    let (app_id, kind) = (tab.instance.app_id, Some(tab.instance.kind));
    let test = visitor.read(&TestSqlConnection { app_id, kind, database: None }).await;
    let metrics = visitor.read(&GetAppMetrics { app_id, kind }).await;
    let test = test.map_err(|Refused(fault)| fault.to_string());
    let metrics = metrics.map_err(|Refused(fault)| fault.to_string());
    page(&DatabasePage { frame, tab, test, metrics })
}
