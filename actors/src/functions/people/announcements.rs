//! The handlers of the group Announcements.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::people::announcements::{Announcements, Command, MOST_IN_FORCE, is_in_force},
    runtime::store::Store,
};
use contract::{
    AnnouncementId, Fault, Id, Serves, Timestamp,
    announcements::{
        Announcement, AnnouncementList, CreateAnnouncement, DeleteAnnouncement,
        DeletedAnnouncement, GetAnnouncements,
    },
};
use ulid::Ulid;

/// The announcements in force, newest first.
fn in_force(store: &Store, now: Timestamp) -> Result<Vec<Announcement>, Fault> {
    let all = store.whole::<Announcements>(None).map(|found| Ok(found?.1.state.clone()));
    all.filter(|found| found.as_ref().map_or(true, |found| is_in_force(found, now))).collect()
}

impl Serves<CreateAnnouncement> for Platform {
    async fn serve(&self, cx: &Call, p: CreateAnnouncement) -> Result<Announcement, Fault> {
        // Announcements have no parent, so they share the turn of an id that nothing has.
        let _turn = self.world.creation(AnnouncementId::of(Ulid::nil())).await?;
        if in_force(&self.world.store, cx.now)?.len() >= MOST_IN_FORCE {
            return Err(Fault::NotNow(format!(
                "{MOST_IN_FORCE} announcements are in force, which is the most; delete one with \
                 svc_deleteAnnouncement first"
            )));
        }
        let id: AnnouncementId = self.world.ports.random.id(cx.now);
        let CreateAnnouncement { text, tone, until } = p;
        let announcement = Announcement { id, text, tone, until, created_at: cx.now };
        cx.to::<Announcements>(id)
            .create(announcement, |announcement| Ok(announcement.clone()))
            .await
    }
}

impl Serves<GetAnnouncements> for Platform {
    async fn serve(&self, cx: &Call, _: GetAnnouncements) -> Result<AnnouncementList, Fault> {
        Ok(AnnouncementList { items: in_force(&self.world.store, cx.now)? })
    }
}

impl Serves<DeleteAnnouncement> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteAnnouncement) -> Result<DeletedAnnouncement, Fault> {
        let deleted = p.announcement_id;
        let reply = move |_: &Announcement| Ok(DeletedAnnouncement { deleted });
        cx.to::<Announcements>(deleted).change(Command::Delete, reply).await
    }
}
