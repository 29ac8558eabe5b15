//! A conversion webhook that accepts connections and never answers.

use crate::victim::Victim;
use base64::Engine as _;
use serde_json::json;
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

/// The webhook of the kind `slows.hostile.example`, which is stored as `v1` and also served as `v2`.
pub(crate) struct SilentConverter {
    calls: Mutex<Receiver<std::io::Result<TcpStream>>>,
}

impl SilentConverter {
    /// Creates the kind, and waits until it is served.
    pub(crate) fn define(victim: &Victim) -> SilentConverter {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/convert", silent.local_addr().unwrap());
        // Accepted and kept open, so that no handshake ever completes.
        let (accepted, calls) = std::sync::mpsc::sync_channel(64);
        std::thread::spawn(move || silent.incoming().try_for_each(|call| accepted.send(call)));
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
        let authority = std::fs::read(victim.authority()).unwrap();
        let authority = base64::engine::general_purpose::STANDARD.encode(&authority);
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "slows.hostile.example"},
            "spec": {
                "group": "hostile.example", "scope": "Cluster",
                "names": {"plural": "slows", "singular": "slow", "kind": "Slow"},
                "versions": [version("v1", true), version("v2", false)],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"url": url, "caBundle": authority},
                }},
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        victim.admin.post(path, &definition).accepted();
        crate::process::eventually("the kind is served", || {
            let list = victim.admin.get("/apis/hostile.example/v1/slows");
            (list.code == 200).then_some(())
        });
        SilentConverter {
            calls: Mutex::new(calls),
        }
    }

    /// Waits until the server calls the webhook; the call lasts until the result is dropped.
    pub(crate) fn is_called(&self) -> TcpStream {
        let call = self
            .calls
            .lock()
            .unwrap()
            .recv()
            .expect("the converter is called");
        call.unwrap()
    }
}
