//! `svc call`: calls any function by its name.

use crate::{
    Context, args, client::Client, failure::Failure, input, parameters, settings::ClientCredential,
};
use contract::Spec;
use serde_json::Value;
use std::io::{self, Read};

/// A name with a lower similarity is not offered.
const LIKE_ENOUGH: f64 = 0.75;

pub fn call(
    cx: &Context<'_>,
    args: args::CallArgs,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let spec = find(&args.function)?;
    if args.master_key_stdin && args.body.as_deref() == Some("-") {
        return Err(Failure::usage(
            "standard input cannot hold both the master key and the parameters",
            "set SVC_MASTER_KEY, or give the parameters with --param",
        ));
    }
    let params = match args.body.as_deref() {
        None => parameters::read(spec, &args.param)?,
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|error| {
                Failure::usage(format!("standard input: {error}"), "send a JSON object in UTF-8")
            })?;
            object(&text)?
        }
        Some(text) => object(text)?,
    };
    let key = match args.master_key_stdin {
        true => Some(input::line("master key")?),
        false => environment("SVC_MASTER_KEY"),
    };
    let client = match key {
        Some(key) => {
            let key = ClientCredential::MasterKey(key.trim().to_owned());
            Client::new(&cx.settings.clone().with(key)?)?
        }
        None => cx.client()?,
    };
    let reply = client.call_untyped(spec, &params)?;
    cx.printer.reply(&reply, |reply| format!("{reply:#}"))
}

fn object(text: &str) -> Result<Value, Failure> {
    let value = serde_json::from_str(text);
    let hint = r#"give an object such as '{"appId": "app_…"}'"#;
    match value {
        Ok(Value::Object(fields)) => Ok(Value::Object(fields)),
        Ok(_) => Err(Failure::usage("the parameters are no JSON object", hint)),
        Err(error) => Err(Failure::usage(format!("the parameters are no JSON: {error}"), hint)),
    }
}

fn find(name: &str) -> Result<&'static Spec, Failure> {
    contract::all().find(|spec| spec.name == name).ok_or_else(|| {
        let hint = match nearest(name) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => "`svc completions` lets your shell complete the names there are".to_owned(),
        };
        Failure::usage(format!("there is no function {name:?}"), hint)
    })
}

/// The function with the most similar name. Ignores case and the prefix, which people forget.
fn nearest(name: &str) -> Option<&'static str> {
    let plain = |name: &str| name.to_lowercase().trim_start_matches("svc_").to_owned();
    let name = plain(name);
    contract::all()
        .map(|spec| (strsim::jaro_winkler(&plain(spec.name), &name), spec.name))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_the_nearest() {
        assert_eq!(nearest("createRelease"), Some("svc_createRelease"));
        assert_eq!(nearest("SVC_GETPROJECT"), Some("svc_getProject"));
        assert_eq!(nearest("getCurentUser"), Some("getCurrentUser"));
        assert_eq!(nearest("xyz"), None);
    }

    #[test]
    fn parameters_are_an_object() {
        assert!(object("{}").is_ok());
        assert!(object("[]").is_err());
        assert!(object("{").is_err());
    }
}
