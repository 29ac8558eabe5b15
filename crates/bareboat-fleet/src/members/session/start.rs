//! Starts the task of a type, with its place on the shelf.

use super::{Running, Session, end};
use crate::api::MemberApi;
use crate::options::SyncOptions;
use crate::sync::{Redaction, Report, TypeSync};
use crate::types::{Chosen, DEFINITIONS, NAMESPACES, TypeKey, Wanted};
use bareboat_api::Value;
use bareboat_shelf::{KindId, KindInfo, Path, Progress};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Fields that Kubernetes' own field selectors know, and others that are often searched for.
const FIELDS: [(&str, &str, &[&str]); 6] = [
    (
        "",
        "pods",
        &["status.phase", "spec.nodeName", "spec.serviceAccountName"],
    ),
    (
        "",
        "events",
        &[
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.kind",
            "involvedObject.uid",
            "reason",
            "type",
        ],
    ),
    ("", "secrets", &["type"]),
    ("", "namespaces", &["status.phase"]),
    ("", "nodes", &["spec.unschedulable"]),
    ("batch", "jobs", &["status.successful"]),
];

impl Session {
    /// Starts the task of a type, unless it runs as it should.
    pub(super) async fn start(
        &mut self,
        api: &Arc<dyn MemberApi>,
        chosen: &Chosen,
        wanted: &Wanted,
        namespaces: Option<&Arc<[String]>>,
    ) -> Result<(), String> {
        let key = chosen.key();
        let is_secrets = key.0.is_empty() && key.1 == "secrets";
        let redacted = is_secrets && !(wanted.options.full_secrets && chosen.named);
        // What the sync itself needs is needed whole, whatever else is left out.
        let is_definitions = (key.0.as_str(), key.1.as_str()) == DEFINITIONS;
        let (options, namespaces) = match is_definitions || !chosen.shown {
            true => (Arc::default(), None),
            false => (wanted.options.clone(), namespaces),
        };
        let mark = mark(chosen, redacted, &options, namespaces);
        let runs = self.running.get(&key);
        if runs.is_some_and(|running| running.mark == mark && !running.task.is_finished()) {
            self.state.add_type(chosen, true);
            return Ok(());
        }
        if let Some(running) = self.running.remove(&key) {
            end(running.task).await;
        }
        let kind = self.kind(chosen, &options).await?;
        let saved = self.saved(&key).await;
        let resumes = saved.as_ref().is_some_and(|it| it.version == mark);
        self.state.add_type(chosen, resumes);
        let sync = TypeSync {
            member: self.member,
            kind,
            member_name: self.state.name.clone(),
            resource: chosen.resource.clone(),
            api: api.clone(),
            options,
            namespaces: namespaces.cloned(),
            redaction: match redacted {
                true => Redaction::Digests(self.common.salt.clone()),
                false => Redaction::None,
            },
            writer: self.common.writer.clone(),
            refills: self.common.refills.clone(),
            streaming: self.streaming.clone(),
            settings: self.common.settings.clone(),
            report: self.reporter(&key, wanted),
            mark: mark.clone(),
        };
        let ask = self.ask.clone();
        let wait = self
            .common
            .settings
            .longest_wait
            .min(Duration::from_secs(5));
        let task = tokio::spawn(async move {
            sync.run(saved).await;
            // The member says that it does not serve the type. What that means is decided after a look at what it serves.
            tokio::time::sleep(wait).await;
            ask.notify_one();
        });
        self.running.insert(key, Running { task, mark });
        Ok(())
    }

