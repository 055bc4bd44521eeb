//! Market-server instances: a commerce server with its database, and its dashboard and storefront.

use crate::{
    AppId, Name, ProjectId, TemplateId,
    env::Env,
    instances::{Instance, Resources, Service},
};

functions! {
    group "Market-server instances";

    /// Deploy a market server with its database. Answers at once; the instance is in
    /// `provisioning`, and starts as soon as it can.
    "svc_deployMarketServer": DeployMarketServer {
        project_id: ProjectId,
        /// An app of the project that has no market server yet; an app is made where nothing is
        /// given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        /// `Market server` where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
        /// A published market template; the service's default where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template_id: Option<TemplateId>,
        /// For the server. What the template sets itself cannot be replaced.
        #[serde(default)]
        env: Env,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
    } -> Instance { who: Member of (project_id), effect: Change,
        errors: [Exists "the app has a market server", NotNow "the template is not published, or an image version is deprecated"] }

    /// Deploy the dashboard of a market server. Where there is one, it is made anew.
    "svc_deployMarketDashboard": DeployMarketDashboard {
        app_id: AppId,
        /// Replaces what was set for it; what was set stays where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
    } -> Instance { who: Member of (app_id), effect: Change,
        errors: [NotFound "the app has no market server", NotNow "its template has no dashboard, or its state does not allow it"] }

    /// Deploy the storefront of a market server. Where there is one, it is made anew.
    "svc_deployMarketStorefront": DeployMarketStorefront {
        app_id: AppId,
        /// Replaces what was set for it; what was set stays where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
    } -> Instance { who: Member of (app_id), effect: Change,
        errors: [NotFound "the app has no market server", NotNow "its template has no storefront, or its state does not allow it"] }

    /// Start a stopped market server with all of its services. One that runs is answered unchanged.
    "svc_startMarketServer": StartMarketServer {
        app_id: AppId,
        /// Answer when it has come to rest, or after 25 seconds as it is then.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (app_id), effect: Change }

    /// Stop a market server with all of its services. Its data stays.
    "svc_stopMarketServer": StopMarketServer {
        app_id: AppId,
        /// Answer when it has come to rest, or after 25 seconds as it is then.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (app_id), effect: Change }

    /// Stop a market server and start it again.
    "svc_restartMarketServer": RestartMarketServer {
        app_id: AppId,
        /// Answer when it has come to rest, or after 25 seconds as it is then.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (app_id), effect: Change, errors: [NotNow "it is provisioning, starting or stopping"] }

    /// Read a market server, with its services as they are now.
    "svc_getMarketServerStatus": GetMarketServerStatus { app_id: AppId } -> MarketServerStatus
    { who: Member of (app_id), effect: Read }
}

records! {
    /// A market server, looked at a moment ago.
    pub struct MarketServerStatus {
        instance: Instance,
        services: Vec<Service>,
    }
}
