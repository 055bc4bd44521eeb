//! The handlers of the session routes, which client libraries use beside the functions.

use super::passwords::{prove_identity, replace_password};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::people::accounts::{Account, Accounts, Command},
};
use contract::{
    Fault, Serves,
    endpoint::session_routes::{
        ChangeUser, CurrentSession, ParseDate, ParseSession, UserChange, UserChanged, UserPointer,
    },
};

impl Serves<CurrentSession> for Platform {
    async fn serve(&self, cx: &Call, _: CurrentSession) -> Result<ParseSession, Fault> {
        let (_, session) = cx.session()?;
        Ok(ParseSession {
            object_id: session.id,
            user: UserPointer {
                kind: "Pointer".into(),
                class_name: "_User".into(),
                object_id: session.user,
            },
            created_at: session.created_at,
            updated_at: session.last_used_at,
            expires_at: ParseDate { kind: "Date".into(), iso: session.expires_at },
            // Only the edge knows it, and adds it to the reply.
            session_token: None,
        })
    }
}

impl Serves<ChangeUser> for Platform {
    /// Users can change only themselves.
    async fn serve(
        &self,
        cx: &Call,
        ChangeUser { user_id, body }: ChangeUser,
    ) -> Result<UserChanged, Fault> {
        cx.session()?;
        if cx.user()?.id != user_id {
            return Err(Fault::NotFound("user"));
        }
        let UserChange { password, current_password, name, avatar_url, company } = body;
        let has_profile = name.is_some() || !avatar_url.is_keep() || !company.is_keep();
        let (name, company) = (name.map(Into::into), company.map(Into::into));
        let update = Command::Update { name, avatar_url, company };
        let changed = |account: &Account| {
            Ok(UserChanged { updated_at: account.updated_at, session_token: None })
        };
        let Some(password) = password else {
            // Without a new session, the reply holds no secret.
            let cx = Call { secret: false, ..cx.clone() };
            return cx.to::<Accounts>(user_id).change(update, changed).await;
        };
        let seen = prove_identity(self, cx, current_password).await?;
        if has_profile {
            // Only the change of the password carries the idempotency key.
            let cx = Call { idempotency: None, ..cx.clone() };
            cx.to::<Accounts>(user_id).change(update, changed).await?;
        }
        let session = replace_password(self, cx, seen, password, false).await?;
        Ok(UserChanged { updated_at: cx.now, session_token: Some(session.session_token) })
    }
}
