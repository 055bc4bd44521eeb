//! Walls around networks, on the real engine: what containers there reach, and what they do not.

use super::real::{Real, on_docker};
use container_engine::{ContainerSpec, Engine, EngineError, Labels, Peers, docker::Docker};
use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    process::Command,
    time::Duration,
};
use tokio::{io::AsyncReadExt, net::TcpListener, time::timeout};

/// Private and special networks, as those of the service.
fn closed() -> Vec<(IpAddr, u8)> {
    let networks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "::/3"];
    let parse = |network: &str| {
        let (address, bits) = network.split_once('/').unwrap();
        (address.parse().unwrap(), bits.parse().unwrap())
    };
    networks.map(parse).into()
}

/// A container of the test on a network of this name.
fn spec(real: &Real, what: &str, network: &str) -> ContainerSpec {
    let bench = real.bench();
    ContainerSpec { network: bench.name(network), ..bench.spec(what) }
}

async fn start(docker: &Docker, spec: &ContainerSpec) {
    docker.ensure_network(&spec.network, &spec.labels).await.unwrap();
    docker.ensure_container(spec).await.unwrap();
    docker.start(&spec.name).await.unwrap();
}

/// What becomes of a program in the container that connects to this address.
#[derive(Debug, PartialEq)]
enum Tried {
    Connected,
    /// As the rules refuse: at once, and not as a port where nobody listens.
    Refused,
    /// No answer came.
    Dropped,
    Other(String),
}

async fn try_from(real: &Real, container: &str, host: &str, port: u16) -> Tried {
    let connect = format!("exec 3<>/dev/tcp/{host}/{port}");
    let ran = real.bench().run_in(container, &["timeout", "5", "bash", "-c", &connect]).await;
    match (ran.exit, String::from_utf8_lossy(&ran.err).into_owned()) {
        (Some(0), _) => Tried::Connected,
        (_, said) if said.contains("No route to host") => Tried::Refused,
        (Some(124), _) => Tried::Dropped,
        (exit, said) => Tried::Other(format!("{exit:?} {said}")),
    }
}

/// The address of a container on its network.
async fn address(real: &Real, spec: &ContainerSpec) -> String {
    let found = real.behind().inspect_container(&spec.name, None).await.unwrap();
    let networks = found.network_settings.unwrap().networks.unwrap();
    networks[&spec.network].ip_address.clone().unwrap()
}

async fn gateway(real: &Real, network: &str) -> String {
    let found = real.behind().inspect_network(network, None).await.unwrap();
    found.ipam.unwrap().config.unwrap()[0].gateway.clone().unwrap()
}

/// The address from which this machine reaches others.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("198.51.100.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}

/// The container that keeps the walls of networks with these labels.
fn keeper(labels: &Labels) -> String {
    let whose = labels.values().next().unwrap();
    docker(&["ps", "--quiet", "--filter", &format!("label=svc.walls={whose}")])
}

