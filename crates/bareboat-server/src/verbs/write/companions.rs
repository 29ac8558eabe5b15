//! Objects that go with another one: of other kinds, and of the same name.

use crate::kinds::catalog::Serving;
use crate::verbs::call::Call;
use crate::verbs::delete::delete_companion;
use bareboat_api::Object;

/// Deletes what goes with an object that is gone. The object stays gone whatever becomes of it.
pub(crate) async fn take_along(call: &Call, gone: &Object) {
    for (group, resource) in call.served.kind.strategy.companions() {
        let served = match call.state.catalog.table().find(group, resource) {
            Some(Serving::Stored(served)) => served.clone(),
            _ => continue,
        };
        let companion = Call {
            state: call.state.clone(),
            ask: call.ask.clone(),
            version: served.stored_version().unwrap_or(0),
            served,
        };
        let key = companion.served.key(gone.namespace(), gone.name());
        match delete_companion(&companion, &key).await {
            Ok(()) => {}
            Err(status) if status.code == 404 => {}
            Err(status) => {
                tracing::warn!(%resource, key, %status, "what goes with a deleted object stayed");
            }
        }
    }
}
