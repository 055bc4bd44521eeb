//! An authority that issues certificates: Pebble, an independent ACME server, with a name server of its own.

use super::{ports::free_port, service::eventually};
use serde_json::json;
use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

/// The authority. It believes that every name leads to this machine.
pub struct Authority {
    folder: tempfile::TempDir,
    /// Where it proves names: the ports of the service.
    pub proves_at: (u16, u16),
    ports: Ports,
    names: Child,
    issuer: Option<Child>,
    /// The keys of its customers, by their ids. With keys, it has no other customers.
    customers: serde_json::Value,
    http: reqwest::blocking::Client,
}

#[derive(Clone, Copy)]
struct Ports {
    directory: u16,
    management: u16,
    dns: u16,
    dns_management: u16,
}

impl Authority {
    /// Starts it. It asks for proofs at these ports, over HTTP and over TLS.
    pub fn start(http: u16, tls: u16) -> Authority {
        let folder = tempfile::tempdir().unwrap();
        let [directory, management, dns, dns_management] = std::array::from_fn(|_| free_port());
        let ports = Ports { directory, management, dns, dns_management };
        // A certificate that is an authority by itself is none of a server.
        std::fs::write(folder.path().join("empty.cnf"), "[req]\ndistinguished_name=d\n[d]\n")
            .unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-config", "empty.cnf", "-x509", "-newkey", "ec", "-nodes"]);
        openssl.args([
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-days",
            "30",
            "-subj",
            "/CN=localhost",
        ]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
        openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]);
        let made = openssl.current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let log = File::create(folder.path().join("names.log")).unwrap();
        let mut names = Command::new("pebble-challtestsrv");
        names.args([
            "-defaultIPv4",
            "127.0.0.1",
            "-defaultIPv6",
            "",
            "-http01",
            "",
            "-https01",
            "",
        ]);
        names.args(["-tlsalpn01", "", "-dns01", &format!("127.0.0.1:{dns}")]);
        names.args(["-management", &format!("127.0.0.1:{dns_management}")]);
        let names = names.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let names = names.spawn().unwrap();
        let client = reqwest::blocking::Client::builder().danger_accept_invalid_certs(true);
        let http_client = client.build().unwrap();
        let (proves_at, issuer) = ((http, tls), None);
        let (http, customers) = (http_client, json!({}));
        let mut it = Authority { folder, proves_at, ports, names, issuer, customers, http };
        it.open(&[]);
        it
    }

    /// Starts it again for customers alone: the ids of their keys, and the keys in base64url.
    pub fn open_to(&mut self, customers: serde_json::Value) {
        self.customers = customers;
        self.open(&[]);
    }

    /// Starts it again, with no memory of accounts, orders and its own keys.
    pub fn open(&mut self, variables: &[(&str, &str)]) {
        self.close();
        let Ports { directory, management, dns, .. } = self.ports;
        let settings = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{directory}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": "cert.pem", "privateKey": "key.pem",
            "httpPort": self.proves_at.0, "tlsPort": self.proves_at.1,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": self.customers != json!({}),
            "externalAccountMACKeys": self.customers,
            "certificateValidityPeriod": 90 * 24 * 3600,
        }});
        let path = self.folder.path().join("pebble.json");
        std::fs::write(path, settings.to_string()).unwrap();
        let log = self.folder.path().join("issuer.log");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut issuer = Command::new("pebble");
        issuer.args([
            "-config",
            "pebble.json",
            "-strict",
            "-dnsserver",
            &format!("127.0.0.1:{dns}"),
        ]);
        issuer.current_dir(self.folder.path()).stdin(Stdio::null());
        issuer.envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_AUTHZREUSE", "0")]);
        issuer.envs(variables.iter().copied()).stdout(log.try_clone().unwrap()).stderr(log);
        self.issuer = Some(issuer.spawn().unwrap());
        let root = format!("https://127.0.0.1:{management}/roots/0");
        eventually("the authority is up", || {
            let root = self.http.get(&root).send().and_then(|answer| answer.bytes());
            root.is_ok_and(|root| std::fs::write(self.root(), root).is_ok())
        });
    }

    /// Stops it.
    pub fn close(&mut self) {
        if let Some(mut issuer) = self.issuer.take() {
            let _ = issuer.kill();
            let _ = issuer.wait();
        }
    }

    /// The settings of a service that obtains its certificates here.
    pub fn settings(&self) -> [(&'static str, String); 2] {
        let root = self.folder.path().join("cert.pem");
        [
            ("SVC_ACME_DIRECTORY", format!("https://localhost:{}/dir", self.ports.directory)),
            ("SVC_ACME_ROOT", root.display().to_string()),
        ]
    }

    /// The file with the certificate that signs all others.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// Tells the name server something, such as `add-a`.
    pub fn tell_names(&self, what: &str, body: &serde_json::Value) {
        let url = format!("http://127.0.0.1:{}/{what}", self.ports.dns_management);
        assert!(self.http.post(url).json(body).send().unwrap().status().is_success());
    }

    /// The address of the name server.
    pub fn name_server(&self) -> String {
        format!("127.0.0.1:{}", self.ports.dns)
    }

    /// A program that writes records at the name server, as operators have one for theirs.
    pub fn dns_hook(&self) -> PathBuf {
        let path = self.folder.path().join("dns-hook");
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = present ] && what=set-txt || what=clear-txt\n\
             curl --silent --fail --data '{{\"host\":\"'\"${{2%.}}\"'.\",\"value\":\"'\"$3\"'\"}}' \
             http://127.0.0.1:{}/$what\n",
            self.ports.dns_management
        );
        std::fs::write(&path, script).unwrap();
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&path, permissions).unwrap();
        path
    }

    /// How many lines of its log contain this.
    pub fn logged(&self, text: &str) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("issuer.log")).unwrap();
        log.lines().filter(|line| line.contains(text)).count()
    }

    /// Asks a host name of this machine over TLS, and trusts only this authority.
    pub fn get(&self, host: &str, path: &str, arguments: &[&str]) -> Output {
        let port = self.proves_at.1;
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "30", "--cacert"]).arg(self.root());
        curl.args(["--resolve", &format!("{host}:{port}:127.0.0.1")]).args(arguments);
        curl.arg(format!("https://{host}:{port}{path}")).output().unwrap()
    }

    /// A file with the certificates that a host name is served with.
    pub fn served(&self, host: &str) -> PathBuf {
        let script = "openssl s_client -connect \"$0\" -servername \"$1\" -showcerts </dev/null 2>/dev/null > \"$2\"";
        let file = self.folder.path().join("served.pem");
        let at = format!("127.0.0.1:{}", self.proves_at.1);
        let asked = Command::new("sh").args(["-c", script, &at, host]).arg(&file).status();
        assert!(asked.unwrap().success(), "{host}");
        file
    }

    /// A file with the certificates that lego gets for a host name by such a proof.
    pub fn obtained_by_lego(&self, host: &str, proof: &[&str]) -> PathBuf {
        let [(_, directory), (_, root)] = self.settings();
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        let mut lego = Command::new("lego");
        lego.args(["--server", &directory, "--accept-tos", "--email", "ada@example.test"]);
        lego.args(["--domains", host, "--path"]).arg(&folder).args(proof).arg("run");
        lego.envs([
            ("LEGO_CA_CERTIFICATES", root),
            ("EXEC_PATH", self.dns_hook().display().to_string()),
        ]);
        let ran = lego.output().unwrap();
        assert!(ran.status.success(), "{proof:?}: {}", String::from_utf8_lossy(&ran.stderr));
        folder.join(format!("certificates/{host}.crt"))
    }

    /// The serial number of the certificate of a host name.
    pub fn serial(&self, host: &str) -> String {
        let port = self.proves_at.1;
        let script = format!(
            "openssl s_client -connect 127.0.0.1:{port} -servername {host} </dev/null 2>/dev/null \
             | openssl x509 -noout -serial"
        );
        let said = Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.close();
        let _ = self.names.kill();
        let _ = self.names.wait();
        if std::thread::panicking() {
            println!("{}", std::fs::read_to_string(self.folder.path().join("issuer.log")).unwrap());
        }
    }
}
