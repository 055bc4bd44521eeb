//! A decision whose basis changed while it was made is made anew.

use contract::Fault;

/// How often.
const REDECISIONS: usize = 16;

/// Decides again for as long as that is stale. It must read all that it is based on itself.
pub async fn redecided<T>(mut decide: impl AsyncFnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    for _ in 0..REDECISIONS {
        match decide().await {
            Err(Fault::Stale) => {}
            decided => return decided,
        }
    }
    Err(Fault::Stale)
}
