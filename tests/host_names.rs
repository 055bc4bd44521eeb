//! Instances by host names of their own: by plain HTTP, in a browser, and over TLS behind Caddy.

use crate::{
    instances::backend,
    support::{
        browser::Browser,
        engine::engine,
        ports::free_port,
        requires,
        service::{Service, eventually},
    },
};
use reqwest::header::{CONTENT_SECURITY_POLICY, HOST};
use serde_json::{Value, json};
use std::process::{Child, Command, Output, Stdio};

/// The status of an answer of the service to a host.
pub fn status(service: &Service, host: &str, path: &str) -> u16 {
    let request = service.http.get(format!("{}{path}", service.url)).header(HOST, host);
    request.send().unwrap().status().as_u16()
}

/// The host of an address, with its port.
pub fn host(url: &Value) -> String {
    url.as_str().unwrap().split("://").nth(1).unwrap().to_owned()
}

/// Caddy with the file of the documentation, for names of this machine and with an authority of its own.
struct Caddy {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Caddy {
    fn start(service: &Service) -> Caddy {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let documented = include_str!("../docs/Caddyfile");
        let options = format!(
            "{{\nadmin off\nskip_install_trust\nauto_https disable_redirects\nhttp_port {}\nhttps_port {port}\n\
             storage file_system {}\non_demand_tls",
            free_port(),
            folder.path().display(),
        );
        let file = documented
            .replacen("{\n\ton_demand_tls", &options, 1)
            .replace("\ttls {", "\ttls internal {")
            .replace("dashboard.example.net {", "dashboard.localhost {\ntls internal")
            .replace("api.example.net {", "api.localhost {\ntls internal")
            .replace("apps.example.net", "apps.localhost")
            .replace("http://127.0.0.1:8080", &service.url)
            .replace("127.0.0.1:8080", service.url.trim_start_matches("http://"));
        let path = folder.path().join("Caddyfile");
        std::fs::write(&path, file).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut caddy = Command::new("caddy");
        caddy.args(["run", "--adapter", "caddyfile", "--config"]).arg(path).stderr(log);
        let caddy = caddy.env("HOME", folder.path()).stdin(Stdio::null());
        Caddy { child: caddy.spawn().unwrap(), port, folder }
    }

    /// Asks by name over TLS.
    fn get(&self, host: &str, path: &str) -> Output {
        let root = self.folder.path().join("pki/authorities/local/root.crt");
        let name = host.split(':').next().unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "20", "--cacert"]).arg(root);
        curl.args(["--resolve", &format!("{name}:{}:127.0.0.1", self.port)]);
        curl.arg(format!("https://{name}:{}{path}", self.port)).output().unwrap()
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{}", std::fs::read_to_string(self.folder.path().join("log")).unwrap());
        }
    }
}

