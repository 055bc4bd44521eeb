//! How much the service takes: sizes, numbers and times.

use super::parse_tier;
use clap::Args;
use contract::{
    authentication::Tier,
    quotas::{Quota, Unit},
    retention::Retention,
};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Changes of the quotas of organizations, separated by commas: the tier of the owner, the quota and the
    /// limit, such as `free.instances=3,free.artifactBytes=5GiB,developer.builds=unlimited`. See
    /// "Quotas" in OPERATING.md.
    #[arg(long, env = "SVC_QUOTAS", value_delimiter = ',', value_parser = parse_quota)]
    pub quotas: Vec<(Tier, Quota, Option<u64>)>,
    /// Changes of the retention, separated by commas: what ends and how many days it is kept after that, such
    /// as `builds=30,audit=730,deliveries=unlimited`. See "Retention" in OPERATING.md.
    #[arg(long, env = "SVC_RETENTION", value_delimiter = ',', value_parser = parse_retention)]
    pub retention: Vec<(Retention, Option<u32>)>,
    /// The maximum size of an artifact, in bytes.
    #[arg(long, env = "SVC_MAX_ARTIFACT_BYTES", default_value_t = 4 << 30)]
    pub max_artifact_bytes: u64,
    /// The maximum size of a JSON body, in bytes.
    #[arg(long, env = "SVC_MAX_BODY_BYTES", default_value_t = 1 << 20)]
    pub max_body_bytes: usize,
    /// The maximum number of open connections. The limit of open files may lower it.
    #[arg(long, env = "SVC_MAX_CONNECTIONS", default_value_t = 10_000)]
    pub max_connections: usize,
    /// Memory for JSON bodies that are still arriving, in bytes.
    #[arg(long, env = "SVC_MAX_ARRIVING_BYTES", default_value_t = 64 << 20)]
    pub max_arriving_bytes: usize,
    /// The maximum number of uploads that send at the same time.
    #[arg(long, env = "SVC_MAX_UPLOADS", default_value_t = 128)]
    pub max_uploads: usize,
    /// The most text of a log in one reply, in bytes.
    #[arg(
        long,
        env = "SVC_MAX_LOG_BYTES",
        default_value_t = 1 << 20,
        value_parser = clap::value_parser!(u64).range(1024..=64 << 20)
    )]
    pub max_log_bytes: u64,
    /// The lifetime of an upload address, in seconds.
    #[arg(long, env = "SVC_UPLOAD_URL_TTL", default_value_t = 3600)]
    pub upload_url_ttl: u64,
    /// The deadline of a function call, in seconds.
    #[arg(long, env = "SVC_FUNCTION_TIMEOUT", default_value_t = 30)]
    pub function_timeout: u64,
}

/// Reads a change of a quota, such as `free.artifactBytes=5GiB`.
fn parse_quota(text: &str) -> Result<(Tier, Quota, Option<u64>), String> {
    let parts = text.split_once('=').and_then(|(what, limit)| Some((what.split_once('.')?, limit)));
    let ((tier, name), limit) = parts.ok_or("must be such as free.instances=3")?;
    let named = Quota::ALL.iter().find(|quota| quota.name() == name);
    let quota = *named.ok_or_else(|| {
        let all: Vec<_> = Quota::ALL.iter().map(|quota| quota.name()).collect();
        format!("{name:?} is no quota; there are {}", all.join(", "))
    })?;
    let limit = match limit {
        "unlimited" => None,
        limit => Some(parse_amount(limit, quota.unit())?),
    };
    Ok((parse_tier(tier)?, quota, limit))
}

