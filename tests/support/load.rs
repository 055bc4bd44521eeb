//! Many callers: all at the same moment, or as constant load during other work.

use reqwest::blocking::{Client, RequestBuilder};
use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

/// The pause of a client before it sends a request again.
const PAUSE: Duration = Duration::from_millis(100);
/// Clients that send one request after another.
const CLIENTS: usize = 4;

/// Ends the work of clients with this value, also where a test fails: a scope of threads waits for all of them.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Does `work` while clients send these requests, none of which may fail.
pub fn under_load(request: impl Fn(&Client) -> RequestBuilder + Sync, work: impl FnOnce()) {
    under_load_of_patient(0, request, work);
}

/// Does `work` while clients send these requests. One that fails is sent again at most so often.
pub fn under_load_of_patient(
    retries: usize,
    request: impl Fn(&Client) -> RequestBuilder + Sync,
    work: impl FnOnce(),
) {
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let client = Client::new();
                while !stop.load(SeqCst) {
                    let send = || {
                        let answer = request(&client).send().map_err(|e| e.to_string())?;
                        let (status, body) = (answer.status(), answer.text());
                        let body = body.map_err(|e| e.to_string())?;
                        if status == 200 { Ok(()) } else { Err(format!("{status} {body}")) }
                    };
                    let again = |attempt| {
                        if attempt > 0 {
                            std::thread::sleep(PAUSE);
                        }
                        send().err()
                    };
                    let failures: Vec<_> = (0..=retries).map_while(again).collect();
                    let before = sent.load(SeqCst);
                    assert!(failures.len() <= retries, "after {before}: {failures:?}");
                    sent.fetch_add(1, SeqCst);
                }
            });
        }
        let _over = Over(&stop);
        work();
    });
    assert!(sent.load(SeqCst) > 100, "only {} requests were sent", sent.load(SeqCst));
}

/// The results of callers that all begin at the same moment. Each gets its number.
pub fn together<T: Send>(callers: usize, call: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let gate = Barrier::new(callers);
    std::thread::scope(|threads| {
        let (gate, call) = (&gate, &call);
        let begin = |number| {
            threads.spawn(move || {
                gate.wait();
                call(number)
            })
        };
        let all: Vec<_> = (0..callers).map(begin).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
