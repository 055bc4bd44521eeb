//! The rules of a template. Callers see the stored state as it is.

use crate::{
    kinds::hosting::images::Images,
    runtime::{
        ref_count::{RefCount, RefCountDelta},
        resource::{Moment, Resource, Step, Unique, without_effects},
    },
};
use contract::{
    Description, Fault, ImageId, Name, Patch,
    templates::{Pricing, SemanticVersion, Template, TemplateStatus, TemplateVersion},
    text::Slug,
};
use std::collections::{BTreeMap, BTreeSet};
use store::{Change, Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Templates;

/// How many versions a template may have.
const MOST_VERSIONS: usize = 200;

#[derive(Clone)]
pub enum Command {
    /// Fields that are `None` stay as they are.
    Update {
        name: Option<Name>,
        slug: Option<Slug>,
        description: Patch<Description>,
        category: Option<Slug>,
        tags: Option<Vec<Slug>>,
    },
    /// Only superadmins and the master key see templates that are not published.
    SetStatus(TemplateStatus),
    /// Make this version current.
    SetVersion(SemanticVersion),
    /// Set the pricing, and whether the template is featured.
    SetPricing(Option<Pricing>, Option<bool>),
    AddVersion {
        version: Box<TemplateVersion>,
        /// The images of the version. The command is stale if one of them changed since it was
        /// read.
        images: BTreeMap<ImageId, Snapshot<Images>>,
        /// The version becomes current if the current one is among these, or there is none.
        replaces: Vec<SemanticVersion>,
    },
    /// Delete the template. Refused while an instance uses it.
    Delete,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Command::Update { .. } => "Update",
            Command::SetStatus(_) => "SetStatus",
            Command::SetVersion(_) => "SetVersion",
            Command::SetPricing(..) => "SetPricing",
            Command::AddVersion { .. } => "AddVersion",
            Command::Delete => "Delete",
        })
    }
}

store::entries! {
    pub enum TemplateIndex of Templates {
        All = "all",
        Category { category: Slug } = "category",
    }
}

store::claims! {
    pub enum TemplateClaim of Templates {
        Slug { slug: Slug } = "slug",
    }
}

impl Resource for Templates {
    type New = Template;
    type State = Template;
    type Command = Command;
    without_effects!();

    fn create(_: &Moment<Self>, template: Template) -> Result<Step<Self>, Fault> {
        Ok(Step::put(template))
    }

    fn on_command(
        template: Template,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        on_command(template, at, command)
    }

    fn index(template: &Template) -> Entries<Self> {
        let category = template.category.clone();
        Entries::default().and(TemplateIndex::All).and(TemplateIndex::Category { category })
    }

    fn claims(template: &Template) -> Vec<Unique<Self>> {
        let taken =
            || Fault::Exists("a template of this slug exists already; choose another slug".into());
        vec![Unique::new(TemplateClaim::Slug { slug: template.slug.clone() }, taken)]
    }
}

fn on_command(
    mut template: Template,
    at: &Moment<Templates>,
    command: Command,
) -> Result<Step<Templates>, Fault> {
    let mut also = Change::new();
    match command {
        Command::Update { name, slug, description, category, tags } => {
            template.name = name.unwrap_or(template.name);
            template.slug = slug.unwrap_or(template.slug);
            description.apply(&mut template.description);
            template.category = category.unwrap_or(template.category);
            template.tags = tags.unwrap_or(template.tags);
        }
        Command::SetStatus(status) => {
            if status == TemplateStatus::Published && template.current_version.is_none() {
                return Err(Fault::NotNow(
                    "this template has no version yet; add one with addTemplateDockerVersion"
                        .into(),
                ));
            }
            template.status = status;
        }
        Command::SetVersion(version) => {
            if !template.versions.iter().any(|known| known.version == version) {
                return Err(Fault::NotFound("version of this template"));
            }
            template.current_version = Some(version);
        }
        Command::SetPricing(pricing, featured) => {
            template.pricing = pricing.unwrap_or(template.pricing);
            template.featured = featured.unwrap_or(template.featured);
        }
        Command::AddVersion { version, images, replaces } => {
            also = add_version(&mut template, *version, images, &replaces)?;
        }
        Command::Delete => {
            also = also.require_absent::<RefCount>(&at.id.to_string());
            for (image, versions) in versions_by_image(&template) {
                also =
                    also.merge::<RefCount>(&image.to_string(), RefCountDelta::Subtract(versions));
            }
            return Ok(Step::remove().also(also));
        }
    }
    template.updated_at = at.now;
    Ok(Step::put(template).also(also))
}

/// Adds a version, which uses these images as they were read.
fn add_version(
    template: &mut Template,
    version: TemplateVersion,
    images: BTreeMap<ImageId, Snapshot<Images>>,
    replaces: &[SemanticVersion],
) -> Result<Change, Fault> {
    if template.versions.iter().any(|known| known.version == version.version) {
        return Err(Fault::Exists(format!(
            "this template has a version {} already; versions never change",
            version.version
        )));
    }
    if template.versions.len() >= MOST_VERSIONS {
        return Err(Fault::NotNow(format!(
            "a template has at most {MOST_VERSIONS} versions; create another one"
        )));
    }
    let mut uses = Change::new();
    for (id, seen) in images {
        uses = uses.require(&id, &seen);
        uses = uses.merge::<RefCount>(&id.to_string(), RefCountDelta::Add(1));
    }
    if template.current_version.as_ref().is_none_or(|current| replaces.contains(current)) {
        template.current_version = Some(version.version.clone());
    }
    template.versions.push(version);
    Ok(uses)
}

/// How many versions of a template use each image.
fn versions_by_image(template: &Template) -> BTreeMap<ImageId, u64> {
    let mut uses = BTreeMap::new();
    for version in &template.versions {
        let images: BTreeSet<_> = version.services.iter().map(|s| s.image_id).collect();
        for image in images {
            *uses.entry(image).or_default() += 1;
        }
    }
    uses
}
