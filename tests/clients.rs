//! The clients in Rust and in TypeScript, against the real program.

use crate::{
    support::checkouts::World,
    support::{lossy, ports::free_port, requires, service::Service},
};
use contract::{
    Cursor,
    apps::{CreateApp, GetApp},
    authentication::{ChangePassword, GetCurrentUser, LoginWithEmail, RegisterUser},
    checkouts::{CheckSubscription, CreateCheckout, PaymentStatus, VerifyCheckout},
    projects::{CreateProject, GetProjects, Project},
};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
    time::{Duration, Instant},
};
use svc_client::{Builder, Client, Error, Kind, Patience};

#[path = "../crates/svc-client/examples/first_app.rs"]
mod first_app;

const BRIEF: Patience = Patience {
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(5),
    ..Patience::BRIEF
};

fn start() -> Service {
    Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")])
}

/// An address where nothing listens.
fn nobody() -> String {
    format!("http://127.0.0.1:{}", free_port())
}

fn client(service: &Service, url: &str) -> Builder {
    let client = Client::builder(&format!("{url}/backend")).patience(BRIEF);
    client.application_id(&service.application_id)
}

/// The same caller by way of another address.
fn by_way_of(url: &str, service: &Service, caller: &Client) -> Builder {
    client(service, url).session_token(caller.session_token().unwrap())
}

async fn signed_up(service: &Service, name: &str) -> Client {
    let mut svc = client(service, &service.url).build().unwrap();
    svc.register_user(&person(name)).await.unwrap();
    svc
}

fn person(name: &str) -> RegisterUser {
    RegisterUser {
        invitation: None,
        email: format!("{name}@example.com").parse().unwrap(),
        password: "correct horse".parse().unwrap(),
        name: None,
    }
}

fn project(name: &str) -> CreateProject {
    CreateProject { name: name.parse().unwrap(), organization_id: None, description: None }
}

