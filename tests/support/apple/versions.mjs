// Versions in the App Store, their review and their release.
import { compared } from "./builds.mjs";
import { filter, INVALID_STATE, many, notFound, one, passes, refuse, Refusal, resource } from "./documents.mjs";

const EDITABLE = ["PREPARE_FOR_SUBMISSION", "DEVELOPER_REJECTED", "REJECTED", "METADATA_REJECTED", "INVALID_BINARY"];
const RELEASED = ["READY_FOR_DISTRIBUTION", "REPLACED_WITH_NEW_VERSION"];
const UNFINISHED = ["READY_FOR_REVIEW", "WAITING_FOR_REVIEW", "IN_REVIEW", "UNRESOLVED_ISSUES", "CANCELING"];
const LAST_DAY = 7;
const REQUIRED = "ENTITY_ERROR.ATTRIBUTE.REQUIRED";

export class Versions {
  versions = [];
  submissions = [];

  constructor(world) {
    this.world = world;
  }

  find(id) {
    return this.versions.find((one) => one.id === id) ?? notFound("appStoreVersions", id);
  }

  /// The highest version of an app that was ever released.
  released(app) {
    const all = this.versions.filter((one) => one.app === app && RELEASED.includes(one.state));
    return all.map(({ version }) => version).sort(compared).at(-1);
  }

  /// Adds a version as it is, with localizations by language.
  add({ app, version, state = "PREPARE_FOR_SUBMISSION", releaseType = "AFTER_APPROVAL", locales, ...given }) {
    const usual = { description: "An app.", keywords: "app", supportUrl: "https://example.com/help" };
    const added = { id: this.world.id("version"), app, version, state, releaseType, earliest: null, looks: 0 };
    const localizations = Object.entries(locales ?? { "en-US": {} }).map(([locale, texts]) => ({
      id: this.world.id("localization"),
      locale,
      ...usual,
      ...texts,
    }));
    this.versions.push({ ...added, build: null, phased: null, releases: 0, ...given, localizations });
    return this.versions.at(-1);
  }

