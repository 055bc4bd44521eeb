//! Verifies attestations of builds against trusted roots of Sigstore: those in a folder that the
//! operator keeps, or else those that are part of the program.

use actors::ports::attestations::{Attestations, Attested};
use async_trait::async_trait;
use attestation::{Digest, Roots};
use contract::{Sha256, Timestamp, trusted_publishers::CiRun};
use data_encoding::HEXLOWER;
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

/// The trusted roots, read again when their files change.
pub struct TrustedRoots {
    known: Arc<KnownRoots>,
}

struct KnownRoots {
    folder: Option<PathBuf>,
    read: Mutex<Read>,
}

struct Read {
    /// The files as they were.
    files: Vec<FileVersion>,
    roots: Arc<Roots>,
}

/// The name, the time of the last change, and the size of a file.
type FileVersion = (PathBuf, SystemTime, u64);

impl TrustedRoots {
    /// The roots in the `.json` files of a folder; without a folder, those of the program.
    pub fn read(folder: Option<PathBuf>) -> Result<TrustedRoots, String> {
        let files = folder.as_deref().map(list).transpose().map_err(|e| e.to_string())?;
        let roots = match &files {
            Some(files) => read(files)?,
            None => Roots::built_in().map_err(|e| e.to_string())?,
        };
        let read = Read { files: files.unwrap_or_default(), roots: Arc::new(roots) };
        Ok(TrustedRoots { known: Arc::new(KnownRoots { folder, read: Mutex::new(read) }) })
    }
}

impl KnownRoots {
    /// The roots as their files are now. Files that cannot be used change nothing.
    fn current(&self) -> Arc<Roots> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(folder) = &self.folder else { return known.roots.clone() };
        match list(folder).map_err(|e| e.to_string()) {
            Ok(files) if files == known.files => {}
            found => match found.and_then(|files| Ok((read(&files)?, files))) {
                Ok((roots, files)) => *known = Read { files, roots: Arc::new(roots) },
                Err(why) => {
                    tracing::error!(
                        why,
                        "changed trusted roots are not used, the earlier ones are"
                    );
                }
            },
        }
        known.roots.clone()
    }
}

/// The files of a folder in the order of their names.
fn list(folder: &Path) -> io::Result<Vec<FileVersion>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "json") {
            let metadata = std::fs::metadata(entry.path())?;
            files.push((entry.path(), metadata.modified()?, metadata.len()));
        }
    }
    files.sort();
    Ok(files)
}

fn read(files: &[FileVersion]) -> Result<Roots, String> {
    if files.is_empty() {
        return Err("the folder of trusted roots has no .json file".into());
    }
    let mut contents = Vec::new();
    for (path, ..) in files {
        let content = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        contents.push((path.display().to_string(), content));
    }
    Roots::read(contents).map_err(|e| e.to_string())
}

#[async_trait]
impl Attestations for TrustedRoots {
    async fn verify(&self, bundle: Vec<u8>, sha256: &Sha256) -> Result<Attested, String> {
        let digest = HEXLOWER.decode(sha256.as_str().as_bytes()).map_err(|e| e.to_string())?;
        let digest = Digest::Sha256(digest.try_into().map_err(|_| "the hash is no SHA-256")?);
        let known = self.known.clone();
        let verified = tokio::task::spawn_blocking(move || {
            attestation::verify(&bundle, &digest, &known.current())
        });
        let verified = verified.await.map_err(|e| e.to_string())?;
        let attested = verified.map_err(|refusal| refusal.to_string())?;
        let issuer = attested.issuer.parse().map_err(|why| format!("its issuer {why}"))?;
        Ok(Attested {
            run: CiRun {
                issuer,
                repository: attested.repository,
                repository_id: attested.source_repository_id,
                repository_owner_id: attested.source_owner_id,
                workflow_ref: attested.workflow,
                job_workflow_ref: Some(attested.signer_workflow.clone()),
                environment: attested.environment,
                event: attested.event,
                run_id: attested.run_id,
                run_attempt: Some(attested.run_attempt),
                commit: attested.commit,
                git_ref: attested.git_ref,
                actor: None,
            },
            signer_workflow: attested.signer_workflow,
            runner_environment: attested.runner_environment,
            run_url: attested.run_url,
            signed_at: Timestamp::from_millis(attested.signed_at),
        })
    }
}
