use super::*;
use futures_util::{FutureExt, future::join_all};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

fn is_empty<K: Eq + Hash + Copy>(turns: &Turns<K>) -> bool {
    let queue = turns.queue();
    queue.holders.is_empty() && queue.waiting == 0
}

#[test]
fn one_takes_half_and_leaves_the_rest_to_others() {
    let turns = Turns::halved(4);
    let take = |holder| turns.take(holder).now_or_never().map(Result::unwrap);
    let first = (take('A').unwrap(), take('A').unwrap());
    assert!(take('A').is_none(), "half is its share");
    let second = (take('B').unwrap(), take('B').unwrap());
    assert!(take('C').is_none(), "all are taken");
    drop(second.0);
    assert!(take('A').is_none(), "half is its share still");
    assert!(take('C').is_some());
    drop(first);
    assert!(take('A').is_some());
}

#[test]
fn the_first_request_of_another_does_not_wait_for_a_thousand() {
    let turns = Turns::new(2, 2);
    let held = [(); 2].map(|()| turns.take('A').now_or_never().unwrap().unwrap());
    let flood: Vec<_> = (0..1_000).map(|_| turns.ask('A', 0).unwrap()).collect();
    let other = turns.ask('B', 0).unwrap();
    let [first, second] = held;
    drop(first);
    assert!(other.is_granted() && flood.iter().all(|asked| !asked.is_granted()));
    drop(second);
    assert!(flood.first().unwrap().is_granted());
    drop((flood, other));
    assert!(is_empty(&turns), "nobody is remembered");
}

#[test]
fn ranks_count_among_the_requests_of_one_holder_only() {
    let turns = Turns::new(1, 1);
    let held = turns.take('A').now_or_never().unwrap().unwrap();
    let [late, early] = [9, 3].map(|rank| turns.ask('A', rank).unwrap());
    let other = turns.ask('B', 5).unwrap();
    drop(held);
    assert!(other.is_granted());
    drop(other);
    assert!(early.is_granted() && !late.is_granted());
}

#[test]
fn too_many_that_wait_are_refused() {
    let turns = Turns::new(0, 1);
    let waiting: Vec<_> = (0..WAITING_OF_EACH).map(|_| turns.ask(0, 0).unwrap()).collect();
    assert_eq!(turns.ask(0, 0).err(), Some(NoTurn::OfHolder));
    let others = (1..16).flat_map(|holder| vec![holder; WAITING_OF_EACH]);
    let others: Vec<_> = others.map(|holder| turns.ask(holder, 0).unwrap()).collect();
    let late: Vec<_> = (0..FEW).map(|_| turns.ask(99, 0).unwrap()).collect();
    assert_eq!(turns.ask(99, 0).err(), Some(NoTurn::OfAll));
    drop(waiting);
    assert!(turns.ask(0, 0).is_ok() && turns.ask(99, 0).is_ok());
    drop((others, late));
    assert!(is_empty(&turns));
    assert_eq!(Fault::from(NoTurn::OfHolder).status(), 429);
    assert_eq!(Fault::from(NoTurn::OfAll).status(), 503);
}

#[test]
fn never_more_than_so_many_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let turns = Turns::halved(3);
    let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = (0..64).map(|n| {
        let (turns, busy, most) = (turns.clone(), busy.clone(), most.clone());
        runtime.spawn(async move {
            let _turn = turns.take(n % 4).await.unwrap();
            most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            busy.fetch_sub(1, Ordering::SeqCst);
        })
    });
    let work: Vec<_> = work.collect();
    runtime.block_on(join_all(work)).into_iter().for_each(Result::unwrap);
    assert!(most.load(Ordering::SeqCst) <= 3 && is_empty(&turns));
}

#[test]
fn sixteen_threads_leave_nothing_behind() {
    let turns = Turns::new(3, 2);
    std::thread::scope(|threads| {
        for n in 0..16_usize {
            let turns = &turns;
            threads.spawn(move || {
                for rank in 0..500 {
                    let asked = turns.ask(n % 5, rank).unwrap();
                    if rank % 3 > 0 {
                        drop(futures_util::FutureExt::now_or_never(asked));
                    }
                }
            });
        }
    });
    assert!(is_empty(&turns) && turns.queue().free == 3);
}

/// What happens to the turns: a request of a holder, or the end of one of its requests.
#[derive(Debug, Clone, Copy)]
enum Event {
    Ask(u8, u8),
    End(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (0..6_u8, 0..4_u8).prop_map(|(holder, rank)| Event::Ask(holder, rank)),
        2 => (0..64_usize).prop_map(Event::End),
    ];
    proptest::collection::vec(event, 0..200)
}

struct Request {
    holder: u8,
    asked: Waiting<u8>,
    /// How many turns others may get before it, if it was the first of a holder without a turn.
    patience: Option<usize>,
}

fn taken(requests: &[Request], holder: u8) -> usize {
    requests.iter().filter(|r| r.holder == holder && r.asked.is_granted()).count()
}

fn waits(requests: &[Request], holder: u8) -> bool {
    requests.iter().any(|r| r.holder == holder && !r.asked.is_granted())
}

proptest! {
    /// No turn is idle while somebody may have it. Whoever waits without a turn is overtaken by
    /// each other holder at most once.
    #[test]
    fn turns_are_shared_fairly(events in events(), count in 1..5_usize, of_each in 1..4_usize) {
        let turns = Turns::new(count, of_each);
        let mut requests: Vec<Request> = Vec::new();
        for event in events {
            let granted = requests.iter().filter(|r| r.asked.is_granted()).count();
            let mut ended = 0;
            match event {
                Event::Ask(holder, rank) => {
                    let is_first = taken(&requests, holder) == 0 && !waits(&requests, holder);
                    let ahead = (0..6).filter(|other| waits(&requests, *other)).count();
                    let asked = turns.ask(holder, rank.into()).unwrap();
                    requests.push(Request { holder, asked, patience: is_first.then_some(ahead) });
                }
                Event::End(n) if !requests.is_empty() => {
                    let request = requests.swap_remove(n % requests.len());
                    ended = usize::from(request.asked.is_granted());
                    // Another request of the holder may now be its first.
                    for other in &mut requests {
                        if other.holder == request.holder {
                            other.patience = None;
                        }
                    }
                }
                Event::End(_) => {}
            }
            let now_granted = requests.iter().filter(|r| r.asked.is_granted()).count();
            prop_assert!(now_granted <= count);
            for holder in 0..6 {
                let taken = taken(&requests, holder);
                prop_assert!(taken <= of_each);
                let may = waits(&requests, holder) && taken < of_each;
                prop_assert!(!may || now_granted == count, "a turn is idle");
            }
            let given = now_granted + ended - granted;
            for request in &mut requests {
                if request.asked.is_granted() || taken_by_any(&turns, request.holder) > 0 {
                    request.patience = None;
                } else if let Some(patience) = &mut request.patience {
                    prop_assert!(*patience >= given, "overtaken twice");
                    *patience -= given;
                }
            }
        }
        drop(requests);
        prop_assert!(is_empty(&turns) && turns.queue().free == count);
    }
}

fn taken_by_any(turns: &Turns<u8>, holder: u8) -> usize {
    turns.queue().holders.get(&holder).map_or(0, |holder| holder.taken)
}
