//! Every command that the help names, with plausible arguments, against a real service. `svc serve`,
//! `man` and `completions` have tests of their own.

use crate::support::service::{Person, Service, fixture};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Commands that replace or end the sign-in of the others.
const SIGN_INS: [&str; 3] = ["login", "register", "logout"];

/// A command without subcommands, or one that also works without them.
struct Leaf {
    path: Vec<String>,
    command: clap::Command,
}

impl Leaf {
    fn name(&self) -> String {
        self.path.join(" ")
    }

    /// The arguments that the help shows, without `--help`.
    fn arguments(&self) -> impl Iterator<Item = &clap::Arg> {
        let arguments = self.command.get_arguments();
        arguments.filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
    }
}

fn leaves() -> Vec<Leaf> {
    let admin = clap::Command::new("admin").subcommand_required(true);
    let admin = svc::admin::AdminCommand::augment_subcommands(admin);
    let program = clap::Command::new("svc").subcommand_required(true).subcommand(admin);
    let program = cli::Command::augment_subcommands(program);
    let mut program = cli::Global::augment_args(program).disable_help_subcommand(true);
    program.build();
    let mut found = Vec::new();
    collect(&program, &[], &mut found);
    found
}

fn collect(command: &clap::Command, path: &[String], found: &mut Vec<Leaf>) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let path = [path, &[below.get_name().to_owned()]].concat();
        collect(below, &path, found);
        if !below.has_subcommands() || !below.is_subcommand_required_set() {
            found.push(Leaf { path, command: below.clone() });
        }
    }
}

/// A service with one thing of each kind that is made quickly, and the made-up ids of the others.
struct World {
    service: Service,
    ada: Person,
    project: Value,
    app: Value,
    organization: Value,
    artifact: Value,
    release: Value,
    webhook: Value,
    token: Value,
}

impl World {
    fn new() -> World {
        let receivers = ("SVC_WEBHOOK_PRIVATE_HOSTS", "127.0.0.1:9");
        let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise"), receivers]);
        let ada = service.register("ada");
        let call = |function: &str, params: Value| service.call(Some(&ada), function, params).ok();
        let organization = call("createOrganization", json!({"name": "Acme"}))["id"].clone();
        let (project, app) = service.project_with_app(&ada, Some(&organization));
        let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2")["id"].clone();
        let made = json!({"appId": app, "artifactIds": [artifact], "channel": "production"});
        let release = call("svc_createRelease", made)["id"].clone();
        let made = json!({"organizationId": organization, "url": "http://127.0.0.1:9/hook"});
        let webhook = call("svc_createWebhook", made)["webhook"]["id"].clone();
        let made = json!({"name": "ci", "scopes": ["artifact:upload"], "appId": app});
        let token = call("svc_createDeployToken", made);
        World { service, ada, project, app, organization, artifact, release, webhook, token }
    }

