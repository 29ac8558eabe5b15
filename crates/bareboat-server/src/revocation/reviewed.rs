//! Whether webhooks that authenticate and authorize could review a request. To clients, a request that was not reviewed
//! is a request that is refused; a stream is not ended for it at once.

use std::cell::Cell;

tokio::task_local! {
    /// Whether a webhook could not review the request that is decided about.
    static UNREVIEWED: Cell<bool>;
}

/// Decides about a request; also returns whether a webhook could not review it.
pub(crate) async fn reviewed<T>(decision: impl Future<Output = T>) -> (T, bool) {
    let decision = async {
        let decided = decision.await;
        (decided, UNREVIEWED.with(Cell::get))
    };
    UNREVIEWED.scope(Cell::new(false), decision).await
}

/// Records that a webhook could not review the current request.
#[cfg(any(feature = "outbound", test))]
pub(crate) fn could_not_review() {
    // The flag exists only while a stream is judged.
    let _ = UNREVIEWED.try_with(|unreviewed| unreviewed.set(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_decision_knows_whether_it_was_reviewed() {
        let (first, second) = tokio::join!(
            reviewed(async {
                tokio::task::yield_now().await;
                could_not_review();
                1
            }),
            reviewed(async {
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                2
            })
        );
        assert_eq!((first, second), ((1, true), (2, false)));
        could_not_review();
    }
}
