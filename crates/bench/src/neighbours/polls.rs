//! Runners that wait for builds, beside many waiting builds of others.

use super::{Tenants, app_of, start};
use crate::{Pace, builds, machine, outcome::Outcome, table::Row};
use actors::{kinds::delivery::builds::State, ports::random::Random, runtime::resource::Kept};
use contract::{AppId, OrganizationId};
use serde_json::json;

const POLLS: usize = 30;
const WAITING: usize = 20_000;
/// Builds under way of one organization, and of one app.
const OF_ORGANIZATION: u64 = 1_000;
const OF_APP: u64 = 100;

pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let home = machine::scratch()?;
    let server = start(home.path(), pace, &[])?;
    let Tenants { attacker, visitor } = Tenants::register(&server)?;
    let app = app_of(&server, &attacker)?;
    server.stop()?;
    let random = Random::default();
    let organizations: Vec<OrganizationId> =
        (0..WAITING as u64 / OF_ORGANIZATION).map(|_| random.id(builds::now())).collect();
    let apps: Vec<AppId> = (0..WAITING as u64 / OF_APP).map(|_| random.id(builds::now())).collect();
    builds::seed_builds(home.path(), WAITING, |id, number| {
        let app = at(&apps, number / OF_APP)?;
        let organization = Some(at(&organizations, number / OF_ORGANIZATION)?);
        let state = State { organization, plan: Some(builds::plan()?), ..builds::state(id, app)? };
        Ok(Kept::at_rest(state))
    })?;
    let server = start(home.path(), pace, &[])?;
    let beside = visitor.beside(&server, pace, |signal| {
        signal.repeat(POLLS, |number, _| {
            let runner = format!("the-key-of-the-runner-{number}");
            let params = json!({"runner": runner, "name": "runner", "labels": ["android"],
                "appIds": [app]});
            server.client.call(Some(&attacker), "svc_claimBuild", &params).map(drop)
        })
    })?;
    Ok(beside.rows(&format!("{POLLS} idle runners and {WAITING} builds of others")).into())
}

fn at<T: Copy>(all: &[T], number: u64) -> Outcome<T> {
    all.get(number as usize).copied().ok_or_else(|| "an id is missing".into())
}
