//! Does work once for all who ask for it at about the same time.
//!
//! Work begins after all that share it asked. Who asks while it runs shares the next run.

use bareboat_api::kind::BoxFuture;
use futures_util::future::{FutureExt as _, Shared};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

/// Work that is shared by those who ask with the same key. Everyone adds an item to it.
pub(super) struct Gather<K, I, T> {
    /// Work that has not begun.
    pending: Mutex<HashMap<K, Pending<I, T>>>,
    /// Held by the work that runs.
    turn: tokio::sync::Mutex<()>,
}

struct Pending<I, T> {
    items: HashSet<I>,
    work: Shared<BoxFuture<'static, Arc<T>>>,
}

impl<K, I, T> Default for Gather<K, I, T> {
    fn default() -> Gather<K, I, T> {
        Gather {
            pending: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }
}

impl<K, I, T> Gather<K, I, T>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    I: Eq + Hash + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    /// Returns the result of work that begins from now on. Its items include this one.
    pub(super) async fn ask<F, Fut>(self: &Arc<Self>, key: K, item: I, work: F) -> Arc<T>
    where
        F: FnOnce(HashSet<I>) -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        let shared = {
            let mut pending = self.pending.lock();
            let begin = || {
                let work: BoxFuture<'static, Arc<T>> =
                    Box::pin(self.clone().run(key.clone(), work));
                Pending {
                    items: HashSet::new(),
                    work: work.shared(),
                }
            };
            let next = pending.entry(key.clone()).or_insert_with(begin);
            next.items.insert(item);
            next.work.clone()
        };
        shared.await
    }

    async fn run<F, Fut>(self: Arc<Self>, key: K, work: F) -> Arc<T>
    where
        F: FnOnce(HashSet<I>) -> Fut,
        Fut: Future<Output = T>,
    {
        let _turn = self.turn.lock().await;
        let pending = self.pending.lock().remove(&key);
        let items = pending.map(|pending| pending.items).unwrap_or_default();
        Arc::new(work(items).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn who_asks_while_work_runs_shares_the_next_run() {
        let gather = Arc::<Gather<&str, usize, Vec<usize>>>::default();
        let (begun, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let ask = |item| {
            let (gather, begun, go_on) = (gather.clone(), begun.clone(), go_on.clone());
            async move {
                let work = move |items: HashSet<usize>| async move {
                    begun.add_permits(1);
                    go_on.acquire().await.expect("it is open").forget();
                    let mut items: Vec<usize> = items.into_iter().collect();
                    items.sort_unstable();
                    items
                };
                gather.ask("key", item, work).await
            }
        };
        let first = tokio::spawn(ask(0));
        begun.acquire().await.expect("it is open").forget();
        let mut others: Vec<_> = (1..=9).map(|item| Box::pin(ask(item))).collect();
        for other in &mut others {
            assert!(other.now_or_never().is_none(), "the first run goes on");
        }
        go_on.add_permits(2);
        assert_eq!(*first.await.expect("it ends"), [0]);
        for other in others {
            assert_eq!(*other.await, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        }
        assert_eq!(begun.available_permits(), 1, "there were two runs");
    }
}
