//! PostgreSQL servers of the tests, each in a folder of its own.

use super::{
    disk::Disk,
    network::Place,
    requires::{self, is_root},
};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread::sleep,
    time::{Duration, Instant},
};

/// How long a server may take to start, also on a busy machine.
const STARTS: Duration = Duration::from_secs(120);
/// What differs from the defaults. A standby that was cut off is back within seconds, as docs/SCALING.md says.
const SETTINGS: [&str; 6] = [
    "max_connections=300",
    "shared_buffers=64MB",
    "max_wal_size=256MB",
    "wal_sender_timeout=5s",
    "wal_receiver_timeout=5s",
    "wal_retrieve_retry_interval=500ms",
];
/// The disk of a server at a place of a network, in KiB.
const DISK: u32 = 768 << 10;

/// A running server, which ends with this process at the latest.
pub struct Server {
    folder: PathBuf,
    /// Where it listens, if not only on a socket in its folder.
    place: Option<Place>,
    disk: Option<Disk>,
    /// The shell ends the server when this is closed, and removes the folder.
    alive: Option<ChildStdin>,
    shell: Child,
}

/// The server that the tests of this program share. `None`: PostgreSQL is missing, and this test is left out.
pub fn shared(test: &str) -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let server = SHARED.get_or_init(|| is_installed().then(Server::start)).as_ref();
    if server.is_none() {
        requires::programs(test, &["postgres"]);
    }
    server
}

/// The address of a new store on the shared server.
pub fn new_store(test: &str) -> Option<String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    Some(shared(test)?.address(&format!("s{}", NUMBER.fetch_add(1, Relaxed))))
}

impl Server {
    /// Makes a database and starts its server.
    pub fn start() -> Server {
        Server::start_at(None)
    }

    /// Makes a database and starts its server. At a place it listens there too, and has a disk of its own.
    pub fn start_at(place: Option<Place>) -> Server {
        let (folder, disk) = new_folder(place.as_ref());
        let data = data(&folder);
        std::fs::create_dir(&data).unwrap();
        give_away(&data);
        succeeded(
            program("initdb")
                .args([
                    "--auth=trust",
                    "--username=svc",
                    "--encoding=UTF8",
                    "--locale=C",
                    "--no-sync",
                    "-D",
                ])
                .arg(&data),
        );
        let mut access = File::options().append(true).open(data.join("pg_hba.conf")).unwrap();
        access.write_all(b"host all all all trust\nhost replication all all trust\n").unwrap();
        let (alive, shell) = run(&folder, place.as_ref());
        let server = Server { folder, place, disk, alive, shell };
        server.wait_until_it_answers();
        server
    }