#[test]
fn an_instance_has_a_host_of_its_own_also_behind_caddy() {
    let test = "an_instance_has_a_host_of_its_own_also_behind_caddy";
    if !requires::programs(test, &["caddy", "curl"]) {
        return;
    }
    let Some(engine) = engine(test) else { return };
    let mut service = engine.service(&[("SVC_PUBLIC_URL", "https://api.example.test")]);
    let (ada, _, instance) = backend(&service);
    let app = instance["appId"].as_str().unwrap();
    let path = format!("/instances/{app}/parse/health");
    let is_sandboxed = |service: &Service| {
        let url = format!("{}{path}", service.url);
        eventually("it answers by its path", || {
            service.http.get(&url).send().is_ok_and(|answer| answer.status() == 200)
        });
        let answer = service.http.get(&url).send().unwrap();
        let policy = answer.headers().get(CONTENT_SECURITY_POLICY);
        policy.is_some_and(|policy| policy.to_str().unwrap().starts_with("sandbox "))
    };
    assert!(is_sandboxed(&service), "anybody may make an instance");
    service.stop();
    service.set("SVC_REGISTRATION", "closed");
    service.boot();
    assert!(!is_sandboxed(&service));

    service.stop();
    service.set("SVC_REGISTRATION", "open");
    let url = service.url.clone();
    service.set("SVC_PUBLIC_URL", &url);
    service.set("SVC_INSTANCE_DOMAIN", "apps.localhost");
    service.boot();
    let ada = service.sign_in(&ada, "correct horse");
    let params = json!({"instanceId": instance["id"]});
    let instance = service.call(Some(&ada), "svc_getBackendInstance", params).ok();
    assert!(is_sandboxed(&service));
    let of_app = host(&instance["url"]);
    assert!(of_app.starts_with("app-") && of_app.contains(".apps.localhost:"), "{of_app}");
    let of_instance = of_app.replace(
        of_app.split('.').next().unwrap(),
        &instance["id"].as_str().unwrap().to_lowercase().replace('_', "-"),
    );

    for name in [&of_app, &of_instance] {
        assert_eq!(status(&service, name, "/parse/health"), 200, "{name}");
        // Nothing of the service is there.
        assert_eq!(status(&service, name, "/healthz"), 404, "{name}");
    }
    let port = service.url.rsplit(':').next().unwrap();
    assert_eq!(status(&service, &format!("127.0.0.1:{port}"), &path), 200, "by its path, too");
    for unknown in ["apps.localhost", "www.apps.localhost", "ins-1.apps.localhost"] {
        assert_eq!(status(&service, unknown, "/healthz"), 404, "{unknown}");
    }
    let ask = |name: &str| {
        let url = format!("{}/certificates/ask?domain={name}", service.url);
        service.http.get(url).send().unwrap().status().as_u16()
    };
    let name_of = |host: &str| host.split(':').next().unwrap().to_owned();
    assert_eq!(
        (ask(&name_of(&of_app)), ask("app-1.apps.localhost"), ask("evil.com")),
        (200, 404, 404)
    );

    if let Some(browser) = Browser::start(test) {
        let keep = "const [done] = arguments; document.cookie = 'a=1'; localStorage.setItem('a', '1'); \
                    done([document.cookie, localStorage.length])";
        let look = "const [done] = arguments; done([document.cookie, localStorage.length])";
        browser.open(&format!("http://{of_app}/parse/health"));
        assert_eq!(browser.run_async(keep), json!(["a=1", 1]));
        browser.open(&format!("http://{of_instance}/parse/health"));
        assert_eq!(browser.run_async(look), json!(["", 0]), "another host knows nothing of it");
        browser.open(&format!("http://{of_app}/parse/health"));
        assert_eq!(browser.run_async(look), json!(["a=1", 1]));
        // By its path, it has no origin at all.
        browser.open(&format!("{}{path}", service.url));
        let origin = "const [done] = arguments; done(self.origin)";
        assert_eq!(browser.run_async(origin), "null");
    }

    service.stop();
    service.set("SVC_PUBLIC_URL", "https://api.localhost");
    service.set("SVC_TRUSTED_PROXIES", "127.0.0.1");
    service.boot();
    let ada = service.sign_in(&ada, "correct horse");
    let named = || {
        let params = json!({"instanceId": instance["id"]});
        service.call(Some(&ada), "svc_getBackendInstance", params).ok()["url"].clone()
    };
    let named = host(&named());
    assert_eq!(named, name_of(&of_app), "the scheme and the port are those of the service");
    let caddy = Caddy::start(&service);
    let healthy = |host: &str, path: &str| {
        let answer = caddy.get(host, path);
        answer.status.success() && String::from_utf8_lossy(&answer.stdout).contains("ok")
    };
    eventually("the service answers behind Caddy", || healthy("api.localhost", "/healthz"));
    eventually("the instance answers behind Caddy", || healthy(&named, "/parse/health"));
    let scanned = caddy.get("app-1.apps.localhost", "/");
    assert_eq!(scanned.status.code(), Some(35), "no certificate for a scanner: {scanned:?}");
}
