//! Repeats stale decisions: a record that they depend on changed meanwhile.

use contract::Fault;

/// The most attempts at one decision.
const REDECISIONS: usize = 16;

/// Calls `decide` again while it returns [`Fault::Stale`]. Each call must read everything that the
/// decision depends on.
pub async fn redecided<T>(mut decide: impl AsyncFnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    for _ in 0..REDECISIONS {
        match decide().await {
            Err(Fault::Stale) => {}
            decided => return decided,
        }
    }
    Err(Fault::Stale)
}
