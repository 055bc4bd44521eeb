//! Versions, their files and where they are built: repositories, workflows and the runs of a CI.

texts! {
    /// A version name, such as `1.4.2` or `2.0.0-rc.1`.
    VersionName,
    schema: {"type": "string", "pattern": "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b".+_-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if good && first && text.len() <= 64 { Ok(text.to_owned()) } else { Err("must be a version such as 1.4.2: letters, digits, . + _ -, at most 64 characters".into()) }
    };

    /// The name of a release channel, such as `production`.
    Channel,
    schema: {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if good && first && text.len() <= 63 { Ok(text.to_owned()) } else { Err("must be a channel name such as production: lower-case letters, digits, . _ -, at most 63 characters".into()) }
    };

    /// Release notes, at most 10,000 characters.
    Notes,
    schema: {"type": "string", "maxLength": 10000},
    rule: |text| if text.chars().count() <= 10_000 { Ok(text.to_owned()) } else { Err("must have at most 10000 characters".into()) };

    /// A SHA-256 in lower-case hex.
    Sha256,
    schema: {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    rule: |text| {
        let good = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if good { Ok(text.to_owned()) } else { Err("must be a SHA-256: 64 hexadecimal digits in lower case".into()) }
    };

    /// The name of an uploaded file, without a folder. The service never uses it as a path.
    FileName,
    schema: {"type": "string", "pattern": "^[^/\\\\\\x00-\\x1f]{1,200}$"},
    rule: |text| {
        let good = !text.is_empty() && text.chars().count() <= 200 && !text.chars().any(|c| c.is_control() || c == '/' || c == '\\');
        if good { Ok(text.to_owned()) } else { Err("must be a file name without a folder, 1 to 200 characters".into()) }
    };

    /// The identifier of an app: an iOS bundle identifier or an Android package name.
    StoreIdentifier,
    schema: {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*(\\.[A-Za-z0-9_-]+)+$", "maxLength": 155},
    rule: |text| {
        let mut labels = text.split('.');
        let plain = |l: &str| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        if first && text.len() <= 155 && text.contains('.') && labels.all(plain) { Ok(text.to_owned()) } else { Err("must be an identifier such as com.example.app".into()) }
    };

    /// The name of a repository with that of its owner, such as `acme/app`.
    RepositoryName,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", "maxLength": 200},
    rule: |text| {
        let part = |p: &str| !["", ".", ".."].contains(&p) && p.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        let good = text.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name));
        if good && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be a repository such as acme/app".into()) }
    };

    /// The address of a git repository: an https URL without user and password, or an ssh URL. The
    /// short form `git@host:team/app.git` stands for `ssh://git@host/team/app.git`. The service
    /// refuses addresses of the internal network when it opens the address.
    GitUrl,
    schema: {"type": "string", "pattern": "^(https?://[A-Za-z0-9.-]+(:[0-9]+)?/|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9.-]+(:[0-9]+)?/|[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9.-]+:)[A-Za-z0-9._~/-]+$", "maxLength": 500},
    rule: crate::git_url::checked;

    /// A branch, tag or commit.
    GitRef,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b)) && !text.contains("..");
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        if good && first && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be a branch, tag or commit such as main".into()) }
    };

    /// The relative path of a file in a repository.
    ContextPath,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", "maxLength": 200},
    rule: |text| {
        let part = |p: &str| !p.is_empty() && p != "." && p != ".." && p.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if text.split('/').all(part) && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be a path in the repository such as deploy/Dockerfile".into()) }
    };

    /// The file name of a workflow, such as `svc-build.yml`.
    WorkflowFile,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_.-]+\\.ya?ml$", "maxLength": 200},
    rule: |text| {
        let stem = text.strip_suffix(".yml").or_else(|| text.strip_suffix(".yaml")).unwrap_or_default();
        let good = !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        if good && text.len() <= 200 { Ok(text.to_owned()) } else { Err("must be the file name of a workflow such as svc-build.yml".into()) }
    };

    /// A workflow of a repository, such as `acme/ci/.github/workflows/build.yml`, in any version or, with
    /// `@refs/tags/v1`, in one.
    WorkflowPath,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/\\.github/workflows/[A-Za-z0-9_.-]+\\.ya?ml(@[A-Za-z0-9_./-]+)?$", "maxLength": 400},
    rule: |text| {
        let (path, version) = text.split_once('@').map_or((text, None), |(path, version)| (path, Some(version)));
        let (repository, file) = path.split_once("/.github/workflows/").unwrap_or_default();
        let version = version.is_none_or(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./-".contains(&b)));
        let good = repository.parse::<RepositoryName>().is_ok() && file.parse::<WorkflowFile>().is_ok() && version;
        if good && text.len() <= 400 { Ok(text.to_owned()) } else { Err("must be a workflow such as acme/ci/.github/workflows/build.yml".into()) }
    };

    /// The name of an environment of a CI, 1 to 255 characters.
    Environment,
    schema: {"type": "string", "minLength": 1, "maxLength": 255},
    rule: |text| match text.chars().count() {
        1..=255 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err("must have 1 to 255 characters on one line".into()),
    };

    /// A branch or a tag with its full name, such as `refs/heads/main`, or those that begin alike,
    /// such as `refs/tags/v*`.
    RefPattern,
    schema: {"type": "string", "pattern": "^refs/[A-Za-z0-9_./+@-]+\\*?$", "maxLength": 255},
    rule: |text| {
        let name = text.strip_suffix('*').unwrap_or(text).strip_prefix("refs/").unwrap_or_default();
        let good = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./+@-".contains(&b));
        if good && text.len() <= 255 { Ok(text.to_owned()) } else { Err("must be a full name such as refs/heads/main, or the beginning of such names and * as in refs/tags/v*".into()) }
    };

    /// The event that begins a run of a CI, such as `push`. `pull_request_target` and `workflow_run` are
    /// refused: such runs may execute the code of strangers with the rights of the repository.
    CiEvent,
    schema: {"type": "string", "pattern": "^[a-z_]{1,50}$"},
    rule: |text| match text {
        "pull_request_target" | "workflow_run" => Err("must not be an event whose runs may execute the code of strangers".into()),
        _ if (1..=50).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') => Ok(text.to_owned()),
        _ => Err("must be the name of an event such as push".into()),
    };

    /// The number that a host of repositories gave to a repository or an account. It never changes.
    HostId,
    schema: {"type": "string", "pattern": "^[0-9]{1,20}$"},
    rule: |text| {
        if (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) { Ok(text.to_owned()) } else { Err("must be a number, as text".into()) }
    };
}
