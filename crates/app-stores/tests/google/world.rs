//! A Google with one app, files for it, and callers that take publications to their goals.

use app_stores::{
    Advanced, AnyStore, AppFile, DesiredState, GoogleAddresses, NextStep, Options, Pem, Progress,
    PublicationOrder, ReadAt, RemoteError, ServiceAccount, StoreKey, firebase::Firebase,
    google_play::GooglePlay,
};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    artifacts::ArtifactKind,
    publishing::{GooglePlayOptions, Percent},
    releases::PublicationState,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, io, sync::OnceLock};
use test_support::google::{CLIENT_EMAIL, Google, PRIVATE_KEY_ID};

/// So many steps are more than any publication here needs.
const MOST_STEPS: usize = 400;

/// The bytes of a file.
pub struct File(pub Bytes);

#[async_trait]
impl ReadAt for File {
    async fn read(&self, offset: u64, length: u64) -> io::Result<Bytes> {
        let (offset, length) = (usize::try_from(offset).unwrap(), usize::try_from(length).unwrap());
        Ok(self.0.slice(offset..offset + length))
    }
}

/// A Google that the tests share. It ends with this process.
pub fn shared() -> &'static Google {
    static SHARED: OnceLock<Google> = OnceLock::new();
    SHARED.get_or_init(Google::start)
}

/// An app in Google Play.
pub struct App<'a> {
    pub google: &'a Google,
    /// The package name.
    pub name: String,
}

impl App<'static> {
    /// An app in the shared Google with two tracks, like this.
    pub fn new(name: &str, like: &Value) -> App<'static> {
        App::of(shared(), name, like)
    }
}

