//! Walls around networks, on the real engine: what containers there reach, and what they do not.

use super::real::{Real, on_docker};
use container_engine::{ContainerSpec, Engine, EngineError, Labels, WayOut, docker::Docker};
use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    process::Command,
};
use tokio::net::TcpListener;

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

/// Whether a program in the container connects to this address.
async fn reaches(real: &Real, container: &str, address: impl ToString) -> bool {
    let (host, port) =
        address.to_string().rsplit_once(':').map(|(h, p)| (h.to_owned(), p.to_owned())).unwrap();
    let connect = format!("exec 3<>/dev/tcp/{host}/{port}");
    let ran = real.bench().run_in(container, &["timeout", "5", "bash", "-c", &connect]).await;
    ran.exit == Some(0)
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

/// Runs a program of the helpers' image in the network of the machine, or in another one.
async fn helper(real: &Real, network: &str, command: &[&str]) -> String {
    let made = Labels::new();
    let images = real.docker().images(&made).await.unwrap();
    let is_helpers = |tag: &String| tag.starts_with("svc/builder:");
    let image = images.iter().find(|image| image.tags.iter().any(is_helpers)).unwrap();
    let mut docker = Command::new("docker");
    docker.args([
        "run",
        "--rm",
        "--user=0",
        "--cap-add=NET_ADMIN",
        "--network",
        network,
        "--entrypoint",
    ]);
    let ran = docker.arg(command[0]).arg(&image.id).args(&command[1..]).output().unwrap();
    String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
}

fn walled(real: &Real, labels: &Labels) -> Docker {
    Docker::connect(None)
        .unwrap()
        .with_builder_base(real.builder_base())
        .with_walls(labels.clone(), closed())
}

#[test]
fn containers_reach_their_network_and_what_is_named_and_nothing_else_of_the_inside() {
    on_docker("walls", |real| {
        Box::pin(async move {
            let bench = real.bench();
            let labels = bench.labels();
            // A network from the time before the walls.
            let old = spec(real, "old", "before");
            start(real.docker(), &old).await;
            let listen = || async { TcpListener::bind("0.0.0.0:0").await.unwrap() };
            let (ours, peer, secret) = (listen().await, listen().await, listen().await);
            let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
            let way_out = WayOut {
                ports: vec![port(&ours)],
                peers: vec![
                    SocketAddr::new(own_address(), port(&peer)),
                    "[fd00::1]:5432".parse().unwrap(),
                    "10.255.0.1:5432".parse().unwrap(),
                ],
            };
            let docker = walled(real, &labels);
            let (one, two, other) = (
                spec(real, "one", "walled"),
                spec(real, "two", "walled"),
                spec(real, "other", "else"),
            );
            let early = docker.ensure_network(&one.network, &labels).await;
            assert!(matches!(early, Err(EngineError::Unreachable(_))), "{early:?}");
            docker.raise_walls(&way_out).await.unwrap();
            for spec in [&one, &two, &other] {
                start(&docker, spec).await;
            }
            let serve = [
                "bash",
                "-c",
                "exec 1<&- 2<&-; perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 7000, Listen => 9); $s->accept while 1' &",
            ];
            for spec in [&two, &other] {
                bench.run_in(&spec.name, &serve).await;
            }
            let machine = gateway(real, &one.network).await;
            let (two_is, other_is) = (address(real, &two).await, address(real, &other).await);
            let at = |host: &str, port: u16| format!("{host}:{port}");
            let own = own_address().to_string();
            let reach = |address: String| reaches(real, &one.name, address);
            assert!(reach(at(&two_is, 7000)).await, "its own network");
            assert!(reach(at("two", 7000)).await, "its own network, by name");
            assert!(
                reach(at(&machine, port(&ours))).await,
                "a port that the machine serves to all"
            );
            assert!(reach(at(&own, port(&peer))).await, "what an operator names");
            assert!(!reach(at(&machine, port(&peer))).await, "the same port at another address");
            for address in [&machine, &own, &"172.17.0.1".to_owned()] {
                assert!(!reach(at(address, port(&secret))).await, "this machine at {address}");
            }
            assert!(!reach(at(&other_is, 7000)).await, "another network");
            assert!(reaches(real, &other.name, at("127.0.0.1", 7000)).await, "which does listen");
            assert!(!reach(at("169.254.169.254", 80)).await, "the metadata of a cloud");
            let from_old = at(&gateway(real, &old.network).await, port(&secret));
            assert!(!reaches(real, &old.name, &from_old).await, "from a network of before");

            // Somebody throws the rules away: the next look sets them again.
            let tables = helper(real, "host", &["nft", "list", "tables"]).await;
            let table = table_of(real, &one.network).await;
            assert!(tables.contains(&table), "{tables}");
            helper(real, "host", &["nft", "delete", "table", "inet", &table]).await;
            assert!(reach(at(&machine, port(&secret))).await, "without rules the machine is open");
            docker.raise_walls(&way_out).await.unwrap();
            assert!(!reach(at(&machine, port(&secret))).await);
            // The operator names nothing any more.
            docker.raise_walls(&WayOut::default()).await.unwrap();
            assert!(!reach(at(&machine, port(&ours))).await);
            assert!(!reach(at(&own, port(&peer))).await);
            // The rules outlive the service, as the containers do.
            drop(docker);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            assert!(!reach(at(&machine, port(&secret))).await);
        })
    });
}

/// The table with the rules of a walled network.
async fn table_of(real: &Real, network: &str) -> String {
    let found = real.behind().inspect_network(network, None).await.unwrap();
    let bridge = found.options.unwrap()["com.docker.network.bridge.name"].clone();
    format!("svc_{}", &bridge[2..8])
}

#[test]
fn a_probe_notices_that_there_are_no_rules_and_forgotten_rules_go() {
    on_docker("walls", |real| {
        Box::pin(async move {
            let bench = real.bench();
            let labels = bench.labels();
            let docker = walled(real, &labels);
            docker.raise_walls(&WayOut::default()).await.unwrap();
            let network = bench.name("walled");
            docker.ensure_network(&network, &labels).await.unwrap();
            let table = table_of(real, &network).await;
            let machine = gateway(real, &network).await;
            let probe = ["/usr/libexec/svc/probe", &machine, "192.0.2.9"];
            assert_eq!(helper(real, &network, &probe).await.trim(), "closed");
            helper(real, "host", &["nft", "delete", "table", "inet", &table]).await;
            let said = helper(real, &network, &probe).await;
            assert!(said.contains("the rules do not see what goes to"), "{said}");
            // The walls of another installation remove only those of which no network is left.
            docker.raise_walls(&WayOut::default()).await.unwrap();
            let rise_elsewhere = async |what: &str| {
                let labels = Labels::from([("svc.test-other".to_owned(), bench.name(what))]);
                walled(real, &labels).raise_walls(&WayOut::default()).await.unwrap();
                helper(real, "host", &["nft", "list", "tables"]).await
            };
            assert!(rise_elsewhere("a").await.contains(&table));
            docker.remove_network(&network).await.unwrap();
            drop(docker);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            assert!(!rise_elsewhere("b").await.contains(&table));
        })
    });
}
