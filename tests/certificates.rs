//! TLS by the service itself, with certificates of an independent authority.

use crate::{
    instances::backend,
    library,
    support::{
        authority::Authority,
        engine::engine,
        ports::free_port,
        requires,
        service::{Service, eventually},
    },
};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Output},
    time::Duration,
};

/// A service that serves `api.example.test` and `dash.example.test` over TLS.
struct Secure {
    service: Service,
    authority: Authority,
}

fn secure(test: &str) -> Option<Secure> {
    let mut service = Service::start();
    let authority = with_authority(test, &mut service)?;
    Some(Secure { service, authority })
}

/// Starts an authority, and the service once more with certificates of it.
pub fn with_authority(test: &str, service: &mut Service) -> Option<Authority> {
    if !requires::programs(test, &["pebble", "pebble-challtestsrv", "curl", "openssl"]) {
        return None;
    }
    let tls = free_port();
    service.stop();
    let plain = service.url.rsplit(':').next().unwrap().parse().unwrap();
    let authority = Authority::start(plain, tls);
    for (name, value) in authority.settings() {
        service.set(name, &value);
    }
    service.set("SVC_HTTPS_LISTEN", &format!("127.0.0.1:{tls}"));
    service.set("SVC_PUBLIC_URL", &format!("https://api.example.test:{tls}"));
    service.set("SVC_DASHBOARD_URL", &format!("https://dash.example.test:{tls}"));
    service.boot();
    Some(authority)
}

/// The certificate of a host name, as operators see it.
fn certificate(service: &Service, host: &str) -> Value {
    let admin = service.administrator();
    let all = service.call(Some(&admin), "svc_admin_getCertificates", json!({})).ok();
    let all = all["items"].as_array().unwrap().clone();
    all.into_iter().find(|one| one["hostName"] == host).unwrap_or(Value::Null)
}

impl Secure {
    fn get(&self, host: &str, path: &str) -> Output {
        self.authority.get(host, path, &[])
    }

    /// Waits until a host name is served: a busy machine may not have the certificate in time for a client.
    fn says(&self, host: &str, path: &str, text: &str) {
        eventually(&format!("{host}{path} says {text}"), || {
            let answer = self.get(host, path);
            answer.status.success() && String::from_utf8_lossy(&answer.stdout).contains(text)
        });
    }

    fn certificate(&self, host: &str) -> Value {
        certificate(&self.service, host)
    }

    /// Waits for a state, with few enough calls for an administrator.
    fn comes_to(&self, what: &str, host: &str, is_so: fn(&Value) -> bool) {
        eventually(what, || {
            std::thread::sleep(Duration::from_secs(1));
            is_so(&self.certificate(host))
        });
    }

    fn renew(&self, host: &str) {
        let id = self.certificate(host)["id"].clone();
        let params = json!({"certificateId": id});
        self.service
            .call(Some(&self.service.administrator()), "svc_admin_renewCertificate", params)
            .ok();
    }
}

#[test]
fn a_certificate_is_obtained_served_replaced_and_renewed() {
    let test = "a_certificate_is_obtained_served_replaced_and_renewed";
    let Some(mut it) = secure(test) else { return };
    it.says("api.example.test", "/healthz", "ok");
    it.says("dash.example.test", "/sign-in", "<html");
    for stranger in ["www.example.test", "api.example.test.evil.test", "localhost"] {
        let refused = it.get(stranger, "/");
        assert_eq!(refused.status.code(), Some(35), "{stranger}: {refused:?}");
    }
    let names = ["api.example.test", "dash.example.test"];
    let states: Vec<_> = names.map(|name| it.certificate(name)["state"].clone()).into();
    assert_eq!(states, ["valid", "valid"]);
    assert_eq!(it.certificate("www.example.test"), Value::Null);

    // Operators see them on the dashboard, which is served so too.
    let session = it.service.administrator().token.replace(':', "%3A");
    let cookie = format!("__Host-svc-session={session}");
    let at = "/operations/certificates";
    let page = it.authority.get("dash.example.test", at, &["--cookie", &cookie]).stdout;
    let page = String::from_utf8(page).unwrap();
    assert!(names.iter().all(|name| page.contains(name)) && page.contains("Valid"), "{page}");

    // Who asks for a name without TLS is sent there; who asks by address is not.
    let plain = |host: &str| {
        let url = format!("{}/healthz?a=b", it.service.url);
        let client = reqwest::blocking::Client::builder();
        let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let answer = client.get(url).header(reqwest::header::HOST, host).send().unwrap();
        let to = answer.headers().get("location").map(|to| to.to_str().unwrap().to_owned());
        (answer.status().as_u16(), to.unwrap_or_default())
    };
    let (status, to) = plain("api.example.test");
    assert!(status == 307 && to.ends_with("/healthz?a=b"), "{status} {to}");
    assert!(to.starts_with("https://api.example.test:"), "{to}");
    assert_eq!(plain("127.0.0.1").0, 200);

    // Another start serves the same certificate, also without the authority.
    let first = it.authority.serial("api.example.test");
    it.authority.close();
    it.service.kill();
    it.service.boot();
    it.says("api.example.test", "/healthz", "ok");
    assert_eq!(it.authority.serial("api.example.test"), first);

    // The authority forgot the account, and has other roots: a new account is opened.
    it.authority.open(&[]);
    it.renew("api.example.test");
    eventually("another certificate serves", || it.authority.serial("api.example.test") != first);
    it.says("api.example.test", "/healthz", "ok");
    let second = it.authority.serial("api.example.test");

    // After two thirds of its lifetime it is renewed, and what leads to nothing any more is forgotten.
    it.service.stop();
    it.service.set("SVC_CLOCK_AHEAD", &(61 * 86_400).to_string());
    it.service.set("SVC_DASHBOARD_URL", "https://other.example.test");
    it.service.boot();
    eventually("it is renewed", || it.authority.serial("api.example.test") != second);
    it.comes_to("the other name is forgotten", "dash.example.test", Value::is_null);
    // The clock is so far ahead that the new one is due for its renewal as well.
    let third = it.authority.serial("api.example.test");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(it.authority.serial("api.example.test"), third);
}

