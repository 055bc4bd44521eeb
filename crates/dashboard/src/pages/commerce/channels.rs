//! The channels of shops, from which checkouts build orders. The functions take the master key only, so
//! a person enters it for each call. It is kept nowhere.

use crate::{
    answer::{Answer, Frame, form_page},
    form::Form,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Page,
    checkouts::{
        CommerceChannel, DeleteCommerceChannel, GetCommerceChannels, RegisterCommerceChannel,
    },
};
use serde_json::{Value, json};

const HERE: &str = "/operations/channels";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(ask))
        .route(HERE, web::post().to(list))
        .route("/operations/channels/register", web::post().to(register))
        .route("/operations/channels/delete", web::post().to(delete));
}

#[derive(Template)]
#[template(path = "channels.html")]
struct Show {
    frame: Frame,
    /// The channels, once the master key was entered.
    channels: Option<Page<CommerceChannel>>,
    /// What the last form did.
    said: Option<&'static str>,
    form: Form,
}

impl Show {
    fn tabs(&self) -> &'static [(&'static str, &'static str)] {
        crate::pages::operations::TABS
    }

    fn is_here(&self, address: &str) -> bool {
        address == HERE
    }
}

async fn ask(visitor: Visitor) -> Answer {
    let frame = Frame::of(&visitor, "Operations").await?;
    form_page(&Form::default(), &Show { frame, channels: None, said: None, form: Form::default() })
}

async fn list(visitor: Visitor, form: Form) -> Answer {
    show(&visitor, form, None).await
}

/// Shows the channels with the master key of the form. What was refused before stays refused.
async fn show(visitor: &Visitor, form: Form, said: Option<&'static str>) -> Answer {
    let frame = Frame::of(visitor, "Operations").await?;
    let all = json!({"limit": 200});
    let key = form.value("masterKey");
    let channels = visitor.send_with_master_key::<GetCommerceChannels>(&all, None, key).await;
    let (channels, form) = match channels {
        Ok(channels) => (Some(channels), form),
        Err(fault) if form.fault().is_none() => (None, form.refused(fault)),
        Err(_) => (None, form),
    };
    form_page(&form.clone(), &Show { frame, channels, said, form })
}

async fn register(visitor: Visitor, form: Form) -> Answer {
    let fields = ["channelToken", "appId", "storeId", "adminApiUrl", "adminToken", "label"];
    let params = Value::Object(form.params(&fields));
    let key = form.value("masterKey");
    let made =
        visitor.send_with_master_key::<RegisterCommerceChannel>(&params, form.key(), key).await;
    match made {
        Ok(_) => {
            // The next channel begins with an empty form.
            let form = Form::filled([("masterKey", key.to_owned())]);
            show(&visitor, form, Some("The channel is registered.")).await
        }
        Err(fault) => show(&visitor, form.refused(fault), None).await,
    }
}

async fn delete(visitor: Visitor, form: Form) -> Answer {
    let name = form.value("channelToken");
    if form.value("confirmation") != name {
        let fault = Fault::invalid("confirmation", "is not the token of this channel");
        return show(&visitor, form.refused(fault), None).await;
    }
    let (params, key) = (json!({"channelToken": name}), form.value("masterKey"));
    let gone =
        visitor.send_with_master_key::<DeleteCommerceChannel>(&params, form.key(), key).await;
    match gone {
        Ok(_) => {
            let form = Form::filled([("masterKey", key.to_owned())]);
            show(&visitor, form, Some("The channel is forgotten.")).await
        }
        Err(fault) => show(&visitor, form.refused(fault), None).await,
    }
}
