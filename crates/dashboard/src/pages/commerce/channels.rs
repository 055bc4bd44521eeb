//! The channels of shops, from which checkouts build orders. The functions take the master key only, so
//! a person enters it for each call. It is kept nowhere.

use crate::{
    form::Form,
    frame::Frame,
    response::{PageResult, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Limit, Page,
    checkouts::{
        CommerceChannel, DeleteCommerceChannel, DeletedCommerceChannel, GetCommerceChannels,
        RegisterCommerceChannel,
    },
};

const HERE: &str = "/operations/channels";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(show))
        .route(HERE, web::post().to(list))
        .route("/operations/channels/register", web::post().to(register))
        .route("/operations/channels/delete", web::post().to(delete));
}

/// The forms of the page: what was entered in each, and what is wrong with it.
#[derive(Default)]
struct Forms {
    list: Form,
    register: Form,
    delete: Form,
}

impl Forms {
    /// The form that was refused, or the first one.
    fn last(&self) -> &Form {
        let all = [&self.list, &self.register, &self.delete];
        all.into_iter().find(|form| form.fault().is_some()).unwrap_or(&self.list)
    }
}

#[derive(Template)]
#[template(path = "channels.html")]
struct ChannelsPage {
    frame: Frame,
    /// The channels, once the master key was entered.
    channels: Option<Page<CommerceChannel>>,
    /// What the last form did.
    note: Option<String>,
    forms: Forms,
    api_url: String,
    application_id: String,
}

async fn show(visitor: Visitor) -> PageResult {
    render(&visitor, None, Forms::default(), None).await
}

async fn list(visitor: Visitor, form: Form) -> PageResult {
    show_with(&visitor, form.value("masterKey"), Forms::default(), None).await
}

/// Shows the channels with this master key. If another form was refused, its words stay.
async fn show_with(
    visitor: &Visitor,
    key: &str,
    mut forms: Forms,
    note: Option<String>,
) -> PageResult {
    let all = GetCommerceChannels { limit: Limit::MOST, cursor: None };
    let channels = match visitor.call_with_master_key(&all, None, key).await {
        Ok(channels) => Some(channels),
        Err(fault) => {
            if forms.last().fault().is_none() {
                forms.list = forms.list.refused(fault);
            }
            None
        }
    };
    render(visitor, channels, forms, note).await
}

async fn render(
    visitor: &Visitor,
    channels: Option<Page<CommerceChannel>>,
    forms: Forms,
    note: Option<String>,
) -> PageResult {
    let frame = crate::pages::operations::tab(visitor, "/channels").await?;
    let settings = visitor.settings();
    let (api_url, application_id) = (settings.api_url.clone(), settings.application_id.clone());
    let form = forms.last().clone();
    form_page(&form, &ChannelsPage { frame, channels, note, forms, api_url, application_id })
}

async fn register(visitor: Visitor, form: Form) -> PageResult {
    let key = form.value("masterKey").to_owned();
    match registered(&visitor, &form, &key).await {
        Ok(_) => {
            show_with(
                &visitor,
                &key,
                Forms::default(),
                Some(visitor.say().the_channel_is_registered()),
            )
            .await
        }
        Err(fault) => {
            let forms = Forms { register: form.refused(fault), ..Forms::default() };
            show_with(&visitor, &key, forms, None).await
        }
    }
}

async fn registered(visitor: &Visitor, form: &Form, key: &str) -> Result<CommerceChannel, Fault> {
    let params = RegisterCommerceChannel {
        channel_token: form.get("channelToken")?,
        app_id: form.get("appId")?,
        store_id: form.get("storeId")?,
        admin_api_url: form.get("adminApiUrl")?,
        admin_token: form.get("adminToken")?,
        label: form.get("label")?,
    };
    visitor.call_with_master_key(&params, form.key(), key).await
}

async fn delete(visitor: Visitor, form: Form) -> PageResult {
    let key = form.value("masterKey").to_owned();
    match forgotten(&visitor, &form, &key).await {
        Ok(_) => {
            show_with(
                &visitor,
                &key,
                Forms::default(),
                Some(visitor.say().the_channel_is_forgotten()),
            )
            .await
        }
        Err(fault) => {
            let forms = Forms { delete: form.refused(fault), ..Forms::default() };
            show_with(&visitor, &key, forms, None).await
        }
    }
}

async fn forgotten(
    visitor: &Visitor,
    form: &Form,
    key: &str,
) -> Result<DeletedCommerceChannel, Fault> {
    form.confirm(form.value("channelToken"), "the token of this channel")?;
    let params = DeleteCommerceChannel { channel_token: form.get("channelToken")? };
    visitor.call_with_master_key(&params, form.key(), key).await
}
