// Uploads, the builds that Apple makes of them, and TestFlight.
import { createHash } from "node:crypto";
import { filter, INVALID_STATE, many, notFound, one, passes, refuse, resource } from "./documents.mjs";
import { STORAGE } from "./front.mjs";

const DAY = 24 * 60 * 60 * 1000;
const OF_EVERY_REQUEST = ["host", "connection", "accept", "content-length"];
const numbers = (version) => version.split(".").map(Number);
/// Compares versions such as 1.4.2 and 1.10.
export function compared(a, b) {
  const [left, right] = [numbers(a), numbers(b)];
  for (const at of [0, 1, 2]) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference) return difference;
  }
  return 0;
}

export class Builds {
  uploads = [];
  files = [];
  builds = [];
  groups = [];

  constructor(world) {
    this.world = world;
  }

  find(list, type, id) {
    return this[list].find((one) => one.id === id) ?? notFound(type, id);
  }

  #isOf(one, { cfBundleShortVersionString: version, cfBundleVersion: number }) {
    return one.version === version && one.number === number;
  }

  openUpload({ attributes, relationships }) {
    const app = this.world.app(relationships.app.data.id);
    const taken = (one) => one.app === app.id && this.#isOf(one, attributes) && one.state !== "FAILED";
    if (this.uploads.some(taken) || this.builds.some(taken)) {
      const detail = `The bundle version must be higher than the previously uploaded version: '${attributes.cfBundleVersion}'.`;
      refuse(409, "ENTITY_ERROR.ATTRIBUTE.INVALID.DUPLICATE", detail);
    }
    const upload = {
      id: this.world.id("upload"),
      app: app.id,
      version: attributes.cfBundleShortVersionString,
      number: attributes.cfBundleVersion,
      platform: attributes.platform,
      state: "AWAITING_UPLOAD",
      errors: [],
      build: null,
      looks: 0,
    };
    this.uploads.push(upload);
    return one(this.#upload(upload));
  }

  #upload({ id, version, number, platform, state, errors, build }) {
    const attributes = {
      cfBundleShortVersionString: version,
      cfBundleVersion: number,
      platform,
      state: { state, errors, warnings: [], infos: [] },
    };
    return resource("buildUploads", id, attributes, { build: ["builds", build] });
  }

  uploadsOf(app, query) {
    this.world.app(app);
    const [version, number, platform] = ["cfBundleShortVersionString", "cfBundleVersion", "platform"].map(
      (name) => filter(query, name),
    );
    const found = this.uploads.filter(
      (one) =>
        one.app === app &&
        passes(version, one.version) &&
        passes(number, one.number) &&
        passes(platform, one.platform),
    );
    return many(found.map((one) => this.#upload(one)), query);
  }

  upload(id, query) {
    const upload = this.find("uploads", "buildUploads", id);
    this.#deliverFiles(id);
    this.#process(upload);
    const build = query.get("include")?.includes("build") && this.builds.find((one) => one.id === upload.build);
    return one(this.#upload(upload), build ? [this.#build(build)] : undefined);
  }

  /// Every look at something that Apple works on brings it closer to its end.
  #process(upload) {
    const settings = this.world.settings(upload.app);
    if (upload.state !== "PROCESSING" || (upload.looks += 1) <= settings.processingLooks) return;
    const released = this.world.versions.released(upload.app);
    const errors = [...settings.uploadErrors];
    if (released && compared(upload.version, released) <= 0) {
      errors.push(
        { code: "90062", description: `This bundle is invalid. The value for key CFBundleShortVersionString [${upload.version}] must contain a higher version than that of the previously approved version [${released}].` },
        { code: "90186", description: `Invalid Pre-Release Train. The train version '${upload.version}' is closed for new build submissions.` },
      );
    }
    if (errors.length) {
      Object.assign(upload, { state: "FAILED", errors });
      return;
    }
    const file = this.files.find((one) => one.upload === upload.id && one.delivery === "COMPLETE");
    const build = this.add({ ...upload, sha256: file.checksum, processing: "PROCESSING" });
    Object.assign(upload, { state: "COMPLETE", build: build.id });
  }

  /// Adds a build, such as one that another program uploaded.
  add({ app, version, number, processing = "VALID", usesNonExemptEncryption, sha256 = null }) {
    const build = {
      id: this.world.id("build"),
      app,
      version,
      number,
      sha256,
      processing,
      looks: 0,
      expired: false,
      expiresAt: new Date(Date.now() + 90 * DAY).toISOString(),
      usesNonExemptEncryption: usesNonExemptEncryption ?? this.world.settings(app).saysEncryption,
      autoNotify: false,
      notes: [],
      groups: [],
      review: null,
    };
    this.builds.push(build);
    return build;
  }

  reserveFile({ attributes, relationships }) {
    const upload = this.find("uploads", "buildUploads", relationships.buildUpload.data.id);
    const settings = this.world.settings(upload.app);
    const usable = (one) => one.upload === upload.id && one.delivery !== "FAILED" && !one.isExpired;
    if (upload.state !== "AWAITING_UPLOAD" || this.files.some(usable)) {
      refuse(409, INVALID_STATE, "The build upload has a file already.");
    }
    const id = this.world.id("file");
    const { fileName: name, fileSize: size } = attributes;
    const operations = [];
    for (let offset = 0; offset < size; offset += settings.partSize) {
      const partNumber = operations.length + 1;
      operations.push({
        method: "PUT",
        url: `${this.world.front}${STORAGE}${id}/${partNumber}?signature=${this.world.id("secret")}`,
        offset,
        length: Math.min(settings.partSize, size - offset),
        requestHeaders: [
          { name: "Content-Type", value: "application/octet-stream" },
          { name: "x-apple-part-token", value: this.world.id("token") },
        ],
        expiration: new Date(Date.now() + DAY).toISOString(),
        partNumber,
      });
    }
    const isExpired = settings.expiringPlaces > 0;
    if (isExpired) settings.expiringPlaces -= 1;
    const parts = new Map();
    const file = { id, upload: upload.id, name, size, operations, parts, isExpired, delivery: "AWAITING_UPLOAD" };
    this.files.push({ ...file, looks: 0, checksum: null, errors: [] });
    return one(this.#file(this.files.at(-1), true));
  }

  #settingsOf(file) {
    return this.world.settings(this.find("uploads", "buildUploads", file.upload).app);
  }

  #file(file, isNew) {
    const { id, name, size, delivery, errors, operations, checksum } = file;
    const tells = delivery === "AWAITING_UPLOAD" && (isNew || this.#settingsOf(file).repeatsOperations);
    const attributes = {
      assetType: "ASSET",
      fileName: name,
      fileSize: size,
      uti: "com.apple.ipa",
      assetDeliveryState: { state: delivery, errors, warnings: [] },
      uploadOperations: tells ? operations : null,
      sourceFileChecksums: checksum && { file: { hash: checksum, algorithm: "SHA_256" } },
    };
    return resource("buildUploadFiles", id, attributes);
  }

  file(id) {
    return one(this.#file(this.find("files", "buildUploadFiles", id)));
  }

  filesOf(upload, query) {
    this.find("uploads", "buildUploads", upload);
    this.#deliverFiles(upload);
    const files = this.files.filter((one) => one.upload === upload);
    return many(files.map((one) => this.#file(one)), query);
  }

  /// Puts a part where Apple dictates it. Answers with a status and what is wrong.
  put(path, headers, body) {
    const [, id, number] = path.match(/^\/storage\/([^/]+)\/(\d+)$/) ?? [];
    const file = this.files.find((one) => one.id === id);
    const operation = file?.operations[Number(number) - 1];
    if (!operation) return { status: 404 };
    const dictated = operation.requestHeaders.map(({ name }) => name.toLowerCase());
    const more = Object.keys(headers).find((name) => !OF_EVERY_REQUEST.includes(name) && !dictated.includes(name));
    if (more) return { status: 400, violation: `the header ${more} is not dictated` };
    const missing = operation.requestHeaders.find(({ name, value }) => headers[name.toLowerCase()] !== value);
    if (missing) return { status: 400, violation: `the header ${missing.name} is not as dictated` };
    if (body.length !== operation.length) return { status: 400, violation: `${body.length} bytes` };
    if (file.isExpired) return { status: 403 };
    if (file.delivery !== "AWAITING_UPLOAD") return { status: 409 };
    file.parts.set(operation.offset, body);
    file.sendings = (file.sendings ?? 0) + 1;
    return { status: 200 };
  }

  commitFile(id, { attributes }) {
    const file = this.find("files", "buildUploadFiles", id);
    if (file.delivery !== "AWAITING_UPLOAD") refuse(409, INVALID_STATE, "The file was committed already.");
    const { uploaded, sourceFileChecksums: sums } = attributes;
    if (!uploaded) return one(this.#file(file));
    file.delivery = "UPLOAD_COMPLETE";
    file.checksum = sums?.file?.algorithm === "SHA_256" ? sums.file.hash : null;
    return one(this.#file(file));
  }

  #deliverFiles(upload) {
    const isSent = (one) => one.upload === upload && one.delivery === "UPLOAD_COMPLETE";
    for (const file of this.files.filter(isSent)) this.#deliver(file);
  }

  #deliver(file) {
    if ((file.looks += 1) <= this.#settingsOf(file).deliveryLooks) return;
    const pieces = [...file.parts].sort(([a], [b]) => a - b).map(([, piece]) => piece);
    const bytes = Buffer.concat(pieces);
    const sum = createHash("sha256").update(bytes).digest("hex");
    const upload = this.find("uploads", "buildUploads", file.upload);
    const isWhole = bytes.length === file.size && (!file.checksum || file.checksum === sum);
    const errors = [...this.#settingsOf(file).fileErrors];
    if (!isWhole) errors.push({ code: "CHECKSUM_MISMATCH", description: "The checksum does not match the file." });
    if (errors.length) {
      Object.assign(file, { delivery: "FAILED", errors });
      Object.assign(upload, { state: "FAILED", errors });
      return;
    }
    Object.assign(file, { delivery: "COMPLETE", checksum: sum });
    upload.state = "PROCESSING";
  }

  list(query) {
    const [app, number, version] = ["app", "version", "preReleaseVersion.version"].map((name) => filter(query, name));
    const found = this.builds.filter(
      (one) => passes(app, one.app) && passes(number, one.number) && passes(version, one.version),
    );
    return many(found.map((one) => this.#build(one)), query);
  }

  #build({ id, number, processing, expired, expiresAt, usesNonExemptEncryption, app }) {
    const attributes = {
      version: number,
      processingState: processing,
      expired,
      expirationDate: expiresAt,
      usesNonExemptEncryption,
    };
    const relationships = { app: ["apps", app], buildBetaDetail: ["buildBetaDetails", id] };
    return resource("builds", id, attributes, relationships);
  }

  build(id, query) {
    const build = this.find("builds", "builds", id);
    const settings = this.world.settings(build.app);
    if (build.processing === "PROCESSING" && (build.looks += 1) > settings.processingLooks) {
      build.processing = settings.processed;
    }
    const wanted = query.get("include")?.split(",") ?? [];
    if (!wanted.includes("buildBetaDetail")) return one(this.#build(build));
    this.#review(build);
    return one(this.#build(build), [this.#betaDetail(build)]);
  }

  changeBuild(id, { attributes }) {
    const build = this.find("builds", "builds", id);
    const { expired, usesNonExemptEncryption: uses } = attributes ?? {};
    if (expired === false) refuse(409, INVALID_STATE, "An expired build cannot be used again.");
    if (expired && build.processing !== "VALID") refuse(409, INVALID_STATE, "The build is being processed.");
    if (uses !== undefined && build.usesNonExemptEncryption !== null) {
      refuse(409, "ENTITY_ERROR.ATTRIBUTE.INVALID", "The encryption of the build is known already.");
    }
    if (expired) Object.assign(build, { expired, expirations: (build.expirations ?? 0) + 1 });
    if (uses !== undefined) build.usesNonExemptEncryption = uses;
    return one(this.#build(build));
  }

  #states(build) {
    if (build.processing !== "VALID") return ["PROCESSING", "PROCESSING"];
    if (build.expired) return ["EXPIRED", "EXPIRED"];
    if (build.usesNonExemptEncryption === null) return Array(2).fill("MISSING_EXPORT_COMPLIANCE");
    const groups = this.groups.filter((one) => one.app === build.app);
    const has = ({ id, hasAccessToAllBuilds }) => hasAccessToAllBuilds || build.groups.includes(id);
    const internal = groups.some((one) => one.isInternal && has(one)) ? "IN_BETA_TESTING" : "READY_FOR_BETA_TESTING";
    const isOffered = groups.some((one) => !one.isInternal && has(one)) && build.autoNotify;
    const external = {
      null: "READY_FOR_BETA_SUBMISSION",
      WAITING_FOR_REVIEW: "WAITING_FOR_BETA_REVIEW",
      IN_REVIEW: "IN_BETA_REVIEW",
      REJECTED: "BETA_REJECTED",
      APPROVED: isOffered ? "IN_BETA_TESTING" : "BETA_APPROVED",
    }[build.review];
    return [internal, external];
  }

  #betaDetail(build) {
    const [internalBuildState, externalBuildState] = this.#states(build);
    const attributes = { autoNotifyEnabled: build.autoNotify, internalBuildState, externalBuildState };
    return resource("buildBetaDetails", build.id, attributes, { build: ["builds", build.id] });
  }

  #review(build) {
    const { isReviewing, betaVerdict } = this.world.settings(build.app);
    if (!isReviewing) return;
    const next = { WAITING_FOR_REVIEW: "IN_REVIEW", IN_REVIEW: betaVerdict };
    build.review = next[build.review] ?? build.review;
  }

  changeBetaDetail(id, { attributes }) {
    const build = this.find("builds", "buildBetaDetails", id);
    build.autoNotify = attributes.autoNotifyEnabled;
    return one(this.#betaDetail(build));
  }

  #note(build, { id, locale, whatsNew }) {
    return resource("betaBuildLocalizations", id, { locale, whatsNew }, { build: ["builds", build.id] });
  }

  notesOf(id, query) {
    const build = this.find("builds", "builds", id);
    return many(build.notes.map((note) => this.#note(build, note)), query);
  }

  addNote({ attributes, relationships }) {
    const build = this.find("builds", "builds", relationships.build.data.id);
    if (build.notes.some(({ locale }) => locale === attributes.locale)) {
      refuse(409, "ENTITY_ERROR.ATTRIBUTE.INVALID.DUPLICATE", "The locale is there already.");
    }
    build.notes.push({ id: this.world.id("note"), ...attributes });
    return one(this.#note(build, build.notes.at(-1)));
  }

  changeNote(id, { attributes }) {
    const build = this.builds.find(({ notes }) => notes.some((note) => note.id === id));
    if (!build) notFound("betaBuildLocalizations", id);
    const note = build.notes.find((note) => note.id === id);
    note.whatsNew = attributes.whatsNew;
    return one(this.#note(build, note));
  }

  addGroup({ app, name, isInternal = false, hasAccessToAllBuilds = false, publicLink = null }) {
    this.groups.push({ id: this.world.id("group"), app, name, isInternal, hasAccessToAllBuilds, publicLink });
    return this.groups.at(-1);
  }

  groupsOf(query) {
    const [app, builds] = [filter(query, "app"), filter(query, "builds")];
    const having = (group) => this.builds.some(({ id, groups }) => builds.includes(id) && groups.includes(group.id));
    const found = this.groups.filter((one) => passes(app, one.app) && (!builds || having(one)));
    const documents = found.map(({ id, name, isInternal, hasAccessToAllBuilds, publicLink }) =>
      resource("betaGroups", id, {
        name,
        isInternalGroup: isInternal,
        ...(isInternal ? { hasAccessToAllBuilds } : { publicLinkEnabled: publicLink !== null, publicLink }),
      }),
    );
    return many(documents, query);
  }

  offer(id, linked) {
    const group = this.find("groups", "betaGroups", id);
    if (group.hasAccessToAllBuilds) refuse(409, "STATE_ERROR", "Builds cannot be assigned to this internal group.");
    for (const { id } of linked) {
      const build = this.find("builds", "builds", id);
      const [state] = this.#states(build);
      if (["PROCESSING", "EXPIRED", "MISSING_EXPORT_COMPLIANCE"].includes(state)) {
        refuse(409, "STATE_ERROR.BUILD_NOT_ASSIGNABLE", `Build is not assignable: ${state}`);
      }
      build.offers = (build.offers ?? 0) + 1;
      if (!build.groups.includes(group.id)) build.groups.push(group.id);
    }
  }

  reviewsOf(query) {
    const found = this.builds.filter(({ id, review }) => review && passes(filter(query, "build"), id));
    return many(found.map((build) => this.#betaReview(build)), query);
  }

  #betaReview({ id, review }) {
    return resource("betaAppReviewSubmissions", id, { betaReviewState: review }, { build: ["builds", id] });
  }

  submitBeta({ relationships }) {
    const build = this.find("builds", "builds", relationships.build.data.id);
    const [, state] = this.#states(build);
    if (state !== "READY_FOR_BETA_SUBMISSION") {
      refuse(422, "ENTITY_UNPROCESSABLE", `Build is not in a state for beta review: ${state}`);
    }
    build.review = "WAITING_FOR_REVIEW";
    build.reviews = (build.reviews ?? 0) + 1;
    return one(this.#betaReview(build));
  }
}
