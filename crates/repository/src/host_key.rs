//! What people are told of the key of an ssh host.

use contract::ssh::SshFingerprint;

/// What to do about a host whose key is not the expected one.
pub fn other_host_key(presented: &SshFingerprint, expected: &SshFingerprint) -> String {
    format!(
        "the host has the key {presented}, and not {expected}: somebody may stand between it and \
         the service. If its operator confirms the new key, connect the repository again with it \
         (svc repo connect URL --host-key {presented})"
    )
}
