//! Placeholders `${…}` in the environment of a template. Each instance fills in its own values.

use contract::instances::Role;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placeholder<'a> {
    /// `${secret.NAME}`: a secret that is generated with the instance.
    Secret(&'a str),
    /// `${instance.id}`.
    InstanceId,
    /// `${instance.appId}`.
    AppId,
    /// `${instance.url}`: the public address of the server; with `~dashboard` or `~storefront` after it, that of
    /// another service.
    Url(Role),
    /// `${service.url}`: the base URL of this service's functions.
    ServiceUrl,
    /// `${service.applicationId}`: the application id that calls of this service's functions need.
    ApplicationId,
}

/// A piece of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    Fill(Placeholder<'a>),
}

/// Splits a value into its pieces. The error is a problem to show to the caller.
pub fn pieces(value: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut pieces, mut rest) = (Vec::new(), value);
    while let Some((text, after)) = rest.split_once("${") {
        let (name, left) = after.split_once('}').ok_or("a ${ is not closed with }")?;
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        let (placeholder, left) = match placeholder(name)? {
            Placeholder::Url(_) => url_of(left),
            other => (other, left),
        };
        pieces.push(Piece::Fill(placeholder));
        rest = left;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// The address that a text after `${instance.url}` begins, and the rest of the text.
fn url_of(after: &str) -> (Placeholder<'static>, &str) {
    let named = [Role::Dashboard, Role::Storefront].into_iter().find_map(|role| {
        let rest = after.strip_prefix('~')?.strip_prefix(role.label())?;
        Some((Placeholder::Url(role), rest))
    });
    named.unwrap_or((Placeholder::Url(Role::Server), after))
}

fn placeholder(name: &str) -> Result<Placeholder<'_>, String> {
    match name {
        "instance.id" => Ok(Placeholder::InstanceId),
        "instance.appId" => Ok(Placeholder::AppId),
        "instance.url" => Ok(Placeholder::Url(Role::Server)),
        "service.url" => Ok(Placeholder::ServiceUrl),
        "service.applicationId" => Ok(Placeholder::ApplicationId),
        _ => match name.strip_prefix("secret.") {
            Some(secret) if secret.parse::<contract::text::Identifier>().is_ok() => {
                Ok(Placeholder::Secret(secret))
            }
            _ => Err(format!(
                "${{{name:.60}}} is not known; there are ${{secret.NAME}}, ${{instance.id}}, ${{instance.appId}}, ${{instance.url}}, ${{service.url}} and ${{service.applicationId}}"
            )),
        },
    }
}

/// Fills in the placeholders of a value. A placeholder that `fill` does not know becomes empty.
pub fn fill(value: &str, fill: impl Fn(&Placeholder<'_>) -> Option<String>) -> String {
    let Ok(pieces) = pieces(value) else { return value.to_owned() };
    let text = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Fill(placeholder) => fill(placeholder).unwrap_or_default(),
    });
    text.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_filled_in_and_what_is_not_known_is_refused() {
        let filled = fill("postgres://svc:${secret.sql}@sqldb/a?b=${instance.id}$", |p| match p {
            Placeholder::Secret(name) => Some(format!("<{name}>")),
            _ => Some("ins".into()),
        });
        assert_eq!(filled, "postgres://svc:<sql>@sqldb/a?b=ins$");
        assert_eq!(pieces("").unwrap(), []);
        let urls =
            fill("${instance.url}/x ${instance.url}~storefront/x ${instance.url}~s", |p| match p {
                Placeholder::Url(role) => Some(role.label().to_owned()),
                _ => None,
            });
        assert_eq!(urls, "server/x storefront/x server~s");
        for wrong in ["${secret.}", "${x}", "${secret.a", "${secret.a b}", "${}"] {
            assert!(pieces(wrong).is_err(), "{wrong}");
        }
    }
}
