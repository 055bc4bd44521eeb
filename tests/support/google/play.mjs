// A stateful Google Play: apps with tracks, edits, uploads, reviews, and the rules that the API description
// does not have. A change elsewhere ends an edit, and what was uploaded in it is lost with it.
import { Refusal, copy, empty, json, random, sha } from "./answers.mjs";

const CHUNK = 256 * 1024;
const STATE = (name) => `RELEASE_LIFECYCLE_STATE_${name}`;
const gone = {
  deleted: [400, "editDeleted", "This Edit has been deleted."],
  committed: [400, "editAlreadyCommitted", "This Edit has already been committed."],
  expired: [400, "editExpired", "This edit has expired."],
};
const bad = (reason, message) => new Refusal(400, reason, message);
const highest = ({ versionCodes = [] }) => Math.max(0, ...versionCodes.map(Number));
const isStaged = ({ status }) => status === "inProgress" || status === "halted";

/// What a file contains: the tests write it into its first line.
function contentOf(bytes) {
  try {
    return JSON.parse(bytes.subarray(0, bytes.indexOf("\n")));
  } catch {
    return {};
  }
}

export class Play {
  apps = new Map();
  /// What is in files that do not say so themselves, by SHA-256.
  contents = new Map();
  /// The next chunks of which only a part arrives.
  losing = 0;
  #edits = new Map();
  #sessions = new Map();
  #lastEdit = 0;

  constructor(base) {
    this.base = base;
  }

  /// Adds an app, or changes what it is like.
  ///
  /// tracks: releases by track. draft: it was never published. review: what is changed is reviewed.
  /// manual: somebody has to send changes for review in the console. members: who may see it; all by default.
  app({ packageName, tracks, ...like }) {
    const usual = { language: "en-US", draft: false, review: false, manual: false, members: null };
    const app = this.apps.get(packageName) ?? {
      packageName, ...usual, tracks: {}, library: [], lifecycle: {}, commits: [], uploads: [], reviewsCancelled: 0,
    };
    Object.assign(app, like);
    this.apps.set(packageName, app);
    for (const [track, releases] of Object.entries(tracks ?? {})) {
      app.tracks[track] = releases;
      for (const code of releases.flatMap(({ versionCodes }) => versionCodes)) {
        app.lifecycle[code] = STATE("PUBLISHED");
        if (!app.library.some((it) => it.versionCode === Number(code))) {
          app.library.push({ kind: "bundles", versionCode: Number(code), sha1: sha("sha1", code), sha256: sha("sha256", code) });
        }
      }
    }
  }

  /// Ends the review of everything that is in review.
  review({ packageName, outcome = "PUBLISHED" }) {
    const { lifecycle } = this.apps.get(packageName);
    for (const code of Object.keys(lifecycle)) {
      if (lifecycle[code] === STATE("IN_REVIEW")) lifecycle[code] = STATE(outcome);
    }
  }

  /// Somebody changes a track in the console.
  console({ packageName, track, releases }) {
    const app = this.apps.get(packageName);
    app.tracks[track] = releases;
    for (const code of releases.filter((it) => it.status !== "draft").flatMap((it) => it.versionCodes)) {
      app.lifecycle[code] = STATE("PUBLISHED");
    }
    this.endEdits({ packageName });
  }

  /// Ends the open edits of an app.
  endEdits({ packageName, how = "deleted" }) {
    for (const edit of this.#edits.values()) {
      if (edit.app.packageName === packageName && edit.state === "open") edit.state = how;
    }
  }

  /// Forgets the open uploads.
  endUploads() {
    this.#sessions.clear();
  }