    /// A plausible value for an argument of a command.
    fn value(&self, command: &str, argument: &clap::Arg) -> String {
        let made_up = |prefix: &str| json!(format!("{prefix}_01J9ZQ8F5W7V3T6M2K4N8R0P1S"));
        let known = match (command, argument.get_id().as_str()) {
            (_, "app") => self.app.clone(),
            (_, "project") => self.project.clone(),
            (_, "organization") => self.organization.clone(),
            (_, "artifact") => self.artifact.clone(),
            ("release rollout", "to") => json!("halt"),
            (_, "release" | "to") => self.release.clone(),
            (_, "webhook") => self.webhook.clone(),
            ("token revoke", "id") => self.token["deployToken"]["id"].clone(),
            (_, "token") => self.token["token"].clone(),
            (_, "api_url") => json!(self.service.url),
            (_, "application_id") => json!(self.service.application_id),
            (_, "build") => made_up("bld"),
            (_, "publisher") => made_up("tpb"),
            (_, "credential") => made_up("crd"),
            (_, "delivery") => made_up("dlv"),
            ("register", "email") => json!("grace@example.com"),
            (_, "email" | "tester") => json!(self.ada.email),
            ("call", "function") => json!("getCurrentUser"),
            ("call", "body") => json!("{}"),
            ("call", "param") => json!("a=b"),
            ("publish", "file") => json!(fixture("sample.apk").to_str().unwrap()),
            ("admin backup" | "admin restore", "file") => json!("backup.svc"),
            ("admin restore", "data") => json!("restored"),
            (_, "data") => json!("data/run"),
            (_, "store") => json!("postgres://svc@127.0.0.1:9/svc"),
            (_, "store_file") => json!("address"),
            ("credential set", "kind") => json!("googleServiceAccount"),
            ("credential set", "file" | "profile") | (_, "options" | "attestation") => {
                json!("some.json")
            }
            ("repo connect", "url") => json!("https://127.0.0.1/shop.git"),
            ("webhook create" | "webhook update", "url") => json!("http://127.0.0.1:9/hook"),
            ("init", "workflow") => json!("acme/svc-ci"),
            (_, "workflow") => json!("svc-build.yml"),
            (_, "repository") => json!("acme/shop"),
            (_, "environment") => json!("production"),
            (_, "events") => json!("push"),
            (_, "invitation") => json!("svc_inv_none"),
            ("publisher add", "git_ref") => json!("refs/heads/main"),
            (_, "git_ref" | "branch") => json!("main"),
            (_, "channel") => json!("beta"),
            (_, "version") => json!("1.4.2"),
            (_, "expires") => json!("12h"),
            (_, "notes" | "description") => json!("What is new"),
            (_, "instance") => made_up("ins"),
            (_, "backup") => made_up("bak"),
            (_, "engine") => made_up("eng"),
            (_, "address") => json!("127.0.0.1:9"),
            (_, "private_address") => json!("10.0.0.21"),
            (_, "certificates") => json!("folder"),
            ("engine add" | "engine renew", "key") => json!("key"),
            ("engine add" | "engine renew", "host_key") => json!("ssh-ed25519 AAAA"),
            ("engine add", "labels") => json!("region=eu"),
            (_, "label" | "labels") => json!("android"),
            (_, "output") => json!("id"),
            (_, "profile" | "name" | "track" | "group") => json!("internal"),
            (_, "alias" | "key_id" | "issuer_id") => json!("ABCDE12345"),
            (_, "firebase_app") => json!("1:1234567890:android:0a1b2c3d4e5f67890"),
            (_, "folder" | "work_dir") => json!("folder"),
            (_, "pass_env") => json!("PATH"),
            (_, "build_arg") => json!("STAGE=test"),
            (_, "build_secret") => json!("NPM_TOKEN"),
            (_, "user") => json!("nobody"),
            (_, "currency") => json!("EUR"),
            (_, "installation") => json!("12345678"),
            (_, "host_key") => json!("SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"),
            (_, "rollout") => json!("10"),
            _ => match &argument.get_possible_values()[..] {
                [] => panic!("give {argument} of svc {command} a plausible value here"),
                [first, ..] => json!(first.get_name()),
            },
        };
        known.as_str().unwrap().to_owned()
    }