    /// Returns how far a type is on the shelf, if there is a version to resume from.
    pub(super) async fn saved(&self, key: &TypeKey) -> Option<Progress> {
        let (shelf, member, key) = (self.common.shelf.clone(), self.member, key.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let kind = shelf.directory().kind(&key.0, &key.1)?;
            let progress = shelf.progress(member).ok()?;
            let mut own = progress.into_iter().filter(|(one, _)| *one == kind);
            own.next().map(|(_, progress)| progress)
        });
        let saved = reading.await.ok().flatten();
        saved.filter(|progress| !progress.resource_version.is_empty())
    }

    /// Notes the kind on the shelf, with the fields that have indexes.
    async fn kind(&self, chosen: &Chosen, options: &SyncOptions) -> Result<KindId, String> {
        let resource = &chosen.resource;
        let info = KindInfo {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            kind: resource.kind.clone(),
            namespaced: resource.namespaced,
        };
        let known = FIELDS
            .iter()
            .filter(|(group, plural, _)| *group == info.group && *plural == info.resource);
        let known = known.flat_map(|(_, _, fields)| fields.iter());
        let mut fields: Vec<Path> = known.filter_map(|field| Path::parse(field).ok()).collect();
        let own = options.index.iter().filter(|(pattern, _)| {
            pattern
                .as_ref()
                .is_none_or(|pattern| pattern.matches(resource))
        });
        fields.extend(own.map(|(_, path)| path.clone()));
        fields.extend(selectable(chosen));
        let noted = self.common.writer.aside(move |shelf, now| {
            let kind = shelf.add_kind(&info)?;
            shelf.declare(kind, &fields, now)?;
            Ok(kind)
        });
        noted.await.map_err(|error| error.to_string())
    }

    /// Returns where the task of a type reports to.
    fn reporter(&self, key: &TypeKey, wanted: &Wanted) -> Arc<dyn Fn(Report) + Send + Sync> {
        let (state, key) = (self.state.clone(), key.clone());
        let (ask, look) = (self.ask.clone(), self.look.clone());
        let is_definitions = (key.0.as_str(), key.1.as_str()) == DEFINITIONS;
        let selects = wanted.options.namespace_selector.is_some()
            && (key.0.as_str(), key.1.as_str()) == NAMESPACES;
        let first = AtomicBool::new(true);
        Arc::new(move |report| {
            let changes = matches!(&report, Report::Changed(rows) if *rows > 0);
            let settled = matches!(&report, Report::Syncing | Report::Failed(_));
            state.report(&key, report);
            // Other types depend on the definitions.
            if is_definitions && (changes || (settled && first.swap(false, Ordering::Relaxed))) {
                ask.notify_one();
            }
            if selects && changes {
                look.notify_one();
            }
        })
    }
}

/// Marks which objects, and which parts of them, are on the shelf. With another mark everything is listed again.
fn mark(
    chosen: &Chosen,
    redacted: bool,
    options: &SyncOptions,
    namespaces: Option<&Arc<[String]>>,
) -> String {
    let mut mark = chosen.resource.version.clone();
    if redacted {
        mark.push_str("-keys");
    }
    let own = options.fingerprint();
    if !own.is_empty() {
        mark.push('#');
        mark.push_str(&own);
    }
    if let Some(names) = namespaces.filter(|_| chosen.resource.namespaced) {
        mark.push('#');
        let digest = Sha256::digest(names.join(","));
        for byte in digest.iter().take(16) {
            let _ = write!(mark, "{byte:02x}");
        }
    }
    mark
}

/// Returns the fields that a definition declares as selectable.
fn selectable(chosen: &Chosen) -> Vec<Path> {
    let definition = chosen.definition.as_ref();
    let versions = definition.and_then(|one| one.at(&["spec", "versions"])?.as_array());
    let mut versions = versions.unwrap_or_default().iter();
    let name = chosen.resource.version.as_str();
    let version = versions.find(|one| one.get("name").and_then(Value::as_str) == Some(name));
    let fields = version.and_then(|one| one.get("selectableFields")?.as_array());
    let fields = fields.unwrap_or_default().iter();
    let fields = fields.filter_map(|field| Path::parse(field.get("jsonPath")?.as_str()?).ok());
    fields.collect()
}
