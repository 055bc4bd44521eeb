//! Forgets the container engine that nodes share, after it was replaced.

use super::{Place, note};
use actors::installation::engine;

/// The next engine to which a node connects is the one that has the instances.
pub fn forget(place: &Place) -> Result<(), String> {
    let store = place.open()?;
    let forgotten = actix_rt::System::new().block_on(engine::forget(&store));
    store.close();
    match forgotten.map_err(|e| e.to_string())? {
        Some(id) => note(&format!("the engine {id} is forgotten; the next one is taken")),
        None => note("no engine is known"),
    }
    Ok(())
}