async fn keeper_ends(labels: &Labels) {
    while !keeper(labels).is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn docker(args: &[&str]) -> String {
    let ran = Command::new("docker").args(args).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// Runs a program of the helpers, from the image of this keeper, in a network.
fn helper(image_of: &str, network: &str, command: &[&str]) -> String {
    let image = docker(&["inspect", image_of, "--format", "{{.Image}}"]);
    let run = ["run", "--rm", "--user=0", "--cap-add=NET_ADMIN", "--network", network];
    let run = [&run[..], &["--entrypoint", command[0], &image], &command[1..]].concat();
    docker(&run)
}

fn walled(real: &Real, labels: &Labels) -> Docker {
    let docker = Docker::connect(None).unwrap().with_builder_base(real.builder_base());
    docker.with_walls(labels.clone(), closed(), None)
}

/// The table with the rules of a walled network.
async fn table_of(real: &Real, network: &str) -> String {
    let found = real.behind().inspect_network(network, None).await.unwrap();
    let bridge = found.options.unwrap()["com.docker.network.bridge.name"].clone();
    format!("svc_{}", &bridge[2..8])
}

#[test]
fn containers_reach_their_network_and_what_is_named_and_nothing_else_of_the_inside() {
    on_docker("walls", |real| Box::pin(reached(real)));
}

async fn reached(real: &Real) {
    use Tried::{Connected, Dropped, Refused};
    let (bench, labels) = (real.bench(), real.bench().labels());
    // A network from the time before the walls, and a connection that a program there made.
    let old = spec(real, "old", "before");
    start(real.docker(), &old).await;
    let listen = || async { TcpListener::bind("0.0.0.0:0").await.unwrap() };
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let (peer, exception, secret) = (listen().await, listen().await, listen().await);
    let before = gateway(real, &old.network).await;
    let dial = format!(
        "exec 3<>/dev/tcp/{before}/{} && while sleep 0.1; do echo on >&3; done &",
        port(&secret)
    );
    bench.run_in(&old.name, &["bash", "-c", &format!("exec 1<&- 2<&-; {dial}")]).await;
    let (mut dialled, _) = secret.accept().await.unwrap();

    let at = |listener| SocketAddr::new(own_address(), port(listener));
    let (v6, v4) = ("[fd00::1]:5432".parse().unwrap(), "10.255.0.1:5432".parse().unwrap());
    let peers = Peers {
        of_all: vec![at(&peer), v6, v4],
        of_network: [(bench.name("else"), vec![at(&exception), v6, v4])].into(),
    };
    let docker = walled(real, &labels);
    let (one, two, other) =
        (spec(real, "one", "walled"), spec(real, "two", "walled"), spec(real, "other", "else"));
    let early = docker.ensure_network(&one.network, &labels);
    let (early, raised) = futures_util::future::join(early, docker.raise_walls(&peers)).await;
    assert_eq!((early, raised), (Ok(()), Ok(())), "who comes early waits");
    for spec in [&one, &two, &other] {
        start(&docker, spec).await;
    }
    let serve = "exec 1<&- 2<&-; perl -MIO::Socket::INET -e \
        '$s = IO::Socket::INET->new(LocalPort => 7000, Listen => 9); $s->accept while 1' &";
    for spec in [&two, &other] {
        bench.run_in(&spec.name, &["bash", "-c", serve]).await;
    }
    let machine = gateway(real, &one.network).await;
    let (two_is, other_is) = (address(real, &two).await, address(real, &other).await);
    let own = own_address().to_string();
    let reach = async |host: &str, port: u16| try_from(real, &one.name, host, port).await;
    assert_eq!(reach(&two_is, 7000).await, Connected, "its own network");
    assert_eq!(reach("two", 7000).await, Connected, "its own network, by name");
    assert_eq!(reach(&own, port(&peer)).await, Connected, "what an operator names");
    assert_eq!(reach(&machine, port(&peer)).await, Refused, "the same port at another address");
    assert_eq!(reach(&own, port(&exception)).await, Refused, "the exception of another network");
    let from_other = try_from(real, &other.name, &own, port(&exception)).await;
    assert_eq!(from_other, Connected, "the exception of its network");
    for address in [&machine, &own, "172.17.0.1"] {
        assert_eq!(reach(address, port(&secret)).await, Refused, "this machine at {address}");
    }
    // Since Docker 28, the engine drops it before the rules see it.
    let elsewhere = reach(&other_is, 7000).await;
    assert!(matches!(elsewhere, Refused | Dropped), "another network: {elsewhere:?}");
    let itself = try_from(real, &other.name, "127.0.0.1", 7000).await;
    assert_eq!(itself, Connected, "which does listen");
    assert_eq!(reach("169.254.169.254", 80).await, Refused, "the metadata of a cloud");
    let from_old = try_from(real, &old.name, &before, port(&secret)).await;
    assert_eq!(from_old, Refused, "from a network of before");
    // What had arrived before the rules is read to its end; then nothing comes any more.
    let mut heard = [0; 65536];
    while let Ok(read) = timeout(Duration::from_secs(2), dialled.read(&mut heard)).await {
        assert!(read.is_ok_and(|bytes| bytes > 0), "it was closed and not cut off");
    }

    // Somebody throws the rules away: the next look sets them again.
    let (table, kept) = (table_of(real, &one.network).await, keeper(&labels));
    helper(&kept, "host", &["nft", "delete", "table", "inet", &table]);
    assert_eq!(reach(&machine, port(&secret)).await, Connected, "without rules");
    docker.ensure_network(&one.network, &labels).await.unwrap();
    assert_eq!(reach(&machine, port(&secret)).await, Refused);
    // Whoever does not wait for an answer leaves none to others.
    let given_up = docker.ensure_network(&one.network, &labels);
    let _ = timeout(Duration::from_micros(1), given_up).await;
    docker.raise_walls(&peers).await.unwrap();
    docker.ensure_network(&one.network, &labels).await.unwrap();
    // The operator names nothing any more.
    docker.raise_walls(&Peers::default()).await.unwrap();
    assert_eq!(reach(&own, port(&peer)).await, Refused);
    let from_other = try_from(real, &other.name, &own, port(&exception)).await;
    assert_eq!(from_other, Refused, "no exception any more");
    // More than the arguments of a program may be.
    let many = |n: u16| format!("10.255.1.{}:{}", n % 250, n + 1).parse().unwrap();
    let many = Peers { of_all: (0..9000).map(many).collect(), ..Peers::default() };
    docker.raise_walls(&many).await.unwrap();
    assert_eq!(reach(&own, port(&peer)).await, Refused);
    // The rules outlive the service, as the containers do.
    drop(docker);
    keeper_ends(&labels).await;
    assert_eq!(reach(&machine, port(&secret)).await, Refused);
}

#[test]
fn a_probe_notices_that_there_are_no_rules_and_only_forgotten_rules_go() {
    on_docker("walls", |real| Box::pin(noticed(real)));
}

async fn noticed(real: &Real) {
    let (bench, labels) = (real.bench(), real.bench().labels());
    let docker = walled(real, &labels);
    docker.raise_walls(&Peers::default()).await.unwrap();
    let network = bench.name("walled");
    docker.ensure_network(&network, &labels).await.unwrap();
    let (table, kept) = (table_of(real, &network).await, keeper(&labels));
    let probe = ["/usr/libexec/svc/probe", &gateway(real, &network).await, "10.255.255.9"];
    assert_eq!(helper(&kept, &network, &probe), "closed");
    helper(&kept, "host", &["nft", "delete", "table", "inet", &table]);
    let said = helper(&kept, &network, &probe);
    assert!(said.contains("the rules do not see what goes to"), "{said}");
    docker.remove_network(&network).await.unwrap();
    drop(docker);
    keeper_ends(&labels).await;

    // An installation whose only network is of before its walls.
    real.docker().ensure_network(&bench.name("before"), &labels).await.unwrap();
    let docker = walled(real, &labels);
    docker.raise_walls(&Peers::default()).await.unwrap();
    drop(docker);
    keeper_ends(&labels).await;
    // The walls of another installation remove only rules of which no bridge is left, and only such rules.
    let strange = "svc_234567";
    let rise_elsewhere = async |what: &str| {
        let labels = Labels::from([("svc.test-other".to_owned(), bench.name(what))]);
        let docker = walled(real, &labels);
        docker.raise_walls(&Peers::default()).await.unwrap();
        let kept = keeper(&labels);
        helper(&kept, "host", &["nft", "add", "table", "inet", strange]);
        let tables = helper(&kept, "host", &["nft", "list", "tables"]);
        assert!(tables.contains(strange), "{tables}");
        tables.contains(&table)
    };
    assert!(rise_elsewhere("a").await);
    real.docker().remove_network(&bench.name("before")).await.unwrap();
    assert!(!rise_elsewhere("b").await);
    let docker = walled(real, &labels);
    docker.raise_walls(&Peers::default()).await.unwrap();
    helper(&keeper(&labels), "host", &["nft", "delete", "table", "inet", strange]);
}

#[test]
fn what_keeps_the_walls_from_rising_is_said_to_whoever_needs_them() {
    on_docker("walls", |real| Box::pin(said(real)));
}

async fn said(real: &Real) {
    let (bench, labels) = (real.bench(), real.bench().labels());
    let nowhere = Docker::connect(None).unwrap().with_builder_base("127.0.0.1:1/nobody:1");
    let docker = nowhere.with_walls(labels.clone(), closed(), None);
    let (raised, network) = (docker.raise_walls(&Peers::default()).await, bench.name("walled"));
    let ensured = docker.ensure_network(&network, &labels).await;
    for failed in [raised, ensured] {
        let why = failed.unwrap_err();
        assert!(matches!(&why, EngineError::Exposed(why) if why.contains("nobody")), "{why}");
    }
    // Other networks need no walls.
    let others = Labels::from([("svc.test".to_owned(), format!("{}-b", bench.run()))]);
    docker.ensure_network(&bench.name("open"), &others).await.unwrap();
    docker.remove_network(&bench.name("open")).await.unwrap();
}
