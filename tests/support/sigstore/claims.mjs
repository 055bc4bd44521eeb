// What a certificate and a statement say about a run of GitHub Actions.
import { createHash } from "node:crypto";

export const GITHUB = "https://github.com";
const RUNNER = "github-hosted";

const commitOf = (text) => createHash("sha1").update(text).digest("hex");
const runOf = ({ repository, runId, runAttempt }) =>
  `${GITHUB}/${repository}/actions/runs/${runId}/attempts/${runAttempt}`;

/// The extensions of a certificate, without those that Fulcio writes for old clients only. The keys are the
/// last numbers of their identifiers. Source: "Fulcio OID information".
export function extensions(claims) {
  const { workflow, signerWorkflow, commit } = claims;
  const values = {
    8: claims.issuer,
    9: `${GITHUB}/${signerWorkflow}`,
    // The commit of a reusable workflow is one of another repository.
    10: signerWorkflow === workflow ? commit : commitOf(signerWorkflow),
    11: RUNNER,
    12: `${GITHUB}/${claims.repository}`,
    13: commit,
    14: claims.ref,
    15: claims.repositoryId,
    16: `${GITHUB}/${claims.owner}`,
    17: claims.ownerId,
    18: `${GITHUB}/${workflow}`,
    19: commit,
    20: claims.event,
    21: runOf(claims),
    22: "public",
    23: claims.environment,
  };
  // A job without a deployment environment has no extension for it.
  return Object.entries(values)
    .filter(([, value]) => value != null)
    .map(([number, value]) => ({ oid: `1.3.6.1.4.1.57264.1.${number}`, value }));
}

/// The statement, with the provenance that GitHub's action for attestations writes.
export function statement(sha256, name, claims) {
  const source = `${GITHUB}/${claims.repository}`;
  const [path, ref] = claims.workflow.slice(claims.repository.length + 1).split("@");
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name, digest: { sha256 } }],
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "https://actions.github.io/buildtypes/workflow/v1",
        externalParameters: { workflow: { ref, repository: source, path } },
        internalParameters: {
          github: {
            event_name: claims.event,
            repository_id: claims.repositoryId,
            repository_owner_id: claims.ownerId,
            runner_environment: RUNNER,
          },
        },
        resolvedDependencies: [
          { uri: `git+${source}@${claims.ref}`, digest: { gitCommit: claims.commit } },
        ],
      },
      runDetails: {
        builder: { id: `${GITHUB}/${claims.signerWorkflow}` },
        metadata: { invocationId: runOf(claims) },
      },
    },
  };
}
