//! Members that die, are cut off, go back in time or answer nonsense while they are written to.

use super::restarts::{State, apply_until, list, watch};
use super::{Fleet, TYPES, condition, kubeconfig};
use crate::kubectl::Kubectl;
use crate::process::eventually;
use bareboat_rig::proxy::Proxy;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Writes config maps of a member until `stop` is set.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    thread: std::thread::JoinHandle<()>,
}

impl Load {
    pub(super) fn start(member: &Kubectl) -> Load {
        let (stop, written) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(runtime.block_on(member.home.client()));
        let (until, count) = (stop.clone(), written.clone());
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                for number in 0_usize.. {
                    if until.load(Ordering::Relaxed) {
                        break;
                    }
                    let name = format!("load-{}", number % 40);
                    match number % 7 {
                        3 => drop(maps.delete(&name, &DeleteParams::default()).await),
                        5 => {
                            let change = Patch::Merge(json!({"data": {"n": number.to_string()}}));
                            drop(maps.patch(&name, &PatchParams::default(), &change).await);
                        }
                        _ => {
                            let object = ConfigMap {
                                metadata: ObjectMeta {
                                    name: Some(name),
                                    ..ObjectMeta::default()
                                },
                                ..ConfigMap::default()
                            };
                            drop(maps.create(&PostParams::default(), &object).await);
                        }
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        Load {
            stop,
            written,
            thread,
        }
    }

    /// Waits until so many writes more were made.
    pub(super) fn more(&self, writes: usize) {
        let until = self.written.load(Ordering::Relaxed) + writes;
        eventually("more is written", || {
            (self.written.load(Ordering::Relaxed) >= until).then_some(())
        });
    }

    pub(super) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Makes so many configmaps in a member.
pub(super) fn fill(member: &Kubectl, count: usize) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(runtime.block_on(member.home.client()));
    runtime.block_on(async {
        for number in 0..count {
            let object = ConfigMap {
                metadata: ObjectMeta {
                    name: Some(format!("fill-{number}")),
                    ..ObjectMeta::default()
                },
                ..ConfigMap::default()
            };
            maps.create(&PostParams::default(), &object).await.unwrap();
        }
    });
}

/// The versions of the configmaps of a member, by their place in the views.
pub(super) fn own_versions(member: &Kubectl, name: &str) -> BTreeMap<String, String> {
    let own: Value = serde_json::from_str(&member.gives("get configmaps -o json")).unwrap();
    let items = own["items"].as_array().unwrap().iter();
    let versions = items.map(|item| {
        let text = |key: &str| item["metadata"][key].as_str().unwrap().to_owned();
        (
            format!("{name}/default/{}", text("name")),
            text("resourceVersion"),
        )
    });
    versions.collect()
}

/// The members' versions of what a list of all members shows.
pub(super) fn shown_versions(state: &State) -> BTreeMap<String, String> {
    let versions = state.iter().map(|(place, item)| {
        let version = &item["metadata"]["annotations"]["shadow.bareboat.dev/resource-version"];
        (place.clone(), version.as_str().unwrap().to_owned())
    });
    versions.collect()
}

/// Copies a directory. No program may write to it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A port that answers everything with a page for people.
fn nonsense() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let page = "<html>welcome</html>";
            let length = page.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
            let _ = write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{page}");
        }
    });
    port
}

#[test]
fn members_that_fail_while_they_are_written_to_are_equal_in_the_end() {
    let Some(mut fleet) = Fleet::new(3) else {
        return;
    };
    // An earlier state of the third member.
    fleet.members[2].gives("create configmap early --from-literal a=1");
    let member = fleet.members.remove(2).killed();
    let earlier = tempfile::tempdir().unwrap();
    copy(&member.home.data(), earlier.path());
    fleet.members.push(member.started());
    let proxies: Vec<Proxy> = fleet
        .members
        .iter()
        .map(|member| Proxy::to(member.home.port()))
        .collect();
    for (index, member) in fleet.members.iter().enumerate() {
        let spec = json!({
            "kubeconfig": kubeconfig(member, Some(proxies[index].port)),
            "syncResources": serde_json::from_str::<Value>(TYPES).unwrap(),
        });
        fleet.apply(&format!("c{}", index + 1), spec, json!({}));
    }
    for name in ["c1", "c2", "c3"] {
        fleet.synced(name);
    }
    fleet.contexts();
    let (mut state, version) = list(&fleet, "configmaps");
    let loads: Vec<Load> = fleet.members.iter().map(Load::start).collect();
    let lost = |name: &str| {
        fleet.until(name, |cluster| {
            condition(cluster, "ClusterHealthy").0 == "False"
        })
    };
    // The second is cut off, and then another server answers at its address.
    loads[1].more(100);
    proxies[1].set_down(true);
    proxies[1].drop_all();
    lost("c2");
    loads[1].more(100);
    proxies[1].lead_to(nonsense());
    proxies[1].set_down(false);
    lost("c2");
    loads[1].more(100);
    proxies[1].lead_to(fleet.members[1].home.port());
    proxies[1].drop_all();
    // The first is killed.
    loads[0].more(100);
    let mut members = std::mem::take(&mut fleet.members);
    let first = members.remove(0).killed().started();
    members.insert(0, first);
    // The third goes back to its earlier state.
    loads[2].more(100);
    let third = members.remove(2).killed();
    std::fs::remove_dir_all(third.home.data()).unwrap();
    copy(earlier.path(), &third.home.data());
    members.push(third.started());
    fleet.members = members;
    for load in &loads {
        load.more(50);
    }
    for load in loads {
        load.end();
    }
    for member in &fleet.members {
        member.gives("create configmap last --from-literal a=1");
    }
    let own = || {
        let mut own = BTreeMap::new();
        for (index, member) in fleet.members.iter().enumerate() {
            own.extend(own_versions(member, &format!("c{}", index + 1)));
        }
        own
    };
    for name in ["c1", "c2", "c3"] {
        fleet.synced(name);
    }
    eventually("the shelf has what the members have", || {
        let now = shown_versions(&list(&fleet, "configmaps").0);
        (now == own()).then_some(())
    });
    // A client that watched from the start comes to the same state.
    let (now, _) = list(&fleet, "configmaps");
    let mut following = watch(&fleet, "configmaps", &format!("resourceVersion={version}"));
    fleet.members[0].gives("create configmap end --from-literal a=1");
    apply_until(&mut following, &mut state, "c1/default/end");
    state.remove("c1/default/end");
    assert_eq!(state, now);
}