/// lego is another client of such authorities. It proves the name where the service did, once that is stopped.
#[test]
fn a_certificate_is_like_that_which_another_client_gets() {
    let test = "a_certificate_is_like_that_which_another_client_gets";
    if !requires::programs(test, &["lego"]) {
        return;
    }
    let Some(mut it) = secure(test) else { return };
    let name = "api.example.test";
    it.says(name, "/healthz", "ok");
    let served = described(&it.authority.served(name));
    it.service.stop();
    let (http, tls) = it.authority.proves_at;
    let [http, tls] = [http, tls].map(|port| format!("127.0.0.1:{port}"));
    let names = it.authority.name_server();
    let ways: [(&str, &[&str]); 3] = [
        ("TLS-ALPN-01", &["--tls", "--tls.port", &tls]),
        ("HTTP-01", &["--http", "--http.port", &http]),
        ("DNS-01", &["--dns", "exec", "--dns.disable-cp", "--dns.resolvers", &names]),
    ];
    for (challenge, way) in ways {
        let obtained = it.authority.obtained_by_lego(name, way);
        assert_eq!(described(&obtained), served, "{challenge}");
    }
}

/// What the certificates of a file say, without their keys, numbers and times.
fn described(file: &Path) -> String {
    let script = "openssl x509 -in \"$0\" -noout \
        -ext subjectAltName,basicConstraints,keyUsage,extendedKeyUsage && \
        openssl crl2pkcs7 -nocrl -certfile \"$0\" | openssl pkcs7 -print_certs -noout";
    let said = Command::new("sh").args(["-c", script]).arg(file).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn an_authority_that_knows_its_customers_gives_certificates_to_them_alone() {
    let test = "an_authority_that_knows_its_customers_gives_certificates_to_them_alone";
    let Some(mut it) = secure(test) else { return };
    let (id, key) = ("kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W");
    it.authority.open_to(json!({id: key}));
    let name = "api.example.test";
    assert_eq!(it.get(name, "/").status.code(), Some(35));
    it.comes_to("the attempt has failed", name, |certificate| certificate["failures"] == 1);
    let why = it.certificate(name)["error"].to_string();
    assert!(why.contains("set SVC_ACME_EAB_KID"), "{why}");
    for (key, expected) in
        [("b10lLJs8l1GPIzsLP0s6pMt8O0XVGnfTaCeROxQM0BI", "failing"), (key, "valid")]
    {
        it.service.stop();
        it.service.set("SVC_ACME_EAB_KID", id);
        it.service.set("SVC_ACME_EAB_HMAC", key);
        it.service.boot();
        let failures = it.certificate(name)["failures"].as_u64();
        it.renew(name);
        eventually("it was tried", || {
            std::thread::sleep(Duration::from_secs(1));
            let now = it.certificate(name);
            now["state"] == "valid" || now["failures"].as_u64() > failures
        });
        assert_eq!(it.certificate(name)["state"], expected);
    }
    it.says(name, "/healthz", "ok");
    assert!(!it.service.log().contains(key));
}

#[test]
fn a_name_that_leads_elsewhere_fails_visibly_and_recovers() {
    let test = "a_name_that_leads_elsewhere_fails_visibly_and_recovers";
    let Some(it) = secure(test) else { return };
    let name = "api.example.test";
    it.authority
        .tell_names("add-a", &json!({"host": format!("{name}."), "addresses": ["127.9.9.9"]}));
    assert_eq!(it.get(name, "/").status.code(), Some(35));
    it.comes_to("the attempt has failed", name, |certificate| certificate["failures"] == 1);
    let failed = it.certificate(name);
    assert_eq!((&failed["state"], &failed["failures"]), (&json!("failing"), &json!(1)));
    let why = failed["error"].as_str().unwrap();
    assert!(why.contains("127.9.9.9") || why.contains("onnect"), "{why}");
    // Clients ask again and again: the authority is not asked before its pause is over.
    for _ in 0..5 {
        assert_eq!(it.get(name, "/").status.code(), Some(35));
    }
    assert_eq!(it.certificate(name)["failures"], 1);
    let admin = it.service.administrator();
    let attention = it.service.call(Some(&admin), "svc_admin_getOverview", json!({})).ok();
    let attention = attention["attention"].as_array().unwrap().clone();
    let shown = attention.iter().find(|entry| entry["reason"] == "certificateFailing").unwrap();
    assert!(shown["detail"].as_str().unwrap().contains(name), "{shown}");
    // The second attempt proves the name over HTTP.
    it.authority.tell_names("clear-a", &json!({"host": format!("{name}.")}));
    it.renew(name);
    it.says(name, "/healthz", "ok");
    assert_eq!(it.certificate(name)["state"], "valid");
    assert_eq!(it.certificate(name)["error"], Value::Null);
    assert!(it.authority.logged("Attempting to validate w/ HTTP") > 0);
}

#[test]
fn names_that_are_opened_at_once_share_one_account() {
    let test = "names_that_are_opened_at_once_share_one_account";
    let Some(it) = secure(test) else { return };
    let names = ["api.example.test", "dash.example.test"];
    std::thread::scope(|scope| {
        for turn in 0..16 {
            let it = &it;
            scope.spawn(move || it.says(names[turn % 2], "/", ""));
        }
    });
    assert_eq!(it.authority.logged("accounts in memory"), 1);
    assert_eq!(it.authority.logged("orders in the db"), 2);
}

#[test]
fn an_order_goes_on_after_a_kill() {
    let test = "an_order_goes_on_after_a_kill";
    let Some(mut it) = secure(test) else { return };
    // The authority takes up to ten seconds to look at the name. It finds what it wants also while there is no
    // service: which look comes when is not the point, nor whether one comes between the kill and the start.
    it.authority.open(&[
        ("PEBBLE_VA_NOSLEEP", "0"),
        ("PEBBLE_VA_SLEEPTIME", "10"),
        ("PEBBLE_VA_ALWAYS_VALID", "1"),
    ]);
    it.service.administrator();
    std::thread::scope(|scope| {
        let Secure { service, authority } = &mut it;
        scope.spawn(|| authority.get("api.example.test", "/", &[]));
        eventually("the authority looks at the name", || authority.logged("Starting 3 valid") > 0);
        assert_eq!(certificate(service, "api.example.test")["state"], "ordering");
        service.kill();
    });
    it.service.boot();
    it.says("api.example.test", "/healthz", "ok");
    assert_eq!(it.certificate("api.example.test")["state"], "valid");
    assert_eq!(it.authority.logged("orders in the db"), 1, "no second order");
}

/// Maps all names to this machine, as DNS would. The library stays as it is.
const NAMES: &str = "const dns = require('node:dns'); dns.lookup = (name, options, done) => \
    options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);";

#[test]
fn the_parse_library_reaches_a_backend_by_its_host_name_over_tls() {
    let test = "the_parse_library_reaches_a_backend_by_its_host_name_over_tls";
    let Some(engine) = engine(test).filter(|_| library::installed(test)) else { return };
    let mut service = engine.service(&[]);
    let Some(authority) = with_authority(test, &mut service) else { return };
    service.stop();
    service.set("SVC_INSTANCE_DOMAIN", "apps.example.test");
    service.set("SVC_ACME_DNS_HOOK", &authority.dns_hook().display().to_string());
    service.boot();
    let (_, _, instance) = backend(&service);
    let url = instance["url"].as_str().unwrap();
    assert!(url.starts_with("https://app-") && url.contains(".apps.example.test:"), "{url}");
    let script = "
        const Parse = require('parse/node');
        (async () => {
            Parse.initialize(process.env.APP_ID);
            Parse.serverURL = process.env.URL + '/parse';
            const user = await Parse.User.signUp('ada', 'correct horse');
            const hello = await Parse.Cloud.run('hello', { name: user.get('username') });
            console.log(hello);
        })().catch((e) => { console.error(e); process.exit(1); });";
    let run = library::run(
        Command::new("node")
            .args(["-e", &format!("{NAMES}{script}")])
            .env("APP_ID", instance["appId"].as_str().unwrap())
            .env("NODE_EXTRA_CA_CERTS", authority.root())
            .env("URL", url),
    );
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{printed}{}", String::from_utf8_lossy(&run.stderr));
    assert!(printed.contains("Hello, ada"), "{printed}");

    // The other names of the instance are served with the same certificate, and only those that exist.
    let host = url.trim_start_matches("https://").split(':').next().unwrap();
    let id = instance["id"].as_str().unwrap().to_lowercase().replace('_', "-");
    let other = format!("{id}.apps.example.test");
    assert!(authority.get(&other, "/parse/health", &[]).status.success());
    assert_eq!(authority.serial(&other), authority.serial(host));
    let wildcard = certificate(&service, "*.apps.example.test");
    assert_eq!(wildcard["state"], "valid", "{wildcard}");
    let orders = authority.logged("orders in the db");
    let unknown = authority.get("ins-1.apps.example.test", "/", &[]);
    assert!(String::from_utf8_lossy(&unknown.stdout).contains("instance"), "{unknown:?}");
    assert_eq!(authority.logged("orders in the db"), orders);
}
