//! Checks the image that comes out of a build, on its way to the daemon.
//!
//! A build may have taken over the container that it ran in, and then the archive says whatever it likes:
//! names of other images, labels of this service, layers that unpack to more than any disk holds. So the
//! archive is written again, as `docker load` reads it. A layer passes if it is what the configuration
//! names by its digest, and a plain archive. Of the configuration, what is known passes, with the labels of
//! the caller. The list of contents is made anew, with the name that the caller chose.
//!
//! The format: <https://github.com/moby/docker-image-spec/blob/main/spec.md#combined-image-json--filesystem-changeset-format>.

mod config;
mod layer;
#[cfg(test)]
mod tests;

use crate::{
    BuildSpec, EngineError, Output,
    docker::pipes::{InputPipe, OutputPipe},
};
use bytes::Bytes;
use config::Config;
use contract::Timestamp;
use data_encoding::HEXLOWER;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Read, Write},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
};

/// Bytes of a list of contents or of a configuration.
const LARGEST_DOCUMENT: u64 = 4 << 20;
/// Documents in an archive: the list of contents, the configuration, and what older daemons read.
const MOST_DOCUMENTS: usize = 8;
/// Layers that Docker can stack.
const MOST_LAYERS: usize = 125;
const CONTENTS: &str = "manifest.json";
/// Bytes that go to the daemon at once.
const PIECE: usize = 256 << 10;

/// The archive while it is checked.
pub(super) struct Checked(JoinHandle<Result<(), EngineError>>);

/// How the program that writes the archive ended, once it has.
type End = Arc<Mutex<Option<Result<(), EngineError>>>>;

impl Checked {
    /// Takes the output of a program that writes an archive. Returns the archive for the daemon, which
    /// ends too early if anything is wrong. `most` is the largest size in bytes of the archive, and of
    /// what its layers hold.
    pub fn new(
        output: BoxStream<'static, Result<Output, EngineError>>,
        spec: &BuildSpec,
        most: u64,
        now: Timestamp,
    ) -> (Checked, BoxStream<'static, io::Result<Bytes>>) {
        let (came, comes) = channel(4);
        let (goes, going) = channel(4);
        let end = End::default();
        tokio::spawn(read(output, came, end.clone()));
        let image = Expected { tag: spec.tag.clone(), labels: spec.labels.clone(), most, now };
        let verdict = tokio::task::spawn_blocking(move || {
            let input = InputPipe::new(comes).take(most);
            let output = BufWriter::with_capacity(PIECE, OutputPipe(goes));
            let checked = image.check(input, output, || {
                let ended = end.lock().unwrap_or_else(PoisonError::into_inner).take();
                let larger =
                    || Err(EngineError::Refused(format!("it is larger than {most} bytes")));
                ended.unwrap_or_else(larger)
            });
            checked.map_err(meant)
        });
        let going = stream::unfold(going, |mut going: Receiver<Bytes>| async {
            going.recv().await.map(|bytes| (Ok(bytes), going))
        });
        (Checked(verdict), going.boxed())
    }

    /// Why the archive is wrong, if it is.
    pub async fn verdict(self) -> Result<(), EngineError> {
        self.0.await.unwrap_or_else(|e| Err(EngineError::Unreachable(e.to_string())))
    }
}

fn meant(failure: Failure) -> EngineError {
    match failure.downcast::<EngineError>() {
        Ok(e) => *e,
        Err(e) => match e.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => {
                EngineError::Unreachable("it stopped reading the image of the build".to_owned())
            }
            _ => EngineError::Refused(format!("the image of the build is not valid: {e}")),
        },
    }
}