impl<'a> App<'a> {
    pub fn of(google: &'a Google, name: &str, like: &Value) -> App<'a> {
        let name = format!("com.example.{name}");
        let tracks = json!({"production": [completed(41)], "beta": [completed(40)]});
        let mut app = json!({"do": "playApp", "packageName": name, "tracks": tracks});
        app.as_object_mut().unwrap().extend(like.as_object().unwrap().clone());
        google.tell(&app);
        App { google, name }
    }

    /// A file of the app with this version code, which its first line tells the fake.
    pub fn file(&self, code: u32, size: usize) -> File {
        file_that(&json!({"packageName": self.name, "versionCode": code}), size)
    }

    pub fn order(
        &self,
        file: &File,
        code: u32,
        track: &str,
        wanted: DesiredState,
    ) -> PublicationOrder {
        PublicationOrder { app: self.name.clone(), ..order(file, code, track, wanted) }
    }

    /// What the store has seen of the app.
    pub fn seen(&self) -> Value {
        self.google.seen(&self.name)
    }
}

pub fn file_that(says: &Value, size: usize) -> File {
    let mut bytes = format!("{says}\n").into_bytes();
    let body = (bytes.len()..size).map(|at| u8::try_from(at * 31 % 251).unwrap());
    bytes.extend(body.collect::<Vec<_>>());
    File(bytes.into())
}

pub fn hash(file: &File) -> String {
    let digest = Sha256::digest(&file.0);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn key(google: &Google) -> StoreKey {
    StoreKey::Google(ServiceAccount {
        client_email: CLIENT_EMAIL.into(),
        private_key_id: PRIVATE_KEY_ID.into(),
        private_key: Pem(google.private_key.clone()),
    })
}

fn addresses(google: &Google) -> GoogleAddresses {
    GoogleAddresses {
        play: google.play.clone(),
        firebase: google.firebase.clone(),
        token: google.token.clone(),
    }
}

pub fn play(google: &Google) -> GooglePlay {
    GooglePlay::new(&addresses(google)).unwrap()
}

pub fn firebase(google: &Google) -> Firebase {
    Firebase::new(&addresses(google)).unwrap()
}

/// An order for Google Play, of no app. Its id is made from the version code.
pub fn order(file: &File, code: u32, track: &str, wanted: DesiredState) -> PublicationOrder {
    PublicationOrder {
        id: format!("pub_01J9ZQ8F5W7V3T6M2K4N8R{code:04}").parse().unwrap(),
        app: String::new(),
        file: AppFile {
            kind: ArtifactKind::Aab,
            name: "app.aab".into(),
            size: file.0.len() as u64,
            sha256: hash(file).parse().unwrap(),
            version: "1.4.2".into(),
            build_number: code.to_string(),
        },
        default_notes: None,
        notes: BTreeMap::new(),
        options: Options::GooglePlay(GooglePlayOptions {
            track: Some(track.parse().unwrap()),
            ..Default::default()
        }),
        wanted,
    }
}

pub fn share(percent: u16) -> DesiredState {
    DesiredState::Released(Percent::of_hundredths(percent * 100))
}

/// A release that the track has before anything is published.
pub fn completed(code: u32) -> Value {
    json!({"name": format!("0.{code}"), "versionCodes": [code.to_string()], "status": "completed"})
}

/// Takes steps until the store has nothing to do or wants a pause. The log is that of all steps.
pub async fn drive(
    store: &dyn AnyStore,
    key: &StoreKey,
    order: &PublicationOrder,
    file: &File,
    progress: &Progress,
) -> Result<Advanced, RemoteError> {
    let mut progress = progress.clone();
    let mut log = Vec::new();
    for _ in 0..MOST_STEPS {
        let mut advanced = store.advance(key, order, file, &progress).await?;
        log.append(&mut advanced.log);
        if advanced.next != NextStep::Now {
            return Ok(Advanced { log, ..advanced });
        }
        progress = kept(&advanced.progress);
    }
    panic!("{order:?} does not end: {progress:?}");
}

/// What goes wrong on the way of a publication to its goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mischief {
    None,
    /// The service dies after this step, or after every one, before it has kept what came of it.
    Twice(Option<usize>),
    /// The request with this number goes wrong: the front of the fake knows how.
    Fault(usize, &'static str),
    /// Somebody else ends the open edits of the app before this step.
    EndedEdit(usize, &'static str),
}

/// A place for one publication, apart from all others, and where its requests can be told apart.
pub struct Place<'a> {
    pub google: &'a Google,
    pub key: &'a StoreKey,
    /// A new client: nothing of an earlier one is left after a restart.
    pub client: &'a (dyn Fn() -> Box<dyn AnyStore> + Sync),
    /// A pattern of the paths of its requests.
    pub path: String,
}

impl Place<'_> {
    /// Takes a publication to its goal in spite of what goes wrong: after every failure, a new client
    /// goes on from what was kept last. Returns how many steps it took.
    pub async fn reach(
        &self,
        order: &PublicationOrder,
        file: &File,
        progress: &mut Progress,
        mischief: Mischief,
    ) -> usize {
        if let Mischief::Fault(nth, how) = mischief {
            let how = match how {
                "unavailable" => json!({"status": 503}),
                "conflict" => json!({"status": 409, "reason": "aborted"}),
                "limited" => json!({"status": 429, "retryAfter": 1}),
                cut => json!(cut),
            };
            self.google.tell(&json!({"do": "fail", "path": self.path, "skip": nth, "how": how}));
        }
        let mut client = (self.client)();
        let mut advanced: Option<Advanced> = None;
        for step in 0..MOST_STEPS {
            if let Mischief::EndedEdit(at, how) = mischief
                && at == step
            {
                let app = &order.app;
                self.google.tell(&json!({"do": "endEdits", "packageName": app, "how": how}));
            }
            if matches!(mischief, Mischief::Twice(at) if at.is_none_or(|at| at == step)) {
                client.advance(self.key, order, file, progress).await.unwrap();
                client = (self.client)();
            }
            match client.advance(self.key, order, file, progress).await {
                Ok(done) => {
                    *progress = kept(&done.progress);
                    let is_over = done.next == NextStep::Done
                        || done.state == PublicationState::Live && done.next != NextStep::Now;
                    advanced = Some(done);
                    if is_over {
                        self.google.tell(&json!({"do": "heal", "path": self.path}));
                        return step + 1;
                    }
                }
                Err(RemoteError::Refused(why)) => panic!("{mischief:?} {:?}: {why}", order.wanted),
                Err(RemoteError::Busy { .. } | RemoteError::Unclear(_)) => client = (self.client)(),
            }
        }
        panic!("{mischief:?} {:?} does not end: {advanced:?}", order.wanted);
    }
}

/// The progress as its caller has it after a restart.
pub fn kept(progress: &Progress) -> Progress {
    let text = serde_json::to_string(progress).unwrap();
    let read = serde_json::from_str(&text).unwrap();
    assert_eq!(*progress, read, "{text}");
    read
}
