//! The conformance suite on the memory backend, the reference model, alone and shared.

use std::sync::Arc;

use bareboat_storage::conformance::Site;
use bareboat_storage::{Backend, MemoryBackend};

fn memory() -> impl Site {
    let backend = MemoryBackend::new();
    move || -> Arc<dyn Backend> { Arc::new(backend.clone()) }
}

fn shared_memory() -> impl Site {
    let backend = MemoryBackend::new().shared();
    move || -> Arc<dyn Backend> { Arc::new(backend.clone()) }
}

bareboat_storage::conformance!(memory);
bareboat_storage::backup_conformance!(memory);

mod shared {
    bareboat_storage::conformance!(super::shared_memory);
    bareboat_storage::backup_conformance!(super::shared_memory);
}
