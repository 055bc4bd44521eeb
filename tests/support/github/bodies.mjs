// The bodies of GitHub's answers. Every field that the GitHub REST API description (npm @octokit/openapi)
// requires is here, because the proxy in front of the fake refuses answers that lack one.
import { createHash } from "node:crypto";

const REPOSITORY_LINKS = {
  archive_url: "/{archive_format}{/ref}",
  assignees_url: "/assignees{/user}",
  blobs_url: "/git/blobs{/sha}",
  branches_url: "/branches{/branch}",
  collaborators_url: "/collaborators{/collaborator}",
  comments_url: "/comments{/number}",
  commits_url: "/commits{/sha}",
  compare_url: "/compare/{base}...{head}",
  contents_url: "/contents/{+path}",
  contributors_url: "/contributors",
  deployments_url: "/deployments",
  downloads_url: "/downloads",
  events_url: "/events",
  forks_url: "/forks",
  git_commits_url: "/git/commits{/sha}",
  git_refs_url: "/git/refs{/sha}",
  git_tags_url: "/git/tags{/sha}",
  hooks_url: "/hooks",
  issue_comment_url: "/issues/comments{/number}",
  issue_events_url: "/issues/events{/number}",
  issues_url: "/issues{/number}",
  keys_url: "/keys{/key_id}",
  labels_url: "/labels{/name}",
  languages_url: "/languages",
  merges_url: "/merges",
  milestones_url: "/milestones{/number}",
  notifications_url: "/notifications{?since,all,participating}",
  pulls_url: "/pulls{/number}",
  releases_url: "/releases{/id}",
  stargazers_url: "/stargazers",
  statuses_url: "/statuses/{sha}",
  subscribers_url: "/subscribers",
  subscription_url: "/subscription",
  tags_url: "/tags",
  teams_url: "/teams",
  trees_url: "/git/trees{/sha}",
};

const ACCOUNT_LINKS = {
  followers_url: "/followers",
  following_url: "/following{/other_user}",
  gists_url: "/gists{/gist_id}",
  starred_url: "/starred{/owner}{/repo}",
  subscriptions_url: "/subscriptions",
  organizations_url: "/orgs",
  repos_url: "/repos",
  events_url: "/events{/privacy}",
  received_events_url: "/received_events",
};

const joined = (base, links) =>
  Object.fromEntries(Object.entries(links).map(([name, end]) => [name, base + end]));
const nodeId = (kind, id) => Buffer.from(`0:${kind}${id}`).toString("base64");
export const shaOf = (text) => createHash("sha1").update(text).digest("hex");
// GitHub writes times without fractions of a second.
export const time = (at = new Date()) => `${at.toISOString().slice(0, 19)}Z`;

export class Bodies {
  constructor(config) {
    Object.assign(this, config);
    this.created = time();
  }

  account(login, id, type) {
    const escaped = encodeURIComponent(login);
    const url = `${this.api}/users/${escaped}`;
    return {
      login,
      id,
      node_id: nodeId(type, id),
      avatar_url: `https://avatars.githubusercontent.com/u/${id}?v=4`,
      gravatar_id: "",
      url,
      html_url: `https://github.com/${escaped}`,
      ...joined(url, ACCOUNT_LINKS),
      type,
      site_admin: false,
    };
  }

  owner() {
    return this.account(this.owner_login, this.ownerId, "Organization");
  }

  bot() {
    return this.account(`${this.slug}[bot]`, 4_000_000 + this.appId, "Bot");
  }

  repositoryUrl(name) {
    return `${this.api}/repos/${this.owner_login}/${name}`;
  }

  /// The schema "content-file".
  file(name, path, text) {
    const url = `${this.repositoryUrl(name)}/contents/${path}?ref=main`;
    const html_url = `https://github.com/${this.owner_login}/${name}/blob/main/${path}`;
    const sha = shaOf(`blob ${Buffer.byteLength(text)}\0${text}`);
    const git_url = `${this.repositoryUrl(name)}/git/blobs/${sha}`;
    return {
      type: "file",
      encoding: "base64",
      size: Buffer.byteLength(text),
      name: path.split("/").at(-1),
      path,
      // GitHub breaks the lines.
      content: Buffer.from(text).toString("base64").replace(/.{60}/g, "$&\n"),
      sha,
      url,
      git_url,
      html_url,
      download_url: null,
      _links: { self: url, git: git_url, html: html_url },
    };
  }

  /// The schema "minimal-repository", which runs carry.
  repository(name) {
    const fullName = `${this.owner_login}/${name}`;
    const id = this.repositories[name];
    const url = this.repositoryUrl(name);
    return {
      id,
      node_id: nodeId("Repository", id),
      name,
      full_name: fullName,
      private: true,
      owner: this.owner(),
      html_url: `https://github.com/${fullName}`,
      description: null,
      fork: false,
      url,
      ...joined(url, REPOSITORY_LINKS),
    };
  }

