//! The measured service: the real program in its own directory.

use crate::{
    client::Client,
    machine,
    outcome::{Explain, Outcome},
};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The time limit of a start.
const START_WITHIN: Duration = Duration::from_secs(60);

const ADMINISTRATOR: &str = "admin@example.com";
const PASSWORD: &str = "a password";

/// A running service. Dropping the value kills it.
pub struct Server {
    pub client: Client,
    pub dashboard: SocketAddr,
    /// The time until the service was ready.
    pub started_in: Duration,
    home: PathBuf,
    child: Child,
}

impl Server {
    /// Starts the service in `home` and waits until it is ready. The service does not limit
    /// anonymous callers, and has no container engine.
    pub fn start(home: &Path, workers: usize) -> Outcome<Server> {
        Server::start_with(home, workers, &[("SVC_DOCKER_HOST", "unix:///nonexistent")])
    }

    /// Starts the service like [`Server::start`], with these settings.
    pub fn start_with(home: &Path, workers: usize, settings: &[(&str, &str)]) -> Outcome<Server> {
        let program = machine::this_program()?.with_file_name("svc");
        if !program.exists() {
            return Err(format!("{} is missing: build it with make bench", program.display()));
        }
        let port = free_port()?;
        let log = File::create(home.join("log")).or_say("the log")?;
        let mut command = Command::new(program);
        command.arg("serve").current_dir(home).env("SVC_LISTEN", format!("127.0.0.1:{port}"));
        let dashboard = local(free_port()?);
        command.env("SVC_DASHBOARD_LISTEN", dashboard.to_string());
        command.env("SVC_LOG", "warn").env("SVC_WORKERS", workers.to_string());
        command.env("SVC_ANONYMOUS_TIER", "enterprise").stdin(Stdio::null());
        command.envs(settings.iter().copied());
        command.stdout(log.try_clone().or_say("the log")?).stderr(log);
        let begun = Instant::now();
        let child = command.spawn().or_say("the service")?;
        let client = Client::to(local(port));
        let mut server =
            Server { client, dashboard, started_in: Duration::ZERO, home: home.to_owned(), child };
        while server.client.get("/readyz").is_none_or(|answer| answer.status != 200) {
            let ended = server.child.try_wait().or_say("the service")?.is_some();
            if ended || begun.elapsed() > START_WITHIN {
                let log = std::fs::read_to_string(home.join("log")).unwrap_or_default();
                return Err(format!("the service did not start: {}", log.trim()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        server.started_in = begun.elapsed();
        server.client.application_id = secret(home, "keys", "applicationId")?;
        Ok(server)
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The host and the cookie with which the dashboard knows who has this session.
    pub fn signed_in(&self, session: &str) -> [(&'static str, String); 2] {
        let host = format!("localhost:{}", self.dashboard.port());
        [("Host", host), ("Cookie", format!("__Host-svc-session={session}"))]
    }

    /// The size of a page of the dashboard, for who has this session.
    pub fn page(&self, path: &str, session: &str) -> Outcome<usize> {
        self.page_from(Ipv4Addr::LOCALHOST, path, session)
    }

    /// The same for somebody at this address.
    pub fn page_from(&self, from: Ipv4Addr, path: &str, session: &str) -> Outcome<usize> {
        let dashboard = Client { from, ..Client::to(self.dashboard) };
        let headers = self.signed_in(session);
        dashboard.size(path, &headers.each_ref().map(|(name, value)| (*name, value.as_str())))
    }

    /// Opens a page or a stream of the dashboard, for who has this session at this address, and keeps the
    /// connection after the first bytes of the answer.
    pub fn follow(&self, from: Ipv4Addr, path: &str, session: &str) -> Outcome<TcpStream> {
        let dashboard = Client { from, ..Client::to(self.dashboard) };
        let mut connection = dashboard.connect()?;
        let [host, cookie] =
            self.signed_in(session).map(|(name, value)| format!("{name}: {value}"));
        let head = format!("GET {path} HTTP/1.1\r\n{host}\r\n{cookie}\r\n\r\n");
        connection.write_all(head.as_bytes()).or_say("the dashboard")?;
        let mut first = [0; 512];
        let length = connection.read(&mut first).or_say("the dashboard")?;
        let first = first.get(..length).unwrap_or_default();
        match first.starts_with(b"HTTP/1.1 200") {
            true => Ok(connection),
            false => Err(format!("{path}: {}", String::from_utf8_lossy(first))),
        }
    }

    /// Makes the first administrator, registers users without a rate limit, and returns their
    /// sessions. A server does it once.
    pub fn register(&self, users: usize) -> Outcome<Vec<String>> {
        let first = json!({
            "token": secret(&self.home, "first-start", "token")?,
            "email": ADMINISTRATOR,
            "password": PASSWORD,
        });
        let signed_in = self.client.call(None, "svc_createFirstAdministrator", &first)?;
        let administrator = signed_in.text("/result/sessionToken")?;
        let register = |n: usize| {
            let user = json!({"email": format!("user{n}@example.com"), "password": PASSWORD});
            let registered = self.client.call(None, "registerUser", &user)?;
            let id = registered.text("/result/user/id")?;
            let tier = json!({"userId": id, "tier": "enterprise"});
            self.client.call(Some(administrator), "svc_admin_setTier", &tier)?;
            registered.text("/result/sessionToken").map(str::to_owned)
        };
        (0..users).map(register).collect()
    }

    /// A session of the administrator that [`register`](Server::register) made.
    pub fn administrator(&self) -> Outcome<String> {
        let first = json!({"email": ADMINISTRATOR, "password": PASSWORD});
        let signed_in = self.client.call(None, "loginWithEmail", &first)?;
        signed_in.text("/result/sessionToken").map(str::to_owned)
    }

    /// Stops the service as an operator would, and waits until its process has ended.
    pub fn stop(mut self) -> Outcome<()> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().or_say("kill")?;
        self.child.wait().or_say("the service").map(|_| ())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A secret of the service in `home`, from one of its files.
pub fn secret(home: &Path, file: &str, field: &str) -> Outcome<String> {
    let path = home.join("data/run/secrets").join(file).with_extension("json");
    let text = std::fs::read_to_string(&path).or_say(path.display())?;
    let secrets: Value = serde_json::from_str(&text).or_say(path.display())?;
    Ok(secrets.get(field).and_then(Value::as_str).or_say(field)?.to_owned())
}

/// Waits until a program listens at the address.
pub fn listening(address: SocketAddr, who: &str) -> Outcome<()> {
    for _ in 0..200 {
        if TcpStream::connect(address).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("{who} did not start"))
}

pub fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind(local(0)).or_say("a free port")?;
    Ok(listener.local_addr().or_say("a free port")?.port())
}

pub fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
