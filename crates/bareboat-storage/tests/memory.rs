//! The suite on the memory backend, which is the model the others are measured by.

use std::sync::Arc;

use bareboat_storage::conformance::Site;
use bareboat_storage::{Backend, MemoryBackend};

fn memory() -> impl Site {
    let backend = MemoryBackend::new();
    move || -> Arc<dyn Backend> { Arc::new(backend.clone()) }
}

bareboat_storage::conformance!(memory);
