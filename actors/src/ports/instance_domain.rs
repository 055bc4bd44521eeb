//! The domain below which each service of an instance has a host name of its own.
//!
//! The label before the domain is what names the service in paths, as host names can spell it:
//! `ins_01J…~dashboard` is `ins-01j…--dashboard`.

/// The domain, and how clients reach its host names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceDomain {
    /// Such as `apps.example.net`, in small letters.
    pub name: String,
    /// `http` or `https`.
    pub scheme: String,
    /// `None`: that of the scheme.
    pub port: Option<u16>,
}

impl InstanceDomain {
    /// The address of what a path names, without a slash at the end.
    pub fn url(&self, target: &str) -> String {
        let label = target.replace('~', "--").replace('_', "-").to_lowercase();
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{label}.{}{port}", self.scheme, self.name)
    }

    /// What a host names, as paths name it, if the host is the domain or below it. What is no name of an instance
    /// is empty. `host` may have a port.
    pub fn target(&self, host: &str) -> Option<String> {
        let host = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let host = host.strip_suffix('.').unwrap_or(host);
        let (rest, name) = host.split_at_checked(host.len().checked_sub(self.name.len())?)?;
        if !name.eq_ignore_ascii_case(&self.name) {
            return None;
        }
        if rest.is_empty() {
            return Some(String::new());
        }
        rest.strip_suffix('.').map(|label| of_label(label).unwrap_or_default())
    }
}

fn of_label(label: &str) -> Option<String> {
    let (id, service) = match label.split_once("--") {
        Some((id, service)) => (id, format!("~{}", service.to_lowercase())),
        None => (label, String::new()),
    };
    let (prefix, unique) = id.split_once('-')?;
    Some(format!("{}_{}{service}", prefix.to_lowercase(), unique.to_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_a_name_that_leads_back_to_it() {
        let name = "apps.example.net".to_owned();
        let domain = InstanceDomain { name, scheme: "http".into(), port: Some(8080) };
        for target in [
            "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "ins_01J9ZQ8F5W7V3T6M2K4N8R0P1S",
            "ins_01J9ZQ8F5W7V3T6M2K4N8R0P1S~storefront",
        ] {
            let url = domain.url(target);
            let host = url.strip_prefix("http://").unwrap();
            assert!(host.split('.').next().unwrap().len() <= 63, "{host}");
            for asked in [host, &host.to_uppercase(), &host.replace(":8080", ".")] {
                assert_eq!(domain.target(asked).as_deref(), Some(target), "{asked}");
            }
        }
        let unknown = ["apps.example.net", "www.apps.example.net", "APPS.example.net.:8080"];
        for host in unknown {
            assert_eq!(domain.target(host).as_deref(), Some(""), "{host}");
        }
        for host in ["", "example.net", "xapps.example.net", "127.0.0.1:8080", "[::1]:8080", "é"] {
            assert_eq!(domain.target(host), None, "{host}");
        }
    }
}