/// Reads a change of the retention, such as `builds=30`.
fn parse_retention(text: &str) -> Result<(Retention, Option<u32>), String> {
    let (name, days) = text.split_once('=').ok_or("must be such as builds=30")?;
    let named = Retention::ALL.iter().find(|retention| retention.name() == name);
    let retention = *named.ok_or_else(|| {
        let all: Vec<_> = Retention::ALL.iter().map(|retention| retention.name()).collect();
        format!("{name:?} has no retention; there are {}", all.join(", "))
    })?;
    let days =
        match days {
            "unlimited" => None,
            days => Some(days.parse::<u32>().ok().filter(|days| *days > 0).ok_or_else(|| {
                format!("{days:?} must be a number of days from 1, or unlimited")
            })?),
        };
    Ok((retention, days))
}

/// Reads an amount: a number, for bytes with KiB, MiB, GiB or TiB, and for processors the number of them.
fn parse_amount(text: &str, unit: Unit) -> Result<u64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let factor = match (unit, suffix) {
        (Unit::Count, "") => Some(1_u64),
        (Unit::MilliCpus, "") => Some(1000),
        (Unit::Bytes, "") => Some(1),
        (Unit::Bytes, "KiB") => Some(1 << 10),
        (Unit::Bytes, "MiB") => Some(1 << 20),
        (Unit::Bytes, "GiB") => Some(1 << 30),
        (Unit::Bytes, "TiB") => Some(1 << 40),
        _ => None,
    };
    let amount = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor?));
    amount.ok_or_else(|| {
        let form = match unit {
            Unit::Count => "a whole number",
            Unit::MilliCpus => "a whole number of processors",
            Unit::Bytes => "bytes, such as 500MiB or 5GiB",
        };
        format!("{text:?} must be {form}, or unlimited")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::quotas::Quotas;

    #[test]
    fn a_quota_is_changed_in_units_that_people_use() {
        let read = |text| parse_quota(text).unwrap();
        assert_eq!(read("free.instances=3"), (Tier::Free, Quota::Instances, Some(3)));
        let bytes = (Tier::Developer, Quota::ArtifactBytes, Some(5 << 30));
        assert_eq!(read("developer.artifactBytes=5GiB"), bytes);
        assert_eq!(read("free.instanceCpus=4"), (Tier::Free, Quota::InstanceCpus, Some(4_000)));
        assert_eq!(read("free.builds=unlimited"), (Tier::Free, Quota::Builds, None));
        for wrong in
            ["free.instances", "free.instances=3GiB", "gold.apps=1", "free.cars=1", "free.apps=-1"]
        {
            assert!(parse_quota(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_retention_is_changed_in_days() {
        assert_eq!(parse_retention("builds=30"), Ok((Retention::Builds, Some(30))));
        assert_eq!(parse_retention("audit=unlimited"), Ok((Retention::Audit, None)));
        for wrong in ["builds", "builds=0", "builds=-1", "cars=3", "audit=1d"] {
            assert!(parse_retention(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_operators_read_the_retention_as_it_is_shipped() {
        let documented = include_str!("../../docs/OPERATING.md");
        for retention in Retention::ALL {
            let (begin, end) = (
                format!("| `{}` | ", retention.name()),
                format!(" | {} |", retention.default_days()),
            );
            let row =
                documented.lines().find(|line| line.starts_with(&begin) && line.ends_with(&end));
            assert!(row.is_some(), "{begin}…{end}");
        }
    }

    #[test]
    fn the_operators_read_the_quotas_as_they_are_shipped() {
        let quotas = Quotas::read(include_str!("../../data/quotas.json")).unwrap();
        let documented = include_str!("../../docs/OPERATING.md");
        for quota in Quota::ALL {
            let limits = [Tier::Free, Tier::Developer, Tier::Professional]
                .map(|tier| quota.unit().say(&quotas.limit(tier, *quota).unwrap()));
            let begin = format!("| `{}` | ", quota.name());
            let row = documented.lines().find(|line| line.starts_with(&begin)).unwrap();
            assert!(row.ends_with(&format!(" | {} |", limits.join(" | "))), "{row}: {limits:?}");
        }
        assert_eq!(quotas.limit(Tier::Enterprise, Quota::Apps), None);
    }
}