/// Passes the archive on, and leaves behind how the program ended.
async fn read(
    mut output: BoxStream<'static, Result<Output, EngineError>>,
    came: Sender<Bytes>,
    end: End,
) {
    let cut_off = "the image of the build was not written to its end";
    let mut ended = Err(EngineError::Unreachable(cut_off.to_owned()));
    let mut last = Bytes::new();
    while let Some(part) = output.next().await {
        match part {
            Ok(Output::Out(bytes)) => {
                if came.send(bytes).await.is_err() {
                    return;
                }
            }
            Ok(Output::Err(bytes)) => last = bytes,
            Ok(Output::Exit(0)) => ended = Ok(()),
            Ok(Output::Exit(_)) => {
                let why = String::from_utf8_lossy(&last).trim().to_owned();
                ended = Err(EngineError::Refused(why));
            }
            Err(e) => ended = Err(e),
        }
    }
    // Before `came` is dropped, which is the end of the archive for the reader.
    *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Contents {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the image must be.
struct Expected {
    tag: String,
    labels: crate::Labels,
    most: u64,
    now: Timestamp,
}

impl Expected {
    /// Reads an archive and writes what may pass. Only a whole and valid one gets its list of contents.
    /// `ended` says, after the last byte, whether the program that wrote the archive succeeded.
    fn check(
        &self,
        input: impl Read,
        output: impl Write,
        ended: impl FnOnce() -> Result<(), EngineError>,
    ) -> Result<(), Failure> {
        let mut input = tar::Archive::new(input);
        let mut output = tar::Builder::new(output);
        // The sizes of the layers by their digests.
        let mut layers = BTreeMap::new();
        let mut documents = BTreeMap::new();
        // Long names and other extensions are not read: no name that counts needs them.
        for entry in input.entries()?.raw(true) {
            let mut entry = entry?;
            // Links and folders are for daemons older than any that is spoken here.
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let name = String::from_utf8(entry.path_bytes().into_owned())?;
            if let Some(digest) = layer::digest(&name) {
                let size = entry.size();
                if layers.len() == MOST_LAYERS || layers.insert(digest.to_owned(), size).is_some() {
                    return Err(format!("it has too many layers, or {name} twice").into());
                }
                begin(&mut output, &name, size)?;
                layer::pass(&mut entry, output.get_mut(), size, digest)?;
                pad(output.get_mut(), size)?;
            } else if name.ends_with(".json") && !name.contains('/') {
                let mut text = Vec::new();
                entry.by_ref().take(LARGEST_DOCUMENT + 1).read_to_end(&mut text)?;
                let is_new = documents.insert(name.clone(), text).is_none();
                if documents.len() > MOST_DOCUMENTS || !is_new {
                    return Err(format!("it has too many documents, or {name} twice").into());
                }
            }
        }
        // The program writes on behind the end of the archive.
        io::copy(&mut input.into_inner(), &mut io::sink())?;
        ended()?;

        let document = |name: &str| {
            let text = documents.get(name).ok_or_else(|| format!("it has no {name}"))?;
            if text.len() as u64 > LARGEST_DOCUMENT {
                return Err(format!("{name} is too large"));
            }
            Ok(text)
        };
        let contents: Vec<Contents> = serde_json::from_slice(document(CONTENTS)?)?;
        let [contents]: [Contents; 1] = contents.try_into().map_err(|_| "it is not one image")?;
        let config = Config::read(document(&contents.config)?)?;
        self.stacks(&contents.layers, &config, &layers)?;

        let config = config.written(&self.labels, self.now)?;
        let name = format!("{}.json", HEXLOWER.encode(&Sha256::digest(&config)));
        append(&mut output, &name, &config)?;
        let repo_tags = Some(vec![self.tag.clone()]);
        let contents = [Contents { config: name, repo_tags, layers: contents.layers }];
        append(&mut output, CONTENTS, &serde_json::to_vec(&contents)?)?;
        output.into_inner()?.flush()?;
        Ok(())
    }

    /// Whether the image is made of layers that came, each where the configuration names it. The daemon
    /// itself looks only at layers that it does not have.
    fn stacks(
        &self,
        layers: &[String],
        config: &Config,
        came: &BTreeMap<String, u64>,
    ) -> Result<(), Failure> {
        let named = config.layers();
        if layers.len() > MOST_LAYERS || layers.len() != named.len() {
            return Err("its layers are not those of its configuration".into());
        }
        let mut size: u64 = 0;
        for (layer, named) in layers.iter().zip(named) {
            let digest = layer::digest(layer).unwrap_or_default();
            let Some(of_layer) = came.get(digest) else {
                return Err(format!("its layer {layer:?} is missing").into());
            };
            if named.strip_prefix("sha256:") != Some(digest) {
                return Err("its layers are not those of its configuration".into());
            }
            size = size.saturating_add(*of_layer);
        }
        if size > self.most {
            return Err(format!("it unpacks to more than {} bytes", self.most).into());
        }
        Ok(())
    }
}

/// Writes the head of a file.
fn begin(output: &mut tar::Builder<impl Write>, name: &str, size: u64) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o444);
    header.set_cksum();
    output.get_mut().write_all(header.as_bytes())
}

/// Fills the last block of a file.
fn pad(output: &mut impl Write, size: u64) -> io::Result<()> {
    let rest = usize::try_from(size.next_multiple_of(512) - size).unwrap_or_default();
    output.write_all([0; 512].get(..rest).unwrap_or_default())
}

fn append(output: &mut tar::Builder<impl Write>, name: &str, text: &[u8]) -> io::Result<()> {
    begin(output, name, text.len() as u64)?;
    output.get_mut().write_all(text)?;
    pad(output.get_mut(), text.len() as u64)
}
