//! A client that another program makes of the OpenAPI document.

use crate::support::{requires, service::Service};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The generator, installed once for each version of `requirements.txt`.
fn generator(folder: &Path) -> PathBuf {
    let requirements = folder.join("requirements.txt");
    let version = crate::support::service::sha256(&std::fs::read(&requirements).unwrap());
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let packages = all.join(format!("openapi-python-client-{}", &version[..16]));
    if !packages.exists() {
        std::fs::create_dir_all(all).unwrap();
        let fresh = tempfile::tempdir_in(all).unwrap();
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--root-user-action=ignore", "--no-deps", "--require-hashes", "--target"]);
        run(pip.arg(fresh.path()).arg("--requirement").arg(&requirements));
        std::fs::rename(fresh.keep(), &packages).unwrap();
    }
    packages
}

fn run(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    out.into_owned()
}

#[test]
fn a_python_client_is_generated_and_makes_calls() {
    let test = "a_python_client_is_generated_and_makes_calls";
    if !requires::programs(test, &["python3", "pip3"]) {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/python-client");
    let packages = generator(&folder);
    let service = Service::start();
    let document = service.http.get(format!("{}/openapi.json", service.url)).send().unwrap();
    let home = tempfile::tempdir().unwrap();
    let (file, client) = (home.path().join("openapi.json"), home.path().join("client"));
    std::fs::write(&file, document.bytes().unwrap()).unwrap();
    let python = || {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", format!("{}:{}", packages.display(), client.display()));
        // The generator tidies its code with a program beside it.
        let path = std::env::var("PATH").unwrap();
        python.env("PATH", format!("{}:{path}", packages.join("bin").display()));
        python.env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", home.path());
        python
    };
    // Nothing of the document may be left out.
    let mut generate = python();
    generate.args(["-m", "openapi_python_client", "generate", "--fail-on-warning", "--path"]);
    generate.arg(&file).arg("--output-path").arg(&client);
    run(generate.arg("--config").arg(folder.join("config.yml")));
    let base_url = format!("{}/backend", service.url);
    let mut uses = python();
    uses.arg(folder.join("use.py")).args([&base_url, &service.application_id]);
    assert_eq!(run(&mut uses), "used\n");
}