    /// The words of a call with those of these arguments that go together.
    fn words<'a>(
        &self,
        leaf: &Leaf,
        arguments: impl Iterator<Item = &'a clap::Arg>,
    ) -> Vec<String> {
        let (mut words, mut positional) = (leaf.path.clone(), Vec::new());
        let mut taken: Vec<&clap::Arg> = Vec::new();
        // Only one of two arguments says that they exclude each other.
        let excludes = |one: &clap::Arg, other: &clap::Arg| {
            leaf.command.get_arg_conflicts_with(one).contains(&other)
        };
        for argument in arguments {
            if taken.iter().any(|it| excludes(it, argument) || excludes(argument, it)) {
                continue;
            }
            taken.push(argument);
            let takes_value = argument.get_action().takes_values();
            let value = takes_value.then(|| self.value(&leaf.name(), argument));
            match argument.get_long() {
                Some(long) => {
                    words.extend([Some(format!("--{long}")), value].into_iter().flatten())
                }
                None => positional.extend(value),
            }
        }
        words.extend(positional);
        words
    }

    /// Runs a command, which must understand its arguments and end with an exit code of the program.
    fn run(&self, leaf: &Leaf, words: &[String]) {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        // A runner that the service accepts does not end.
        if leaf.name() == "runner" && !words.contains(&"--token") {
            words.extend(["--token", "svc_dt_unknown"]);
        }
        let elsewhere = self.service.home.join("elsewhere");
        let mut variables = vec![("SVC_APP_ID", self.app.as_str().unwrap())];
        if ["login", "register"].contains(&leaf.name().as_str()) {
            variables.push(("XDG_CONFIG_HOME", elsewhere.to_str().unwrap()));
            if !words.contains(&"--application-id") {
                words.extend(["--application-id", &self.service.application_id]);
            }
        }
        let done = self.service.cli_with(&words, &variables, "correct horse\n");
        let (out, err) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let told = format!("svc {}: {}\n{out}\n{err}", words.join(" "), done.status);
        assert!(matches!(done.status.code(), Some(0..=2)), "{told}");
        assert!(!err.contains("panicked"), "{told}");
        assert!(!err.contains("For more information, try '--help'"), "{told}");
    }

    /// Runs a command with what it needs, with all its options, and with a deploy token for programs.
    fn check(&self, leaf: &Leaf) {
        let is_one_of_needed = |argument: &clap::Arg| {
            let mut groups = leaf.command.get_groups().filter(|group| group.is_required_set());
            groups.any(|group| group.get_args().any(|id| id == argument.get_id()))
        };
        let is_needed = |argument: &&clap::Arg| {
            argument.is_required_set() || argument.is_positional() || is_one_of_needed(argument)
        };
        let is_credential = |argument: &clap::Arg| argument.get_id() == "token";
        self.run(leaf, &self.words(leaf, leaf.arguments().filter(is_needed)));
        self.run(leaf, &self.words(leaf, leaf.arguments().filter(|it| !is_credential(it))));
        let for_programs = |argument: &&clap::Arg| {
            is_needed(argument) || is_credential(argument) || argument.get_id() == "json"
        };
        self.run(leaf, &self.words(leaf, leaf.arguments().filter(for_programs)));
    }
}

#[test]
fn every_command_of_the_help_ends_as_documented() {
    let mut world = World::new();
    let service = &world.service;
    std::fs::create_dir(service.home.join("folder")).unwrap();
    std::fs::write(service.home.join("some.json"), "{}").unwrap();
    let login = ["login", "--email", &world.ada.email, "--password-stdin"];
    let to = ["--api-url", &service.url, "--application-id", &service.application_id];
    let done = service.cli_with(&[&login[..], &to].concat(), &[], "correct horse\n");
    assert!(done.status.success(), "{done:?}");

    let (of_machine, of_clients): (Vec<_>, Vec<_>) =
        leaves().into_iter().partition(|leaf| leaf.path[0] == "admin");
    assert!(of_machine.len() > 5 && of_clients.len() > 50);
    let is_sign_in = |leaf: &&Leaf| SIGN_INS.contains(&leaf.name().as_str());
    of_clients.iter().filter(|leaf| !is_sign_in(leaf)).for_each(|leaf| world.check(leaf));
    of_clients.iter().filter(is_sign_in).for_each(|leaf| world.check(leaf));
    world.service.stop();
    let is_of_database = |argument: &&clap::Arg| argument.get_id().as_str().starts_with("store");
    for leaf in &of_machine {
        let arguments = || leaf.arguments().filter(|it| it.get_id() != "token");
        world.run(leaf, &world.words(leaf, arguments().filter(|it| !is_of_database(it))));
        // With a database that is away.
        world.run(leaf, &world.words(leaf, arguments()));
    }
}