  answer(account, { method, path, query, headers, body }) {
    const [, upload, packageName, rest] =
      path.match(/^(\/upload)?\/androidpublisher\/v3\/applications\/([^/]+)\/(.+)$/) ?? [];
    if (!packageName) throw new Refusal(404, "notFound", "Not found.");
    const app = this.apps.get(decodeURIComponent(packageName));
    if (!app) throw new Refusal(404, "applicationNotFound", `Package not found: ${packageName}.`);
    if (app.members && !app.members.includes(account)) {
      throw new Refusal(403, "forbidden", "The caller does not have permission");
    }
    if (upload) return this.#upload(app, account, { method, path, rest, query, headers, body });
    const call = `${method} ${rest}`;
    const listed = call.match(/^GET tracks\/([^/]+)\/releases$/);
    if (listed) return this.#summaries(app, decodeURIComponent(listed[1]));
    if (call === "POST edits") return this.#insert(app, account);
    const [, id, verb, inside = ""] = rest.match(/^edits\/([^/:]+)(?::(\w+))?(?:\/(.+))?$/) ?? [];
    const edit = this.#edit(app, account, id);
    if (verb === "validate") return this.#validate(edit);
    if (verb === "commit") return this.#commit(edit, query);
    const [kind, name] = inside.split("/");
    switch (`${method} ${kind}${name ? "/" : ""}`) {
      case "GET ":
        return json(200, { id: edit.id, expiryTimeSeconds: edit.expires });
      case "DELETE ":
        edit.state = "deleted";
        return empty(204);
      case "GET details":
        return json(200, { defaultLanguage: app.language, contactEmail: "owner@example.com" });
      case "GET tracks":
        return json(200, {
          kind: "androidpublisher#tracksListResponse",
          tracks: Object.keys(edit.tracks).map((track) => this.#track(edit, track)),
        });
      case "GET tracks/":
        return json(200, this.#track(edit, decodeURIComponent(name)));
      case "PUT tracks/":
        return this.#put(edit, decodeURIComponent(name), JSON.parse(body));
      case "GET bundles":
      case "GET apks": {
        const files = [...app.library, ...edit.uploads].filter((it) => it.kind === kind).map(fileOf);
        return json(200, { kind: `androidpublisher#${kind}ListResponse`, [kind]: files });
      }
      default:
        throw new Refusal(404, "notFound", "Not found.");
    }
  }

  #insert(app, account) {
    // An account has one edit of an app.
    for (const edit of this.#edits.values()) {
      if (edit.app === app && edit.account === account && edit.state === "open") edit.state = "deleted";
    }
    const id = String((this.#lastEdit += 1)).padStart(20, "0");
    const expires = String(Math.floor(Date.now() / 1000) + 3600);
    this.#edits.set(id, { id, app, account, state: "open", tracks: copy(app.tracks), uploads: [], expires });
    return json(200, { id, expiryTimeSeconds: expires });
  }

  #edit(app, account, id) {
    const edit = this.#edits.get(id);
    if (edit?.app !== app || edit.account !== account) {
      throw new Refusal(404, "editNotFound", "No application edit was found for the given id: edit not found.");
    }
    if (edit.state !== "open") throw new Refusal(...gone[edit.state]);
    return edit;
  }

  #track(edit, track) {
    const releases = edit.tracks[track];
    if (!releases) throw new Refusal(404, "trackNotFound", `Track not found: ${track}`);
    return { track, releases };
  }

  #put(edit, track, { releases = [], ...body }) {
    this.#track(edit, track);
    if (body.track && body.track !== track) throw bad("trackNameMismatch", "The track name does not match the path.");
    const known = [...edit.app.library, ...edit.uploads].map(({ versionCode }) => versionCode);
    for (const release of releases) {
      const { status, userFraction, versionCodes = [], releaseNotes = [], inAppUpdatePriority = 0 } = release;
      if (!status || status === "statusUnspecified") throw bad("releaseStatusMissing", "A release needs a status.");
      if (!versionCodes.length && status !== "draft") throw bad("releaseEmpty", "A release needs version codes.");
      for (const code of versionCodes) {
        if (!known.includes(Number(code))) throw bad("apkNotFound", `Version code ${code} was not found.`);
      }
      const has = userFraction !== undefined;
      if (has && !isStaged(release)) throw bad("userFractionNotAllowed", "userFraction needs inProgress or halted.");
      if (!has && status === "inProgress") throw bad("userFractionMissing", "inProgress needs a userFraction.");
      if (has && !(userFraction > 0 && userFraction < 1)) throw bad("userFractionInvalid", "userFraction must be between 0 and 1.");
      if (inAppUpdatePriority < 0 || inAppUpdatePriority > 5) throw bad("priorityInvalid", "Priority must be 0 to 5.");
      const languages = releaseNotes.map(({ language }) => language);
      if (new Set(languages).size !== languages.length) throw bad("releaseNotesDuplicate", "A language has two notes.");
      if (releaseNotes.some(({ text }) => [...text].length > 500)) {
        throw bad("releaseNotesTooLong", "Release notes are too long.");
      }
    }
    edit.tracks[track] = releases;
    return json(200, { track, releases });
  }

