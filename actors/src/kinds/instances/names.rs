//! What the engine calls the parts of an instance. Names are made of ids, which are ours; no text of
//! a caller's is part of one.

use container_engine::Labels;
use contract::{BackupId, InstanceId, instances::Role};

/// Whose an object of the engine is: this installation's.
pub const INSTALLATION: &str = "svc.installation";
/// Which instance an object belongs to.
pub const INSTANCE: &str = "svc.instance";
/// Which backup an object is to show to be usable, where it is of no instance.
pub const BACKUP: &str = "svc.backup";
/// Which role a container has.
pub const ROLE: &str = "svc.role";
/// Which of the containers of a role, one after the other, it is.
pub const GENERATION: &str = "svc.generation";

fn unique(id: InstanceId) -> String {
    id.to_string().trim_start_matches("ins_").to_ascii_lowercase()
}

/// The network of an instance.
pub fn network(id: InstanceId) -> String {
    format!("svc-{}", unique(id))
}

/// The volume of a service. All containers of a role share it, one after the other.
pub fn volume(id: InstanceId, role: Role) -> String {
    format!("svc-{}-{}", unique(id), role.label())
}

/// A container of a service.
pub fn container(id: InstanceId, role: Role, generation: u32) -> String {
    format!("svc-{}-{}-{generation}", unique(id), role.label())
}

/// The database that a backup is put into to verify it; its volume and its network too.
pub fn trial(id: BackupId) -> String {
    format!("svc-trial-{}", id.to_string().trim_start_matches("bak_").to_ascii_lowercase())
}

/// What every object of an installation carries.
pub fn of_installation(installation: &str) -> Labels {
    Labels::from([(INSTALLATION.into(), installation.into())])
}

/// What every object of an instance carries.
pub fn of_instance(installation: &str, id: InstanceId) -> Labels {
    let mut labels = of_installation(installation);
    labels.insert(INSTANCE.into(), id.to_string());
    labels
}

/// What a container of a service carries.
pub fn of_container(installation: &str, id: InstanceId, role: Role, generation: u32) -> Labels {
    let mut labels = of_instance(installation, id);
    labels.insert(ROLE.into(), role.label().into());
    labels.insert(GENERATION.into(), generation.to_string());
    labels
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_is_a_host_name() {
        let id = "ins_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        let name = container(id, Role::DocumentDb, u32::MAX);
        assert!(name.len() <= 63, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
    }
}
