//! The first file of a person: its app and a project for it are made with it.

use super::{
    artifacts::{self, Destination},
    home,
};
use crate::{form::Form, response::PageResult, visitor::Visitor};
use actix_multipart::Multipart;
use actix_web::web;
use contract::{
    AppId, Fault,
    apps::{App, CreateApp},
    projects::{CreateProject, Project},
};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/start", web::post().to(take)).route("/start/open", web::post().to(open));
}

/// The name of the project that is made.
const PROJECT: &str = "First project";
/// The most characters of the name of an app.
const LONGEST: usize = 60;

async fn take(visitor: Visitor, parts: Multipart) -> PageResult {
    artifacts::take(visitor, Destination::New, parts).await
}

async fn open(visitor: Visitor, form: Form) -> PageResult {
    artifacts::open_at(&visitor, Destination::New, form).await
}

/// The first page again, with what the service says about the file.
pub async fn again(visitor: &Visitor, form: Form) -> PageResult {
    home::show_with(visitor, form).await
}

/// Makes an app for a file, in the newest project of the person, or in a new one. A form that is sent twice
/// makes one.
pub async fn app_for(
    visitor: &Visitor,
    file_name: &str,
    key: Option<String>,
) -> Result<AppId, Fault> {
    let key = |what: &str| key.as_ref().map(|key| format!("{key}-{what}"));
    let project_id = match visitor.newest_projects(1).await?.first() {
        Some(project) => project.id,
        None => {
            let name = PROJECT.parse().map_err(|_| Fault::Internal)?;
            let new = CreateProject { name, organization_id: None, description: None };
            let Project { id, .. } = visitor.call(&new, key("project")).await?;
            id
        }
    };
    let name = name_of(file_name)
        .parse()
        .map_err(|why: String| Fault::invalid("file", format!("has no name for an app: {why}")))?;
    let new = CreateApp { project_id, name, platforms: None, bundle_id: None, package_name: None };
    let App { id, .. } = visitor.call(&new, key("app")).await?;
    Ok(id)
}

/// What an app is called after a file, such as `bestellen` after `bestellen-1.4.2-release.apk`: the words before
/// the first number.
fn name_of(file_name: &str) -> String {
    let stem = file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem);
    let words = stem.split(['-', '_', ' ', '+']);
    let begins_with_digit =
        |word: &&str| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let words: Vec<_> = words.take_while(|word| !begins_with_digit(word)).collect();
    let name = words.join(" ");
    let name = if name.trim().is_empty() { stem } else { name.trim() };
    name.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn an_app_is_called_like_its_file() {
        for (file, name) in [
            ("sample.apk", "sample"),
            ("sample-1.5.0.apk", "sample"),
            ("My_App-v2.0-release.ipa", "My App"),
            ("app-release.aab", "app release"),
            ("1.4.2.apk", "1.4.2"),
            ("v2.apk", "v2"),
        ] {
            assert_eq!(name_of(file), name);
        }
    }
}
