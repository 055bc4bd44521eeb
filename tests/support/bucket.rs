//! An S3 server for one test.

use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    thread::JoinHandle,
};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
};

/// The bucket, and what the names of all objects of a service begin with.
const BUCKET: &str = "artifacts";
const PREFIX: &str = "mobile/builds";

/// An S3 server on its own thread. Its buckets are folders.
pub struct Bucket {
    folder: tempfile::TempDir,
    pub address: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Bucket {
    pub fn start() -> Bucket {
        Bucket::start_at(Ipv4Addr::LOCALHOST)
    }

    pub fn start_at(address: Ipv4Addr) -> Bucket {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let address = (address, 0).into();
        let mut bucket = Bucket { folder, address, running: None };
        bucket.come_back();
        bucket
    }

    /// Serves on the same address again.
    pub fn come_back(&mut self) {
        let mut service =
            S3ServiceBuilder::new(s3s_fs::FileSystem::new(self.folder.path()).unwrap());
        service.set_auth(SimpleAuth::from_single("reader", "writer"));
        let service = service.build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(async { listen(self.address) });
        self.address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(connection), service).await;
                });
            }
        });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let _ = runtime.block_on(stopped);
        });
        self.running = Some((stop, thread));
    }

    /// Stops the server and closes all connections.
    pub fn go_away(&mut self) {
        let (stop, thread) = self.running.take().unwrap();
        drop(stop);
        thread.join().unwrap();
    }

    /// The settings of a service that keeps its artifacts in this bucket, under a prefix.
    pub fn settings(&self) -> [(&'static str, String); 6] {
        [
            ("SVC_ARTIFACT_STORE", format!("s3://{BUCKET}/{PREFIX}")),
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_ACCESS_KEY_ID", "reader".into()),
            ("AWS_SECRET_ACCESS_KEY", "writer".into()),
            ("AWS_REGION", "us-east-1".into()),
        ]
    }

    /// The folder with the objects of all services.
    pub fn objects(&self) -> PathBuf {
        self.folder.path().join(BUCKET)
    }

    /// The expected file of an object.
    pub fn object(&self, name: &str) -> PathBuf {
        self.objects().join(PREFIX).join(name)
    }
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(64).unwrap()
}