  /// The schema "full-repository", for the answer about the repository itself and for webhooks.
  fullRepository(name) {
    const { html_url, full_name, ...rest } = this.repository(name);
    const counts = ["forks", "open_issues", "watchers", "forks_count", "open_issues_count"];
    const more = ["watchers_count", "stargazers_count", "network_count", "subscribers_count", "size"];
    return {
      ...rest,
      html_url,
      full_name,
      ...Object.fromEntries([...counts, ...more].map((count) => [count, 0])),
      clone_url: `${html_url}.git`,
      git_url: `git://github.com/${full_name}.git`,
      ssh_url: `git@github.com:${full_name}.git`,
      svn_url: html_url,
      mirror_url: null,
      homepage: null,
      language: null,
      license: null,
      default_branch: "main",
      has_issues: true,
      has_projects: true,
      has_wiki: true,
      has_pages: false,
      has_downloads: true,
      has_discussions: false,
      archived: false,
      disabled: false,
      visibility: "private",
      topics: [],
      pushed_at: this.created,
      created_at: this.created,
      updated_at: this.created,
    };
  }

  installation(suspendedAt) {
    return {
      target_id: this.ownerId,
      suspended_at: suspendedAt,
      suspended_by: suspendedAt ? this.owner() : null,
    };
  }

  commit(run) {
    const person = { name: "Mona", email: "mona@example.com" };
    return {
      id: run.head_sha,
      tree_id: shaOf(`tree of ${run.head_sha}`),
      message: "Initial commit",
      timestamp: this.created,
      author: person,
      committer: person,
    };
  }

  workflow(run) {
    const page = `https://github.com/${this.owner_login}/${run.repository}`;
    return {
      id: run.workflow_id,
      node_id: nodeId("Workflow", run.workflow_id),
      name: run.name,
      path: run.path,
      state: "active",
      created_at: this.created,
      updated_at: this.created,
      url: `${this.repositoryUrl(run.repository)}/actions/workflows/${run.workflow_id}`,
      html_url: `${page}/blob/main/${run.path}`,
      badge_url: `${page}/actions/workflows/${run.file}/badge.svg`,
    };
  }

  run(run) {
    const url = `${this.repositoryUrl(run.repository)}/actions/runs/${run.id}`;
    const suite = run.id + 1_000_000;
    return {
      id: run.id,
      name: run.name,
      node_id: nodeId("WorkflowRun", run.id),
      head_branch: run.head_branch,
      head_sha: run.head_sha,
      path: run.path,
      display_title: run.display_title,
      run_number: run.run_number,
      event: run.event,
      status: run.status,
      conclusion: run.conclusion,
      workflow_id: run.workflow_id,
      check_suite_id: suite,
      check_suite_node_id: nodeId("CheckSuite", suite),
      url,
      html_url: run.html_url,
      pull_requests: [],
      created_at: run.created_at,
      updated_at: run.updated_at,
      actor: this.bot(),
      run_attempt: 1,
      referenced_workflows: [],
      run_started_at: run.created_at,
      triggering_actor: this.bot(),
      jobs_url: `${url}/jobs`,
      logs_url: `${url}/logs`,
      check_suite_url: `${this.repositoryUrl(run.repository)}/check-suites/${suite}`,
      artifacts_url: `${url}/artifacts`,
      cancel_url: `${url}/cancel`,
      rerun_url: `${url}/rerun`,
      previous_attempt_url: null,
      workflow_url: `${this.repositoryUrl(run.repository)}/actions/workflows/${run.workflow_id}`,
      head_commit: this.commit(run),
      repository: this.repository(run.repository),
      head_repository: this.repository(run.repository),
    };
  }

  /// A job of a run; `given` holds what a test said about it.
  job(run, given, index) {
    const id = run.id * 10 + index;
    const state = { status: run.status, conclusion: run.conclusion, ...given };
    const runs = !["queued", "requested", "waiting", "pending"].includes(state.status);
    const base = this.repositoryUrl(run.repository);
    return {
      id,
      run_id: run.id,
      run_url: `${base}/actions/runs/${run.id}`,
      run_attempt: 1,
      node_id: nodeId("CheckRun", id),
      head_sha: run.head_sha,
      head_branch: run.head_branch,
      url: `${base}/actions/jobs/${id}`,
      html_url: `${run.html_url}/job/${id}`,
      status: state.status,
      conclusion: state.conclusion ?? null,
      created_at: run.created_at,
      started_at: run.created_at,
      completed_at: state.status === "completed" ? run.updated_at : null,
      name: state.name ?? "build",
      steps: (state.steps ?? defaultSteps(state, runs)).map((step, at) => stepOf(run, step, at)),
      check_run_url: `${base}/check-runs/${id}`,
      labels: ["ubuntu-latest"],
      runner_id: runs ? 1 : null,
      runner_name: runs ? "GitHub Actions 1" : null,
      runner_group_id: runs ? 0 : null,
      runner_group_name: runs ? "GitHub Actions" : null,
      workflow_name: run.name,
    };
  }

  webhook(run, action) {
    return {
      action,
      workflow_run: this.run(run),
      workflow: this.workflow(run),
      repository: this.fullRepository(run.repository),
      sender: this.bot(),
      installation: {
        id: this.installationId,
        node_id: nodeId("Installation", this.installationId),
      },
    };
  }
}

function defaultSteps({ status, conclusion }, runs) {
  if (!runs) return [];
  return [
    { name: "Set up job", status: "completed", conclusion: "success" },
    { name: "Build", status, conclusion },
  ];
}

function stepOf(run, step, at) {
  return {
    name: step.name ?? `Step ${at + 1}`,
    status: step.status ?? "queued",
    conclusion: step.conclusion ?? null,
    number: step.number ?? at + 1,
    started_at: step.status === "queued" ? null : run.created_at,
    completed_at: step.status === "completed" ? run.updated_at : null,
  };
}
