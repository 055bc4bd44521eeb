//! Market servers: a commerce server and its database, with an optional dashboard and storefront.

use crate::{
    AppId, BackupId, NewName, ProjectId, TemplateId,
    engines::EngineLabels,
    env::Env,
    instances::{Instance, Resources, Service},
};

functions! {
    group "Market-server instances";

    /// Create a market server and its database.
    ///
    /// The call returns at once. The instance is in `provisioning` and starts as soon as possible. The
    /// service builds the images of the shipped template when they are needed for the first time; that
    /// takes some minutes, and `lastError` says so meanwhile.
    "svc_deployMarketServer": DeployMarketServer {
        project_id: ProjectId,
        /// An app of the project without a market server. By default, the call creates an app.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        /// The default is `Market server`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
        /// A published market template. The default is the service's default template.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template_id: Option<TemplateId>,
        /// Environment of the server, at most 128 KiB of names and values. Variables that the template
        /// sets cannot be replaced.
        #[serde(default)]
        env: Env,
        /// The limits of the server. The default is 512 MB of memory and one processor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
        /// The labels that its container engine must have, such as `{"region": "eu"}`. By default, it is placed on
        /// the engine with the most memory left. It stays where it is placed.
        #[serde(default, skip_serializing_if = "EngineLabels::is_empty")]
        engine_labels: EngineLabels,
        /// A ready backup in the same project, also of a deleted instance. It is restored into the
        /// database before the server starts; passwords that the server keeps in its database are
        /// those of the backup. By default, the database is empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_backup_id: Option<BackupId>,
    } -> Instance { who: Member of (project_id), effect: Change,
        errors: [Exists "the app has a market server", NotNow "the template is not published, an image version is deprecated, or the backup is not ready"] }

    /// Deploy the dashboard of a market server, or deploy it again.
    "svc_deployMarketDashboard": DeployMarketDashboard {
        app_id: AppId,
        /// Replaces the environment of the dashboard, at most 128 KiB of names and values. By default,
        /// the environment stays as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
    } -> Instance { who: Member of (app_id), effect: Change,
        errors: [NotFound "the app has no market server", NotNow "its template has no dashboard, or its state does not allow it"] }

    /// Deploy the storefront of a market server, or deploy it again.
    "svc_deployMarketStorefront": DeployMarketStorefront {
        app_id: AppId,
        /// Replaces the environment of the storefront, at most 128 KiB of names and values. By default,
        /// the environment stays as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
    } -> Instance { who: Member of (app_id), effect: Change,
        errors: [NotFound "the app has no market server", NotNow "its template has no storefront, or its state does not allow it"] }

    /// Start a stopped market server with all its services. A running market server stays as it is.
    "svc_startMarketServer": StartMarketServer {
        app_id: AppId,
        /// Where the volume with the data of a service is gone, begin with an empty one. What is there
        /// is kept.
        #[serde(default)]
        accept_data_loss: bool,
        /// Wait until the instance is at rest, for at most 25 seconds.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (app_id), effect: Change }

    /// Stop a market server with all its services. Its data is kept.
    "svc_stopMarketServer": StopMarketServer {
        app_id: AppId,
        /// Wait until the instance is at rest, for at most 25 seconds.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (app_id), effect: Change }

    /// Stop a market server and start it again.
    "svc_restartMarketServer": RestartMarketServer {
        app_id: AppId,
        /// Wait until the instance is at rest, for at most 25 seconds.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (app_id), effect: Change, errors: [NotNow "it is provisioning, starting or stopping"] }

    /// Read a market server and the current state of its services.
    "svc_getMarketServerStatus": GetMarketServerStatus { app_id: AppId } -> MarketServerStatus
    { who: Member of (app_id), effect: Read, scope: InstanceRead }
}

records! {
    /// A market server and the current state of its services.
    pub struct MarketServerStatus {
        /// The market server, as `svc_getBackendInstance` returns it.
        instance: Instance,
        /// The services of the market server: the same list as in `instance`.
        services: Vec<Service>,
    }
}
