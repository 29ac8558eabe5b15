//! Lists the objects of a collection of another API server, page by page. Of each object only the metadata is read, and
//! only what the caller keeps of it stays in memory.

mod page;

pub(crate) use page::{Metadata, OwnerReference};

use crate::Client;
use bareboat_api::{Status, Str};
use bytes::Bytes;
use page::Page;
use std::time::Duration;

/// How many objects are asked for at a time. A server may send more.
const PAGE: usize = 500;
/// How many pages of a collection are read.
const MOST_PAGES: usize = 400;
/// How many objects of a collection are read.
const MOST_OBJECTS: usize = 100_000;
/// How large the metadata of all kept objects of a collection may be.
const MOST_KEPT: usize = 32 << 20;
/// How long the list of a collection may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Larger pages are parsed on another thread.
const LARGE: usize = 256 << 10;

/// Lists the objects of a collection and returns what `keep` makes of their metadata.
pub(crate) async fn list<T, K>(client: &Client, collection: &str, keep: K) -> Result<Vec<T>, Status>
where
    T: Send + 'static,
    K: FnMut(Metadata) -> Option<T> + Send + 'static,
{
    let listed = tokio::time::timeout(PATIENCE, list_all(client, collection, keep)).await;
    listed.unwrap_or_else(|_| {
        let why = format!("the list of {collection} takes too long");
        Err(Status::timeout(why))
    })
}

async fn list_all<T, K>(client: &Client, collection: &str, keep: K) -> Result<Vec<T>, Status>
where
    T: Send + 'static,
    K: FnMut(Metadata) -> Option<T> + Send + 'static,
{
    let mut listing = Listing::new(keep);
    let mut after = Str::default();
    for _ in 0..MOST_PAGES {
        let mut path = format!("{collection}?limit={PAGE}");
        if !after.is_empty() {
            path.push_str("&continue=");
            path.push_str(&escape(&after));
        }
        let bytes = client.remote_page(&path).await?;
        let next;
        (listing, next) = match bytes.len() > LARGE {
            false => listing.add(&bytes)?,
            true => {
                let parsing = tokio::task::spawn_blocking(move || listing.add(&bytes));
                parsing.await.map_err(Status::internal)??
            }
        };
        match next.filter(|next| *next != after) {
            Some(next) => after = next,
            None => return Ok(listing.found),
        }
    }
    Err(Status::internal(format!("{collection} has too many pages")))
}

/// What was read of a collection.
struct Listing<T, K> {
    keep: K,
    found: Vec<T>,
    /// How many objects were read.
    objects: usize,
    /// The size of the metadata that was kept.
    kept: usize,
}

impl<T, K: FnMut(Metadata) -> Option<T>> Listing<T, K> {
    fn new(keep: K) -> Listing<T, K> {
        Listing {
            keep,
            found: Vec::new(),
            objects: 0,
            kept: 0,
        }
    }

    /// Reads a page, and returns where the next one begins.
    fn add(mut self, bytes: &Bytes) -> Result<(Listing<T, K>, Option<Str>), Status> {
        let next = page::read(bytes, &mut self).map_err(Status::internal)?;
        Ok((self, next.filter(|next| !next.is_empty())))
    }
}

impl<T, K: FnMut(Metadata) -> Option<T>> Page for Listing<T, K> {
    fn object(&mut self, metadata: Metadata) -> Result<(), &'static str> {
        self.objects += 1;
        if self.objects > MOST_OBJECTS {
            return Err("the collection has too many objects");
        }
        let size = metadata.size();
        if let Some(kept) = (self.keep)(metadata) {
            self.found.push(kept);
            self.kept += size;
        }
        match self.kept > MOST_KEPT {
            true => Err("the metadata of the collection is too large"),
            false => Ok(()),
        }
    }
}

fn escape(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() {
            true => out.push(char::from(byte)),
            false => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