/// The ids of all projects with this name, of pages of two.
async fn projects(svc: &Client, name: &str) -> Vec<contract::ProjectId> {
    let limit = serde_json::from_value(json!(2)).unwrap();
    let page =
        |cursor: Option<Cursor>| GetProjects { organization_id: None, query: None, limit, cursor };
    let all: Vec<Project> = svc.list_all(page).await.unwrap();
    all.into_iter().filter(|project| project.name.as_str() == name).map(|p| p.id).collect()
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

#[test]
fn the_example_makes_a_first_app() {
    let service = start();
    let base_url = format!("{}/backend", service.url);
    let apps = run(first_app::run(&base_url, &service.application_id)).unwrap();
    assert_eq!(apps, ["Coffee", "Tea"], "the newest first");
}

#[test]
fn the_rust_client_keeps_sessions_and_has_typed_replies_and_errors() {
    let service = start();
    run(async {
        let mut ada = signed_up(&service, "ada").await;
        let me = ada.call(&GetCurrentUser {}).await.unwrap();
        assert_eq!(me.user.email.as_str(), "ada@example.com");
        let before = ada.session_token().map(str::to_owned);
        let change = ChangePassword {
            current_password: "correct horse".parse().unwrap(),
            new_password: "another horse".parse().unwrap(),
            revoke_tokens: false,
        };
        ada.change_password(&change).await.unwrap();
        assert_ne!(ada.session_token().map(str::to_owned), before);

        let shop = ada.call(&project("Shop")).await.unwrap();
        let app: CreateApp =
            serde_json::from_value(json!({"projectId": shop.id, "name": "Shop"})).unwrap();
        let app = ada.call(&app).await.unwrap();
        assert_eq!(ada.call(&GetApp { app_id: app.id }).await.unwrap().project_id, shop.id);

        let missing = GetApp { app_id: "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap() };
        let refused = ada.call(&missing).await.unwrap_err();
        let told = (refused.kind, refused.code(), refused.status);
        assert_eq!(told, (Kind::Refused, Some(101), Some(404)), "{refused}");
        assert!(refused.request_id.is_some() && refused.to_string().contains("no such app"));
        let create = contract::all().find(|spec| spec.name == "svc_createProject").unwrap();
        let invalid = ada.call_untyped(create, &json!({"name": ""})).await.unwrap_err();
        assert_eq!((invalid.code(), invalid.details()[0].field.as_str()), (Some(142), "name"));

        ada.logout().await.unwrap();
        assert_eq!(ada.session_token(), None);
        assert_eq!(ada.call(&GetCurrentUser {}).await.unwrap_err().status, Some(401));
        let password = "another horse".parse().unwrap();
        let login = LoginWithEmail { email: "ada@example.com".into(), password };
        assert_eq!(ada.login_with_email(&login).await.unwrap().user.id, me.user.id);
    });
}

#[test]
fn the_rust_client_makes_a_change_once() {
    let service = start();
    let lossy = lossy::gateway(&service.url);
    run(async {
        let ada = signed_up(&service, "ada").await;
        let through = by_way_of(&lossy, &service, &ada).build().unwrap();
        for _ in 0..5 {
            let made = through.call(&project("Once")).await.unwrap();
            assert_eq!(projects(&ada, "Once").await[0], made.id);
        }
        assert_eq!(projects(&ada, "Once").await.len(), 5);

        let hasty = through.clone().with_patience(Patience::NONE);
        let unclear = hasty.call(&project("Unclear")).await.unwrap_err();
        assert_eq!((unclear.kind, unclear.status), (Kind::Unclear, None), "{unclear}");
        let key = unclear.idempotency_key.unwrap();
        let made = ada.call_once(&key, &project("Unclear")).await.unwrap();
        assert_eq!(projects(&ada, "Unclear").await, [made.id]);

        // A session is shown once: the call is not repeated, and the account is there.
        let mut bob = client(&service, &lossy).build().unwrap();
        assert_eq!(bob.register_user(&person("bob")).await.unwrap_err().kind, Kind::Unclear);
        let password = "correct horse".parse().unwrap();
        let login = LoginWithEmail { email: "bob@example.com".into(), password };
        let mut bob = client(&service, &service.url).build().unwrap();
        bob.login_with_email(&login).await.unwrap();

        let nowhere = by_way_of(&nobody(), &service, &ada).build().unwrap();
        let unreachable: Error = nowhere.call(&project("Never")).await.unwrap_err();
        assert_eq!(unreachable.kind, Kind::Unreachable, "{unreachable}");
    });
}

#[test]
fn the_rust_client_takes_a_payment_once() {
    let Some(world) = World::new("the_rust_client_takes_a_payment_once", &[]) else { return };
    let buyer = client(&world.service, &lossy::gateway(&world.service.url)).build().unwrap();
    run(async {
        let order: CreateCheckout = serde_json::from_value(json!({
            "flow": "direct", "appId": world.app, "amount": 450_000, "currency": "NGN",
            "customer": {"email": "bob@example.com"},
        }))
        .unwrap();
        let checkout = buyer.call_once("cart-1", &order).await.unwrap();
        assert_eq!(buyer.call_once("cart-1", &order).await.unwrap(), checkout);
        let paid = buyer.http().post(checkout.checkout_url.as_str()).body("action=pay");
        assert!(paid.send().await.unwrap().status().is_redirection());
        let verify = VerifyCheckout { reference: checkout.reference };
        let patience = Instant::now() + Duration::from_secs(30);
        while buyer.call(&verify).await.unwrap().status != PaymentStatus::Paid {
            assert!(Instant::now() < patience, "it is not paid");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        let (email, app_id) = ("bob@example.com".parse().unwrap(), order.app_id);
        let check = buyer.call(&CheckSubscription { email, app_id }).await.unwrap();
        assert!(!check.active);
    });
    world.check();
}

#[test]
fn the_rust_client_tells_of_a_limit_or_waits_for_it() {
    let service = start();
    run(async {
        let ada = signed_up(&service, "ada").await;
        let mut refused = None;
        for _ in 0..200 {
            refused = ada.call(&GetCurrentUser {}).await.err();
            if refused.is_some() {
                break;
            }
        }
        let refused = refused.unwrap();
        assert_eq!((refused.kind, refused.code()), (Kind::Limited, Some(429)), "{refused}");
        assert!(refused.retry_after >= Some(Duration::from_secs(1)));
        let patience = Patience { waits_for_limits: true, attempts: 5, ..BRIEF };
        ada.with_patience(patience).call(&GetCurrentUser {}).await.unwrap();
    });
}

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/typescript")
}

fn succeeded(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    let printed = format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    assert!(output.status.success(), "{printed}");
    printed
}

/// Builds the package as it would be packed, from the document as it is now. Returns whether its
/// tests can run.
fn built(test: &str) -> bool {
    static BUILT: OnceLock<()> = OnceLock::new();
    if !requires::node_packages_in(test, &package()) || !requires::programs(test, &["npm"]) {
        return false;
    }
    BUILT.get_or_init(|| {
        let build = Command::new("npm").args(["run", "build"]).current_dir(package()).output();
        succeeded(&build.unwrap());
    });
    true
}

/// Runs a file of tests of the package against a service of its own.
fn tested(test: &str, file: &str) {
    let Some(world) = World::new(test, &[]) else { return };
    let World { service, ada, app, .. } = &world;
    let mut node = Command::new("node");
    node.args(["--test", "--test-timeout=120000", file]).current_dir(package());
    node.env("URL", &service.url).env("APP_ID", &service.application_id);
    node.env("LOSSY_URL", lossy::gateway(&service.url)).env("NOBODY_URL", nobody());
    node.env("SELLER_TOKEN", &ada.token).env("SELLING_APP", app.as_str().unwrap());
    let printed = succeeded(&node.output().unwrap());
    assert!(!printed.contains("tests 0"), "{printed}");
    world.check();
}

#[test]
fn the_typescript_client_works_in_node() {
    let test = "the_typescript_client_works_in_node";
    if built(test) {
        tested(test, "test/node.test.mjs");
    }
}

#[test]
fn the_typescript_client_works_in_chromium() {
    let test = "the_typescript_client_works_in_chromium";
    if built(test) && requires::programs(test, &["chromium"]) {
        tested(test, "test/browser.test.mjs");
    }
}

#[test]
fn the_types_and_examples_of_the_typescript_client_hold() {
    let test = "the_types_and_examples_of_the_typescript_client_hold";
    if built(test) {
        tested(test, "test/examples.test.mjs");
    }
}