  #document({ id, app, version, state, releaseType, earliest, build, phased }) {
    const attributes = {
      platform: "IOS",
      versionString: version,
      appVersionState: state,
      releaseType,
      earliestReleaseDate: earliest,
    };
    return resource("appStoreVersions", id, attributes, {
      app: ["apps", app],
      build: ["builds", build],
      appStoreVersionPhasedRelease: ["appStoreVersionPhasedReleases", phased?.id],
    });
  }

  list(app, query) {
    this.world.app(app);
    const [platform, state] = [filter(query, "platform"), filter(query, "appVersionState")];
    const found = this.versions.filter(
      (one) => one.app === app && passes(platform, "IOS") && passes(state, one.state),
    );
    return many(found.map((one) => this.#document(one)), query);
  }

  create({ attributes, relationships }) {
    const app = this.world.app(relationships.app.data.id).id;
    const { versionString: version, releaseType, earliestReleaseDate: earliest } = attributes;
    const others = this.versions.filter((one) => one.app === app);
    const highest = this.released(app);
    const errors = [];
    if (others.some(({ state }) => !RELEASED.includes(state))) {
      const detail = "You cannot create a new version of the App in the current state.";
      errors.push({ code: "ENTITY_ERROR.RELATIONSHIP.INVALID", detail });
    }
    if (others.some((one) => one.version === version)) {
      const detail = "The version number has been previously used.";
      errors.push({ code: "ENTITY_ERROR.ATTRIBUTE.INVALID.DUPLICATE", detail });
    } else if (highest && compared(version, highest) <= 0) {
      const detail = "The version number is not higher than that of the last version.";
      errors.push({ code: "ENTITY_ERROR.ATTRIBUTE.INVALID.INVALID_VERSION", detail });
    }
    if (errors.length) throw new Refusal(409, ...errors);
    const last = others.find((one) => one.version === highest);
    const copied = (last?.localizations ?? []).map(({ locale, whatsNew, id, ...texts }) => [locale, texts]);
    const locales = copied.length ? Object.fromEntries(copied) : undefined;
    return one(this.#document(this.add({ app, version, releaseType, earliest, locales })));
  }

  get(id, query) {
    const version = this.find(id);
    this.#work(version);
    const wanted = query.get("include")?.split(",") ?? [];
    const included = [];
    if (wanted.includes("build") && version.build) {
      included.push(this.world.builds.build(version.build, new URLSearchParams()).data);
    }
    if (wanted.includes("appStoreVersionPhasedRelease") && version.phased) included.push(this.#phased(version));
    return one(this.#document(version), included);
  }

  change(id, { attributes }) {
    const version = this.find(id);
    const { versionString, releaseType, earliestReleaseDate } = attributes;
    const isEditable = EDITABLE.includes(version.state);
    const isWaiting = ["WAITING_FOR_REVIEW", "IN_REVIEW", "PENDING_DEVELOPER_RELEASE"].includes(version.state);
    if ((versionString && !isEditable) || !(isEditable || isWaiting)) {
      refuse(409, INVALID_STATE, `The version cannot be changed in the state ${version.state}.`);
    }
    const type = releaseType ?? version.releaseType;
    if ((type === "SCHEDULED") !== Boolean(earliestReleaseDate)) {
      refuse(409, "ENTITY_ERROR.ATTRIBUTE.INVALID", "A date goes with the release type SCHEDULED and no other.");
    }
    if (earliestReleaseDate && !/T\d\d:00:00/.test(earliestReleaseDate)) {
      refuse(409, "ENTITY_ERROR.ATTRIBUTE.INVALID", "The date must be a whole hour.");
    }
    Object.assign(version, { version: versionString ?? version.version, releaseType: type });
    version.earliest = earliestReleaseDate ?? null;
    return one(this.#document(version));
  }

  attach(id, { id: buildId }) {
    const version = this.find(id);
    if (!EDITABLE.includes(version.state)) {
      refuse(409, INVALID_STATE, `A build cannot be swapped in the state ${version.state}.`);
    }
    const build = this.world.builds.find("builds", "builds", buildId);
    const isUsable = build.processing === "VALID" && !build.expired && build.version === version.version;
    if (!isUsable) refuse(409, "ENTITY_ERROR.RELATIONSHIP.INVALID", "The build cannot be used for this version.");
    version.build = build.id;
    version.attachments = (version.attachments ?? 0) + 1;
  }

  localizationsOf(id, query) {
    return many(this.find(id).localizations.map((one) => this.#localization(one)), query);
  }

  #localization({ id, locale, description, keywords, supportUrl, whatsNew }) {
    return resource("appStoreVersionLocalizations", id, { locale, description, keywords, supportUrl, whatsNew });
  }

  changeLocalization(id, { attributes }) {
    const version = this.versions.find(({ localizations }) => localizations.some((one) => one.id === id));
    if (!version) notFound("appStoreVersionLocalizations", id);
    const isFirst = !this.released(version.app);
    if (!EDITABLE.includes(version.state) || (isFirst && "whatsNew" in attributes)) {
      refuse(409, "STATE_ERROR", "Attribute 'whatsNew' cannot be edited at this time");
    }
    const localization = version.localizations.find((one) => one.id === id);
    Object.assign(localization, attributes);
    return one(this.#localization(localization));
  }

  #phased({ phased: { id, state, day } }) {
    const attributes = { phasedReleaseState: state, currentDayNumber: day, totalPauseDuration: 0 };
    return resource("appStoreVersionPhasedReleases", id, attributes);
  }

  #ofPhased(id) {
    return this.versions.find(({ phased }) => phased?.id === id) ?? notFound("appStoreVersionPhasedReleases", id);
  }

  addPhased({ attributes, relationships }) {
    const version = this.find(relationships.appStoreVersion.data.id);
    if (version.phased) refuse(409, "ENTITY_ERROR.RELATIONSHIP.INVALID", "The version is released in phases already.");
    if (!this.released(version.app)) refuse(409, "STATE_ERROR", "A first version cannot be released in phases.");
    if (RELEASED.includes(version.state)) refuse(409, INVALID_STATE, "The version is released.");
    if (attributes.phasedReleaseState !== "INACTIVE") refuse(409, "ENTITY_ERROR.ATTRIBUTE.INVALID", "Not yet.");
    version.phased = { id: this.world.id("phased"), state: "INACTIVE", day: null, history: [] };
    return one(this.#phased(version));
  }

  changePhased(id, { attributes }) {
    const version = this.#ofPhased(id);
    const { phased } = version;
    const allowed = { ACTIVE: ["PAUSED", "COMPLETE"], PAUSED: ["ACTIVE", "COMPLETE"] }[phased.state] ?? [];
    const wanted = attributes?.phasedReleaseState;
    if (!allowed.includes(wanted)) refuse(409, INVALID_STATE, `It is ${phased.state} and cannot become ${wanted}.`);
    phased.state = wanted;
    phased.history.push(wanted);
    return one(this.#phased(version));
  }

  removePhased(id) {
    const version = this.#ofPhased(id);
    if (version.phased.state !== "INACTIVE") refuse(409, INVALID_STATE, "The release in phases has begun.");
    version.phased = null;
  }

  /// A day of an app's release in phases passes.
  nextDay(app) {
    const isActive = (one) => one.app === app && one.phased?.state === "ACTIVE";
    for (const { phased } of this.versions.filter(isActive)) {
      phased.day += 1;
      if (phased.day > LAST_DAY) Object.assign(phased, { state: "COMPLETE", day: LAST_DAY });
    }
  }

  submission(id) {
    const submission = this.submissions.find((one) => one.id === id) ?? notFound("reviewSubmissions", id);
    if (submission.state === "CANCELING") this.#finishCancel(submission);
    return submission;
  }

  #submissionDocument({ id, state, app, items }) {
    const relationships = { app: ["apps", app], items: ["reviewSubmissionItems", items.map((item) => item.id)] };
    return resource("reviewSubmissions", id, { platform: "IOS", state }, relationships);
  }

  submissionsOf(query) {
    const [app, state] = [filter(query, "app"), filter(query, "state")];
    for (const one of this.submissions.filter(({ state }) => state === "CANCELING")) this.#finishCancel(one);
    const found = this.submissions.filter((one) => passes(app, one.app) && passes(state, one.state));
    return many(found.map((one) => this.#submissionDocument(one)), query);
  }

  getSubmission(id) {
    return one(this.#submissionDocument(this.submission(id)));
  }

  createSubmission({ relationships }) {
    const app = this.world.app(relationships.app.data.id).id;
    const unfinished = this.submissions.filter((one) => one.app === app && UNFINISHED.includes(one.state));
    if (unfinished.length >= 5) {
      const code = "STATE_ERROR.CONCURRENT_REVIEW_SUBMISSION_LIMIT_EXCEEDED";
      const detail = "Unable to create reviewSubmission as maximum limit=5 of concurrency has reached";
      const associatedErrors = { [`/apps/${app}`]: [{ id: "1", status: "409", code, title: detail, detail }] };
      refuse(409, INVALID_STATE, "This resource cannot be reviewed.", { associatedErrors });
    }
    this.submissions.push({ id: this.world.id("submission"), app, state: "READY_FOR_REVIEW", items: [], sent: 0, looks: 0 });
    return one(this.#submissionDocument(this.submissions.at(-1)));
  }

  #item({ id, version, state }) {
    return resource("reviewSubmissionItems", id, { state }, { appStoreVersion: ["appStoreVersions", version] });
  }

  itemsOf(id, query) {
    const items = this.submission(id).items;
    const included = items.map(({ version }) => this.#document(this.find(version)));
    return many(items.map((item) => this.#item(item)), query, included);
  }

  addItem({ relationships }) {
    const submission = this.submission(relationships.reviewSubmission.data.id);
    const version = this.find(relationships.appStoreVersion.data.id);
    const isIn = ({ items }) => items.some((item) => item.version === version.id);
    if (this.submissions.some((one) => UNFINISHED.includes(one.state) && isIn(one))) {
      refuse(409, "STATE_ERROR.ITEM_PART_OF_ANOTHER_SUBMISSION", "The version is part of another submission.");
    }
    if (submission.state !== "READY_FOR_REVIEW") refuse(409, INVALID_STATE, "The submission was sent already.");
    const associatedErrors = this.#lacks(version);
    if (Object.keys(associatedErrors).length) {
      const detail = "This resource cannot be reviewed, please check associated errors to see why.";
      refuse(409, INVALID_STATE, detail, { associatedErrors });
    }
    submission.items.push({ id: this.world.id("item"), version: version.id, state: "READY_FOR_REVIEW" });
    version.state = "READY_FOR_REVIEW";
    return one(this.#item(submission.items.at(-1)));
  }

  /// What Apple demands of a version before its review, by resource.
  #lacks(version) {
    const errors = {};
    const lack = (path, code, detail) => (errors[path] ??= []).push({ id: "1", status: "409", code, title: detail, detail });
    const required = (path, name) =>
      lack(path, REQUIRED, `You must provide a value for the attribute '${name}' with this request`);
    if (!version.build) required(`/v1/appStoreVersions/${version.id}`, "build");
    const isUpdate = this.released(version.app) !== undefined;
    for (const one of version.localizations) {
      const needed = ["description", "keywords", "supportUrl", ...(isUpdate ? ["whatsNew"] : [])];
      const path = `/v1/appStoreVersionLocalizations/${one.id}`;
      for (const name of needed.filter((name) => !one[name])) required(path, name);
    }
    for (const { path, code, detail } of this.world.settings(version.app).lacks) lack(path, code, detail);
    return errors;
  }

  removeItem(id) {
    const submission = this.submissions.find(({ items }) => items.some((item) => item.id === id));
    if (!submission) notFound("reviewSubmissionItems", id);
    if (submission.state !== "READY_FOR_REVIEW") refuse(409, INVALID_STATE, "Item was already submitted");
    const [{ version }] = submission.items.filter((item) => item.id === id);
    submission.items = submission.items.filter((item) => item.id !== id);
    this.find(version).state = "PREPARE_FOR_SUBMISSION";
  }

  changeSubmission(id, { attributes }) {
    const submission = this.submission(id);
    if (attributes.submitted) this.#submit(submission);
    if (attributes.canceled) this.#cancel(submission);
    return one(this.#submissionDocument(submission));
  }

  #submit(submission) {
    if (submission.state !== "READY_FOR_REVIEW" || !submission.items.length) {
      refuse(409, INVALID_STATE, "The submission cannot be sent.");
    }
    Object.assign(submission, { state: "WAITING_FOR_REVIEW", sent: submission.sent + 1 });
    for (const { version } of submission.items) this.find(version).state = "WAITING_FOR_REVIEW";
  }

  #cancel(submission) {
    if (!["WAITING_FOR_REVIEW", "IN_REVIEW", "UNRESOLVED_ISSUES"].includes(submission.state)) {
      refuse(409, INVALID_STATE, "Resource is not in cancellable state");
    }
    Object.assign(submission, { state: "CANCELING", looks: 0, cancellations: (submission.cancellations ?? 0) + 1 });
  }

  /// A cancellation takes a while.
  #finishCancel(submission) {
    if ((submission.looks += 1) <= this.world.settings(submission.app).cancelLooks) return;
    submission.state = "COMPLETE";
    for (const item of submission.items) {
      item.state = "REMOVED";
      const version = this.find(item.version);
      if (!EDITABLE.includes(version.state)) version.state = "DEVELOPER_REJECTED";
    }
  }

  requestRelease({ relationships }) {
    const version = this.find(relationships.appStoreVersion.data.id);
    if (version.state !== "PENDING_DEVELOPER_RELEASE") {
      refuse(409, INVALID_STATE, `The version is ${version.state} and cannot be released.`);
    }
    version.releases += 1;
    version.state = "PROCESSING_FOR_DISTRIBUTION";
    return { data: { type: "appStoreVersionReleaseRequests", id: version.id }, links: { self: "https://api.appstoreconnect.apple.com/v1" } };
  }

  /// What Apple does with a version by itself: each look brings it one state closer to its end.
  #work(version) {
    const { isReviewing, verdict } = this.world.settings(version.app);
    const isIn = ({ items }) => items.some((item) => item.version === version.id);
    const submission = this.submissions.find((one) => UNFINISHED.includes(one.state) && isIn(one));
    if (submission?.state === "CANCELING") return this.#finishCancel(submission);
    if (version.state === "PROCESSING_FOR_DISTRIBUTION") return this.#distribute(version);
    if (!isReviewing || !submission) return;
    if (version.state === "WAITING_FOR_REVIEW") {
      version.state = "IN_REVIEW";
      submission.state = "IN_REVIEW";
    } else if (version.state === "IN_REVIEW" && verdict !== "APPROVED") {
      version.state = verdict;
      submission.state = "UNRESOLVED_ISSUES";
    } else if (version.state === "IN_REVIEW") {
      submission.state = "COMPLETE";
      const isAtOnce = version.releaseType === "AFTER_APPROVAL";
      version.state = isAtOnce ? "PROCESSING_FOR_DISTRIBUTION" : "PENDING_DEVELOPER_RELEASE";
    }
  }

  #distribute(version) {
    const before = this.versions.filter((one) => one.app === version.app && one.state === "READY_FOR_DISTRIBUTION");
    for (const one of before) {
      one.state = "REPLACED_WITH_NEW_VERSION";
      if (one.phased) one.phased.state = "COMPLETE";
    }
    version.state = "READY_FOR_DISTRIBUTION";
    if (version.phased) Object.assign(version.phased, { state: "ACTIVE", day: 1 });
  }
}
