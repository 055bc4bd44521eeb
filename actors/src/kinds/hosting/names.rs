//! Names and labels of an instance's objects in the engine. Names are made of our ids; they never
//! contain a caller's text.

use container_engine::Labels;
use contract::{BackupId, InstanceId, instances::Role};

/// Label: the installation that owns the object.
pub const INSTALLATION: &str = "svc.installation";
/// Label: the instance that owns the object.
pub const INSTANCE: &str = "svc.instance";
/// Label: the backup that the object verifies. Such an object belongs to no instance.
pub const BACKUP: &str = "svc.backup";
/// Label: the role of the container's service.
pub const ROLE: &str = "svc.role";
/// Label: the generation of the container's revision.
pub const GENERATION: &str = "svc.generation";

fn unique(id: InstanceId) -> String {
    id.to_string().trim_start_matches("ins_").to_ascii_lowercase()
}

pub fn network(id: InstanceId) -> String {
    format!("svc-{}", unique(id))
}

/// All revisions of a service share one volume.
pub fn volume(id: InstanceId, role: Role) -> String {
    format!("svc-{}-{}", unique(id), role.label())
}

pub fn container(id: InstanceId, role: Role, generation: u32) -> String {
    format!("svc-{}-{}-{generation}", unique(id), role.label())
}

/// The instance of a container or volume of this name.
pub fn instance_of(name: &str) -> Option<InstanceId> {
    let unique = name.strip_prefix("svc-")?.split('-').next()?;
    format!("ins_{}", unique.to_ascii_uppercase()).parse().ok()
}

/// The container, volume and network of a restore check.
pub fn restore_check(id: BackupId) -> String {
    format!("svc-restore-check-{}", id.to_string().trim_start_matches("bak_").to_ascii_lowercase())
}

pub fn of_installation(installation: &str) -> Labels {
    Labels::from([(INSTALLATION.into(), installation.into())])
}

pub fn of_instance(installation: &str, id: InstanceId) -> Labels {
    let mut labels = of_installation(installation);
    labels.insert(INSTANCE.into(), id.to_string());
    labels
}

/// The labels of a volume of an instance, with those of the instance.
pub fn of_volume(mut of_instance: Labels, role: Role) -> Labels {
    of_instance.insert(ROLE.into(), role.label().into());
    of_instance
}

pub fn of_container(installation: &str, id: InstanceId, role: Role, generation: u32) -> Labels {
    let mut labels = of_instance(installation, id);
    labels.insert(ROLE.into(), role.label().into());
    labels.insert(GENERATION.into(), generation.to_string());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_is_a_host_name() {
        let id = "ins_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        let name = container(id, Role::DocumentDb, u32::MAX);
        assert!(name.len() <= 63, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
    }

    #[test]
    fn a_name_says_whose_it_is() {
        let id = "ins_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        assert_eq!(instance_of(&container(id, Role::Server, 7)), Some(id));
        assert_eq!(instance_of(&volume(id, Role::SqlDb)), Some(id));
        let backup = "bak_01J9ZQ8F5W7V3T6M2K4N8R0P1S".parse().unwrap();
        assert_eq!(instance_of(&restore_check(backup)), None);
        assert_eq!(instance_of("svc-"), None);
    }
}