    /// Kills all processes of the server. What it wrote stays on its disk.
    pub fn kill(&mut self) {
        let pid = &self.running().expect("a server that runs");
        // It makes no more of them meanwhile.
        succeeded(Command::new("kill").arg("-STOP").arg(pid));
        let children = Command::new("pgrep").args(["-P", pid]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        succeeded(Command::new("kill").arg("-KILL").arg(pid).args(children.split_whitespace()));
        self.has_ended();
        // As long as one of them has its memory, no server starts in this folder.
        let begun = Instant::now();
        while children.split_whitespace().any(is_alive) {
            assert!(begun.elapsed() < STARTS, "{children}");
            sleep(Duration::from_millis(5));
        }
    }

    /// The id of its process, if it runs.
    fn running(&self) -> Option<String> {
        let file = std::fs::read_to_string(data(&self.folder).join("postmaster.pid")).ok()?;
        let pid = file.lines().next()?;
        Path::new("/proc").join(pid).exists().then(|| pid.to_owned())
    }

    /// Its processes have ended, and the shell keeps the folder.
    fn has_ended(&mut self) {
        self.alive.take().unwrap().write_all(b"again\n").unwrap();
        self.shell.wait().unwrap();
    }

    /// Takes all room of its disk, until [`free`](Server::free).
    pub fn fill(&self) {
        self.disk.as_ref().expect("a disk of its own").fill();
    }

    /// Gives the room back. A server that could not write its log of changes has ended, and starts again.
    pub fn free(&mut self) {
        self.disk.as_ref().expect("a disk of its own").free();
        let begun = Instant::now();
        while !self.psql(&["select 1"]).status.success() {
            assert!(begun.elapsed() < STARTS, "{}", self.log());
            if self.running().is_none() {
                self.has_ended();
                return self.start_again();
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Starts the server again after [`kill`](Server::kill).
    pub fn start_again(&mut self) {
        (self.alive, self.shell) = run(&self.folder, self.place.as_ref());
        self.wait_until_it_answers();
    }

    fn wait_until_it_answers(&self) {
        let begun = Instant::now();
        while !self.psql(&["select 1"]).status.success() {
            assert!(begun.elapsed() < STARTS, "{}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    /// Starts a server that follows this one. With `synchronous`, this one acknowledges nothing that the other
    /// does not have.
    pub fn standby(&self, synchronous: bool) -> Server {
        self.standby_at(None, synchronous)
    }

    /// Like [`standby`](Server::standby). The standby listens at this place too, and reaches this server from there.
    pub fn standby_at(&self, place: Option<Place>, synchronous: bool) -> Server {
        let (folder, disk) = new_folder(place.as_ref());
        self.copy_to(&data(&folder));
        let (alive, shell) = run(&folder, place.as_ref());
        let standby = Server { folder, place, disk, alive, shell };
        standby.wait_until_it_answers();
        if synchronous {
            self.sql("alter system set synchronous_standby_names = '*'");
            self.sql("select pg_reload_conf()");
            let begun = Instant::now();
            while self.sql("select sync_state from pg_stat_replication") != "sync" {
                assert!(begun.elapsed() < STARTS, "{}", standby.log());
                sleep(Duration::from_millis(20));
            }
        }
        standby
    }

    /// Makes a copy of the running server that follows it: a base backup with the functions of the server, so that it
    /// may be of any version.
    fn copy_to(&self, to: &Path) {
        let copy = format!("\\! cp -a {} {}", data(&self.folder).display(), to.display());
        let begin = "select from pg_backup_start('standby', true)";
        let label = self.psql(&[begin, &copy, "select labelfile from pg_backup_stop()"]);
        assert!(label.status.success(), "{}", String::from_utf8_lossy(&label.stderr));
        std::fs::write(to.join("backup_label"), label.stdout.trim_ascii_start()).unwrap();
        std::fs::write(to.join("standby.signal"), "").unwrap();
        let _ = std::fs::remove_file(to.join("postmaster.pid"));
        let host = self.place.as_ref().map(|place| place.address.clone());
        let host = host.unwrap_or_else(|| self.folder.display().to_string());
        let settings = to.join("postgresql.auto.conf");
        let mut settings = File::options().append(true).open(settings).unwrap();
        writeln!(settings, "primary_conninfo = 'host={host} user=svc'").unwrap();
        for file in ["backup_label", "standby.signal"] {
            give_away(&to.join(file));
        }
    }

    /// Makes a standby take writes.
    pub fn promote(&self) {
        self.sql("alter system reset synchronous_standby_names");
        self.sql("select pg_promote()");
    }

    /// The address of a store in a schema of this server.
    pub fn address(&self, schema: &str) -> String {
        address(&[self], schema)
    }

    /// Runs SQL, and returns what it printed, one line for each row.
    pub fn sql(&self, text: &str) -> String {
        let output = self.psql(&[text]);
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Runs these commands in one session.
    fn psql(&self, commands: &[&str]) -> Output {
        let mut psql = Command::new(found("psql"));
        psql.arg("-h").arg(&self.folder);
        psql.args(["-U", "svc", "-d", "postgres", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        for command in commands {
            psql.args(["-c", command]);
        }
        psql.output().unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

/// A PgBouncer before a server, which gives a connection of its own to each transaction.
pub struct Pooler {
    folder: tempfile::TempDir,
    process: Child,
}

impl Pooler {
    /// `None`: PgBouncer is missing, and this test is left out.
    pub fn before(server: &Server, test: &str) -> Option<Pooler> {
        if !requires::programs(test, &["pgbouncer"]) {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("pool").tempdir().unwrap();
        give_away(folder.path());
        let (own, file) = (folder.path().display(), folder.path().join("pgbouncer.ini"));
        let settings = format!(
            "[databases]\npostgres = host={} user=svc\n[pgbouncer]\nunix_socket_dir = {own}\n\
             listen_port = 5432\nauth_type = any\npool_mode = transaction\nlogfile = {own}/log\n",
            server.folder.display()
        );
        std::fs::write(&file, settings).unwrap();
        let mut pooler = program("pgbouncer");
        pooler.arg("-q").arg(file).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        let process = pooler.spawn().unwrap();
        let begun = Instant::now();
        while !folder.path().join(".s.PGSQL.5432").exists() {
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < STARTS, "{log}");
            sleep(Duration::from_millis(20));
        }
        Some(Pooler { folder, process })
    }

    /// The address of a store in a schema of the server.
    pub fn address(&self, schema: &str) -> String {
        socket_address(&[self.folder.path()], schema)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The address of a store in a schema of the one of the servers at these places that takes writes.
pub fn address_at(places: &[Place], schema: &str) -> String {
    let hosts: Vec<_> = places.iter().map(|place| place.address.as_str()).collect();
    format!("postgres://svc@{}/postgres?schema={schema}&sslmode=disable", hosts.join(","))
}

/// The address of a store in a schema of the one of these servers that takes writes.
pub fn address(servers: &[&Server], schema: &str) -> String {
    let folders: Vec<_> = servers.iter().map(|server| server.folder.as_path()).collect();
    socket_address(&folders, schema)
}

fn socket_address(folders: &[&Path], schema: &str) -> String {
    let socket = |folder: &&Path| folder.display().to_string().replace('/', "%2F");
    let hosts: Vec<_> = folders.iter().map(socket).collect();
    format!("postgres://svc@{}/postgres?schema={schema}", hosts.join(","))
}

impl Drop for Server {
    fn drop(&mut self) {
        let was_killed = self.alive.take().is_none();
        let _ = self.shell.wait();
        self.disk = None;
        if was_killed {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The folder of a new server.
fn new_folder(place: Option<&Place>) -> (PathBuf, Option<Disk>) {
    let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap().keep();
    give_away(&folder);
    let own = folder.join("disk");
    std::fs::create_dir(&own).unwrap();
    let disk = place.map(|_| Disk::at(&own, DISK, "a database").expect("a disk"));
    give_away(&own);
    (folder, disk)
}

/// Where a server has its data.
fn data(folder: &Path) -> PathBuf {
    folder.join("disk/data")
}

/// Whether a process of this id has not ended. One that nobody has waited for has ended, too.
fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

/// Runs the server of a folder.
fn run(folder: &Path, place: Option<&Place>) -> (Option<ChildStdin>, Child) {
    // Rust drops no static values, so the shell ends the server when this process has ended.
    let run = "folder=$1; shift; \"$@\" & server=$!; read again; kill -INT $server; wait $server
        [ \"$again\" ] || { umount --quiet \"$folder/disk\"; rm -rf \"$folder\"; }";
    let postgres = program_at(place, "postgres");
    let mut shell = Command::new("sh");
    shell.args(["-c", run, "sh"]).arg(folder).arg(postgres.get_program()).args(postgres.get_args());
    shell.arg("-D").arg(data(folder)).arg("-k").arg(folder);
    shell.args(["-h", place.map_or("", |place| &place.address)]);
    for setting in SETTINGS {
        shell.args(["-c", setting]);
    }
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
    let mut shell = shell.current_dir("/").spawn().unwrap();
    (shell.stdin.take(), shell)
}

fn is_installed() -> bool {
    Command::new(found("postgres")).arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// A program of PostgreSQL. Debian has the server's programs in a folder of the version. The variable `TEST_POSTGRES`
/// names the folder of those of another version.
fn found(name: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("TEST_POSTGRES").map(PathBuf::from) {
        assert!(folder.join("postgres").exists(), "TEST_POSTGRES has no postgres");
        // A client of any version serves.
        let wanted = folder.join(name);
        if wanted.exists() {
            return wanted;
        }
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let program = versions.map(|version| version.path().join("bin").join(name));
    program.filter(|program| program.exists()).max().unwrap_or_else(|| name.into())
}

/// A program of the server, as a user that is not root: the server refuses to be root.
fn program(name: &str) -> Command {
    program_at(None, name)
}

fn program_at(place: Option<&Place>, name: &str) -> Command {
    if !is_root() {
        return Command::new(found(name));
    }
    let user = "setpriv";
    let mut command = place.map_or_else(|| Command::new(user), |place| place.command(user));
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(found(name));
    command
}

fn give_away(folder: &Path) {
    if is_root() {
        succeeded(Command::new("chown").arg("nobody:nogroup").arg(folder));
    }
}

fn succeeded(command: &mut Command) {
    let output = command.current_dir("/").output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