  #validate(edit) {
    this.#check(edit);
    return json(200, { id: edit.id, expiryTimeSeconds: edit.expires });
  }

  /// The rules for what a track may become.
  #check({ app, tracks }) {
    for (const [track, after] of Object.entries(tracks)) {
      const before = app.tracks[track];
      if (JSON.stringify(before) === JSON.stringify(after)) continue;
      const was = (release) => before.find((it) => it.versionCodes.some((code) => release.versionCodes.includes(code)));
      const live = after.filter(({ status }) => status === "completed" || status === "inProgress");
      if (app.draft && live.length) {
        throw bad("rolloutNotPermittedOnDraftApp", "Only releases with status draft may be created on draft app.");
      }
      if (after.filter((it) => it.status === "completed").length > 1) {
        throw bad("multipleReleases", "Too many completed releases specified in the track.");
      }
      if (after.filter((it) => it.status === "inProgress").length > 1) {
        throw bad("multipleReleases", "Too many rollout releases specified in the track.");
      }
      const completed = after.find(({ status }) => status === "completed");
      for (const release of after) {
        const earlier = was(release);
        const { status, userFraction } = release;
        if (earlier && earlier.status !== "draft" && status === "draft") {
          throw bad("releaseAlreadyRolledOut", "A release that was rolled out cannot become a draft.");
        }
        if (status === "inProgress" && !completed) {
          throw bad("firstReleaseStaged", "The first release on a track cannot be staged.");
        }
        if (status === "inProgress" && earlier?.status === "completed") {
          throw bad("completedStaged", "Fully released can not be staged.");
        }
        if (status === "inProgress" && highest(release) < highest(completed)) {
          throw new Refusal(403, "apkShadowed", `Version code ${highest(release)} is shadowed by ${highest(completed)}.`);
        }
        if (status === "inProgress" && earlier && isStaged(earlier) && userFraction < earlier.userFraction) {
          throw bad("userFractionDecreased", "The user fraction of a release cannot be decreased.");
        }
        if (status === "halted" && earlier?.status === "completed" && !completed) {
          throw bad("haltWithoutFallback", "A completed release can be halted only with an earlier completed release to serve.");
        }
        if (earlier && earlier.status !== "draft" && (earlier.inAppUpdatePriority ?? 0) !== (release.inAppUpdatePriority ?? 0)) {
          throw bad("priorityChanged", "inAppUpdatePriority cannot be changed after the release is rolled out.");
        }
      }
    }
  }

  #commit(edit, query) {
    const { app } = edit;
    this.#check(edit);
    const inReview = Object.keys(app.lifecycle).filter((code) => app.lifecycle[code] === STATE("IN_REVIEW"));
    const behavior = query.get("changesInReviewBehavior") ?? "CANCEL_IN_REVIEW_AND_SUBMIT";
    if (inReview.length && behavior === "ERROR_IF_IN_REVIEW") {
      throw bad("changesInReview", "There are changes already in review for this app.");
    }
    const notSent = query.get("changesNotSentForReview") === "true";
    if (app.manual && !notSent) {
      const then = "Once committed, the changes in this edit can be sent for review from the Google Play Console UI.";
      const set = "Please set the query parameter changesNotSentForReview to true.";
      throw bad("badRequest", `Changes cannot be sent for review automatically. ${set} ${then}`);
    }
    if (!app.manual && notSent) {
      const what = "The query parameter changesNotSentForReview must not be set.";
      throw bad("badRequest", `Changes are sent for review automatically. ${what}`);
    }
    if (inReview.length) app.reviewsCancelled += 1;
    const changed = {};
    for (const [track, after] of Object.entries(edit.tracks)) {
      if (JSON.stringify(app.tracks[track]) === JSON.stringify(after)) continue;
      changed[track] = copy(after);
      for (const { status, versionCodes } of after) {
        for (const code of versionCodes) app.lifecycle[code] = this.#lifecycle(app, code, status, notSent);
      }
      app.tracks[track] = after;
    }
    const listed = new Set(Object.values(app.tracks).flat().flatMap(({ versionCodes }) => versionCodes));
    for (const [code, state] of Object.entries(app.lifecycle)) {
      if (!listed.has(code) && state !== STATE("PUBLISHED")) delete app.lifecycle[code];
    }
    app.library.push(...edit.uploads);
    app.commits.push({ edit: edit.id, tracks: changed, behavior, notSent, uploads: edit.uploads.map(({ sha256 }) => sha256) });
    this.endEdits(app);
    edit.state = "committed";
    return json(200, { id: edit.id, expiryTimeSeconds: edit.expires });
  }

  #lifecycle(app, code, status, notSent) {
    const now = app.lifecycle[code];
    if (status === "draft") return STATE("DRAFT");
    if (now && now !== STATE("DRAFT")) return now;
    if (notSent) return STATE("NOT_SENT_FOR_REVIEW");
    return STATE(app.review ? "IN_REVIEW" : "PUBLISHED");
  }

  #summaries(app, track) {
    const releases = app.tracks[track];
    if (!releases) throw new Refusal(404, "trackNotFound", `Track not found: ${track}`);
    const summary = ({ name = "", versionCodes }) => ({
      releaseName: name,
      track,
      releaseLifecycleState: app.lifecycle[versionCodes[0]],
      activeArtifacts: versionCodes.map((code) => ({ versionCode: Number(code) })),
    });
    return json(200, { releases: releases.map(summary) });
  }

  #upload(app, account, { method, path, rest, query, headers, body }) {
    const [, id, kind] = rest.match(/^edits\/([^/]+)\/(bundles|apks)$/) ?? [];
    const edit = this.#edit(app, account, id);
    if (method === "POST") {
      const session = random(24);
      const size = Number(headers["x-upload-content-length"]);
      this.#sessions.set(session, { edit, kind, size, parts: [], received: 0, done: null });
      const location = `${this.base}${path}?uploadType=resumable&upload_id=${session}`;
      return empty(200, { location, "x-guploader-uploadid": session, "content-length": "0" });
    }
    const session = this.#sessions.get(query.get("upload_id"));
    if (session?.edit !== edit || session.kind !== kind) throw new Refusal(404, "notFound", "The upload was not found.");
    const [, first, last, size] = headers["content-range"].match(/^bytes (?:(\d+)-(\d+)|\*)\/(\d+)$/);
    if (Number(size) !== session.size) throw bad("badRequest", "The size differs from the declared one.");
    if (first !== undefined) this.#receive(session, Number(first), Number(last), body);
    else if (body.length) throw bad("badRequest", "A question about an upload has no body.");
    if (session.received < session.size) {
      return empty(308, session.received ? { range: `bytes=0-${session.received - 1}` } : {});
    }
    session.done ??= this.#complete(session);
    return json(200, session.done);
  }

  #receive(session, first, last, body) {
    if (body.length !== last - first + 1) throw bad("badRequest", "The body does not have the length of its range.");
    const isLast = last === session.size - 1;
    if (!isLast && body.length % CHUNK) throw bad("badRequest", "A chunk must be a multiple of 256 KiB.");
    if (last >= session.size) throw bad("badRequest", "The range is longer than the file.");
    if (first !== session.received) throw bad("badRequest", `The next byte is ${session.received}.`);
    let kept = body;
    if (this.losing > 0) {
      this.losing -= 1;
      kept = body.subarray(0, Math.floor(body.length / 2 / CHUNK) * CHUNK);
    }
    session.parts.push(kept);
    session.received += kept.length;
  }

  #complete({ edit, kind, parts }) {
    const bytes = Buffer.concat(parts);
    const { app } = edit;
    const sha256 = sha("sha256", bytes);
    const { packageName, versionCode, signed = true } = this.contents.get(sha256) ?? contentOf(bytes);
    if (!versionCode) throw bad("apkInvalid", "The file cannot be read as an app.");
    if (packageName !== app.packageName) {
      throw new Refusal(403, "apkPackageNameInvalid", `The file has the wrong package name ${packageName}.`);
    }
    if (!signed) throw new Refusal(403, "apkNotSigned", "All uploaded bundles must be signed. The file is not signed.");
    if ([...app.library, ...edit.uploads].some((it) => it.versionCode === versionCode)) {
      const message = `APK specifies a version code that has already been used: ${versionCode}`;
      throw new Refusal(403, "apkUpgradeVersionConflict", message);
    }
    const file = { kind, versionCode, sha1: sha("sha1", bytes), sha256 };
    edit.uploads.push(file);
    app.uploads.push({ edit: edit.id, kind, versionCode, sha256 });
    return fileOf(file);
  }
}

/// A file as the API shows it.
const fileOf = ({ kind, versionCode, sha1, sha256 }) =>
  kind === "bundles" ? { versionCode, sha1, sha256 } : { versionCode, binary: { sha1, sha256 } };
