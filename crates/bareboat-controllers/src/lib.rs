//! Controllers as clients of the server: bootstrap, namespaces, garbage, custom kinds, events.
//!
//! They read one feed of metadata over all kinds, and whatever they write goes through the front
//! door of the server, authenticated, authorized and admitted like any other client's writes.
//! When nothing happens they do nothing.

mod bootstrap;
mod client;

pub use client::Client;

use bareboat_server::Server;
use tokio::task::JoinSet;

/// Running controllers; they end when this is dropped.
pub struct Controllers {
    tasks: JoinSet<()>,
}

impl Controllers {
    /// Creates what must be there from the start, and starts the controllers.
    pub async fn start(server: Server) -> Controllers {
        let client = Client::new(server);
        bootstrap::run(&client).await;
        Controllers {
            tasks: JoinSet::new(),
        }
    }

    /// Ends them.
    pub fn stop(&mut self) {
        self.tasks.abort_all();
    }
}
