//! What an answer of an instance may say to a browser: an instance that is reached by a path shares the origin of
//! the service with others, and no instance speaks for a domain.

use actix_http::header::{self, HeaderMap, HeaderValue};
use std::borrow::Cow;

/// Keeps what an instance says to its own host, and to the paths below `prefix` of it. An empty prefix: the whole
/// host belongs to the instance.
pub fn confine(headers: &mut HeaderMap, prefix: &str) {
    if !prefix.is_empty() {
        for name in OF_THE_ORIGIN {
            headers.remove(name);
        }
    }
    if !headers.contains_key(header::SET_COOKIE) {
        return;
    }
    let cookies: Vec<_> = headers.remove(header::SET_COOKIE).collect();
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_bytes(&confined(cookie.as_bytes(), prefix)) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
}

/// Takes the origin of the service from a page of an instance, so that its scripts cannot act as those of another
/// instance. Where instances have host names, paths need no cookies; elsewhere, programs need them.
pub fn sandbox(headers: &mut HeaderMap, has_names: bool) {
    if has_names {
        headers.remove(header::SET_COOKIE);
    }
    headers.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
}

/// Everything but the origin and what leads the browser away.
const SANDBOX: &str = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

/// Fields that apply to all paths of a host.
const OF_THE_ORIGIN: [&str; 2] = ["service-worker-allowed", "strict-transport-security"];

/// Browsers ignore a longer path of a cookie, in bytes (RFC 6265bis), and would take one above the prefix.
const LONGEST_PATH: usize = 1024;

/// A cookie for one host only, and below the prefix.
fn confined<'a>(cookie: &'a [u8], prefix: &str) -> Cow<'a, [u8]> {
    let mut parts = cookie.split(|byte| *byte == b';');
    let is = |part: &[u8], name: &str| {
        let end = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        part.get(..end).is_some_and(|said| said.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    };
    if prefix.is_empty() && !parts.clone().skip(1).any(|part| is(part, "domain")) {
        return Cow::Borrowed(cookie);
    }
    let mut kept = parts.next().unwrap_or_default().to_vec();
    let mut path: &[u8] = b"/";
    for part in parts {
        if is(part, "path") {
            path = part.splitn(2, |byte| *byte == b'=').nth(1).unwrap_or_default().trim_ascii();
        }
        if !is(part, "domain") && (prefix.is_empty() || !is(part, "path")) {
            kept.push(b';');
            kept.extend(part);
        }
    }
    if !prefix.is_empty() {
        kept.extend(b"; Path=");
        kept.extend(below(path, prefix.as_bytes()));
    }
    Cow::Owned(kept)
}

/// The path below the prefix, without a slash at its end: the address of an instance has none.
fn below(path: &[u8], prefix: &[u8]) -> Vec<u8> {
    let rest = path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with(b"/"));
    let rest = rest.unwrap_or(if path.starts_with(b"/") { path } else { b"" });
    let all = [prefix, rest.strip_suffix(b"/").unwrap_or(rest)].concat();
    if all.len() > LONGEST_PATH { prefix.to_vec() } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(sent: &str, prefix: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.append(header::SET_COOKIE, HeaderValue::from_str(sent).unwrap());
        confine(&mut headers, prefix);
        headers.get(header::SET_COOKIE).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_cookie_is_for_one_host_and_below_the_path_of_the_instance() {
        for (sent, of_host, of_path) in [
            ("a=1", "a=1", "a=1; Path=/i/1"),
            ("a=1; Path=/; Secure", "a=1; Path=/; Secure", "a=1; Secure; Path=/i/1"),
            ("a=1; Path=/x; HttpOnly", "a=1; Path=/x; HttpOnly", "a=1; HttpOnly; Path=/i/1/x"),
            ("a=1; path=/i/1/x", "a=1; path=/i/1/x", "a=1; Path=/i/1/x"),
            ("a=1; Path=/i/12", "a=1; Path=/i/12", "a=1; Path=/i/1/i/12"),
            ("a=1; Path=x", "a=1; Path=x", "a=1; Path=/i/1"),
            ("a=1; Domain=example.net; Secure", "a=1; Secure", "a=1; Secure; Path=/i/1"),
            ("a=1; DOMAIN = .example.net;Path=/", "a=1;Path=/", "a=1; Path=/i/1"),
            ("domain=x; Secure", "domain=x; Secure", "domain=x; Secure; Path=/i/1"),
        ] {
            assert_eq!(cookie(sent, ""), of_host, "{sent}");
            assert_eq!(cookie(sent, "/i/1"), of_path, "{sent}");
        }
        let long = format!("a=1; Path=/{}", "x".repeat(1020));
        assert_eq!(cookie(&long, "/i/1"), "a=1; Path=/i/1", "browsers ignore longer paths");
    }

    #[test]
    fn a_sandboxed_page_has_no_origin_and_cookies_only_where_there_are_no_names() {
        for (has_names, cookies) in [(true, 0), (false, 1)] {
            let mut headers = HeaderMap::new();
            headers.append(header::SET_COOKIE, HeaderValue::from_static("a=1"));
            sandbox(&mut headers, has_names);
            assert_eq!(headers.get_all(header::SET_COOKIE).count(), cookies);
            assert_eq!(headers.get(header::CONTENT_SECURITY_POLICY).unwrap(), SANDBOX);
        }
    }

    #[test]
    fn only_an_instance_with_a_host_of_its_own_speaks_for_it() {
        for (prefix, left) in [("", 2), ("/i/1", 0)] {
            let mut headers = HeaderMap::new();
            for name in OF_THE_ORIGIN {
                headers.append(name.parse().unwrap(), HeaderValue::from_static("x"));
            }
            confine(&mut headers, prefix);
            assert_eq!(headers.len(), left);
        }
    }
}
