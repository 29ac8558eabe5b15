//! Servers that share a store: the controllers of one of them work, and another one takes over.

use crate::fixture::{Fixture, builder, config, ghost};
use bareboat_api::admission::{Lookup, Mutator, Review};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};
use bareboat_builtin::admission::NamespaceLifecycle;
use bareboat_controllers::{Client, Options};
use bareboat_storage::{MemoryBackend, Store, StoreOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/bareboat-controllers";

async fn server(log: &MemoryBackend, host: &str) -> Fixture {
    let store = Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap();
    let server = builder(|_| {}).storage(store).mutator(NamespaceLifecycle);
    let options = Options {
        hostname: Some(host.to_owned()),
        ..Options::default()
    };
    Fixture::over(server.build().unwrap(), options).await
}

fn leads(lease: &Object, host: &str) -> bool {
    let holder = lease.at(&["spec", "holderIdentity"]);
    let holder = holder.and_then(Value::as_str).unwrap_or("");
    holder.starts_with(&format!("{host}_"))
}

/// Waits until the garbage collector of some server has worked.
async fn collects(fixture: &Fixture, name: &str) {
    fixture.config(name, vec![ghost("owner")], &[]).await;
    fixture.until_gone(&config(name)).await;
}

/// Returns how often the Lease changed its holder.
async fn transitions(fixture: &Fixture) -> i64 {
    let lease = fixture.get(LEASE).await.unwrap();
    let count = lease.at(&["spec", "leaseTransitions"]);
    count.and_then(Value::as_i64).unwrap_or(-1)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_leads_and_hands_over_when_it_stops() {
    let log = MemoryBackend::new().shared();
    let first = server(&log, "first").await;
    first.until_it(LEASE, |lease| leads(lease, "first")).await;
    let second = server(&log, "second").await;
    collects(&second, "a").await;
    assert!(leads(&second.get(LEASE).await.unwrap(), "first"));
    first.stop().await;
    second.until_it(LEASE, |lease| leads(lease, "second")).await;
    collects(&second, "b").await;
    assert_eq!(transitions(&second).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_leads_when_the_leader_is_gone() {
    let log = MemoryBackend::new().shared();
    let first = server(&log, "first").await;
    first.until_it(LEASE, |lease| leads(lease, "first")).await;
    let second = server(&log, "second").await;
    // The controllers end without a word, as those of a killed process.
    drop(first);
    second.config("a", vec![ghost("owner")], &[]).await;
    second.until_it(LEASE, |lease| leads(lease, "second")).await;
    second.until_gone(&config("a")).await;
    assert_eq!(transitions(&second).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_lease_is_taken_away_waits() {
    let log = MemoryBackend::new().shared();
    let first = server(&log, "first").await;
    first.until_it(LEASE, |lease| leads(lease, "first")).await;
    let mut lease = first.get(LEASE).await.unwrap();
    let spec = lease.map_mut().get_mut("spec").unwrap();
    let stranger = Value::string("stranger");
    spec.make_object().insert("holderIdentity", stranger);
    first.client.update(LEASE, lease.value()).await.unwrap();
    // It looks at the Lease when it changes, and leads again only when the Lease is no longer valid.
    first.until_it(LEASE, |lease| leads(lease, "first")).await;
    collects(&first, "a").await;
    assert_eq!(transitions(&first).await, 1);
}

/// Renews the Lease just before it is released, as a renewal does that is under way when a server stops.
#[derive(Clone, Default)]
struct Late {
    client: Arc<OnceLock<Client>>,
    renewals: Arc<AtomicUsize>,
}

impl Mutator for Late {
    fn name(&self) -> &'static str {
        "Late"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let holder = review.object.as_ref().and_then(|object| {
            let holder = object.at(&["spec", "holderIdentity"])?;
            holder.as_str().map(str::to_owned)
        });
        Box::pin(async move {
            let client = match holder.as_deref() {
                Some("") => self.client.get(),
                _ => None,
            };
            if let Some(client) = client
                && self.renewals.fetch_add(1, Ordering::Relaxed) < 2
            {
                let patch = bareboat_api::value!({"metadata": {"labels": {
                    "renewed": (self.renewals.load(Ordering::Relaxed).to_string()),
                }}});
                client.merge(LEASE, &patch).await?;
            }
            Ok(())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_released_although_a_renewal_was_under_way() {
    let log = MemoryBackend::new().shared();
    let store = Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap();
    let late = Late::default();
    let server = builder(|_| {}).storage(store).mutator(late.clone());
    let options = Options {
        hostname: Some("first".to_owned()),
        ..Options::default()
    };
    let first = Fixture::over(server.build().unwrap(), options).await;
    first.until_it(LEASE, |lease| leads(lease, "first")).await;
    let client = first.client.clone();
    assert!(late.client.set(client.clone()).is_ok());
    first.stop().await;
    let lease = client.request(http::Method::GET, LEASE, "application/json", None);
    let lease = lease.await.unwrap();
    let holder = lease.at(&["spec", "holderIdentity"]);
    assert_eq!(holder.and_then(Value::as_str), Some(""));
    assert_eq!(
        late.renewals.load(Ordering::Relaxed),
        3,
        "two came in between"
    );
}

/// Holds up the creation of the Lease until the server stops.
#[derive(Clone, Default)]
struct Slow {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Mutator for Slow {
    fn name(&self) -> &'static str {
        "Slow"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let creates = review.name == "bareboat-controllers" && review.old.is_none();
        Box::pin(async move {
            if creates {
                self.begun.notify_one();
                self.go_on.notified().await;
            }
            Ok(())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_released_although_it_was_being_taken() {
    let log = MemoryBackend::new().shared();
    let store = Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap();
    let slow = Slow::default();
    let server = builder(|_| {}).storage(store).mutator(slow.clone());
    let options = Options {
        hostname: Some("first".to_owned()),
        ..Options::default()
    };
    let first = Fixture::over(server.build().unwrap(), options).await;
    slow.begun.notified().await;
    let client = first.client.clone();
    let stopping = tokio::spawn(first.stop());
    // If the server does not stop yet, it releases the Lease as usual.
    tokio::time::sleep(Duration::from_millis(100)).await;
    slow.go_on.notify_one();
    stopping.await.unwrap();
    let lease = client.request(http::Method::GET, LEASE, "application/json", None);
    let lease = lease.await.unwrap();
    let holder = lease.at(&["spec", "holderIdentity"]);
    assert_eq!(holder.and_then(Value::as_str), Some(""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_alone_needs_no_lease() {
    let fixture = Fixture::new().await;
    collects(&fixture, "a").await;
    assert!(!fixture.exists(LEASE).await);
}
