//! Priority and fairness: the table of flow schemas and priority levels that requests are assigned by.
//!
//! The table is immutable and replaced when a schema or a level changes, so that a request reads it without a lock.
//! Levels are carried over to the next table, with their running and waiting requests.

use super::adjust;
use super::level::{Clock, Level};
use super::meters::{Demand, Meter, Meters};
use crate::request::info::RequestInfo;
use ahash::RandomState;
use arc_swap::ArcSwap;
use bareboat_api::kind::User;
use bareboat_api::{Str, Value};
use bareboat_flow::limits::{Limits, divide};
use bareboat_flow::{Classifier, LevelSpec, Request, Schema, defaults};
use http::HeaderValue;
use parking_lot::Mutex;
use prometheus::core::Collector;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// API priority and fairness of a server: which requests run, wait or are refused.
///
/// Flow schemas and priority levels come from [`FlowControl::set_schema`] and [`FlowControl::set_level`]. While there is
/// none of them, the defaults of Kubernetes apply. The schemas and levels `exempt` and `catch-all` are always there.
#[derive(Clone)]
pub struct FlowControl(Arc<Shared>);

bareboat_api::opaque_debug!(FlowControl);

pub(super) struct Shared {
    pub(super) table: ArcSwap<Table>,
    objects: Mutex<Objects>,
    /// All seats of the server.
    pub(super) total: AtomicU32,
    /// Whether seats are being lent.
    pub(super) adjusting: AtomicBool,
    /// The fraction of its target that every level gets, as bits of a float.
    pub(super) fraction: AtomicU64,
    clock: Clock,
    hasher: RandomState,
}

/// The stored objects.
#[derive(Default)]
struct Objects {
    schemas: BTreeMap<Str, Arc<Schema>>,
    levels: BTreeMap<Str, LevelSpec>,
}

/// All schemas and levels at one moment.
pub(super) struct Table {
    classifier: Classifier,
    /// In the order of the classifier.
    pub(super) classes: Vec<Arc<Class>>,
    catch_all: Arc<Class>,
    pub(super) levels: Vec<LevelSlot>,
}

pub(super) struct LevelSlot {
    pub(super) spec: LevelSpec,
    pub(super) limits: Limits,
    pub(super) level: Arc<Level>,
    pub(super) demand: Arc<Demand>,
}

/// A flow schema with its priority level: what a request is assigned to.
pub(crate) struct Class {
    pub(super) schema: Arc<Schema>,
    pub(super) level: Arc<Level>,
    pub(super) meter: Arc<Meter>,
    /// The uids of schema and level, as headers; `None` for built-in ones that are not stored.
    uids: Option<(HeaderValue, HeaderValue)>,
    seed: u64,
    hasher: RandomState,
    shared: Weak<Shared>,
}

impl Class {
    /// The uids of the schema and of the level.
    pub(crate) fn uids(&self) -> Option<&(HeaderValue, HeaderValue)> {
        self.uids.as_ref()
    }

    /// Returns the hash of a request's flow.
    pub(super) fn flow(&self, user: &User, request: &Request<'_>) -> u64 {
        let text = self.schema.distinguisher.of(user, request);
        self.hasher.hash_one((self.seed, text))
    }

    /// Starts lending seats, because a request waits.
    pub(super) fn someone_waits(&self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        if !shared.adjusting.swap(true, Ordering::AcqRel) {
            tokio::spawn(adjust::run(self.shared.clone()));
        }
    }
}

impl Default for FlowControl {
    fn default() -> FlowControl {
        FlowControl::new()
    }
}

impl FlowControl {
    /// The defaults of Kubernetes.
    pub fn new() -> FlowControl {
        let (clock, hasher) = (Clock::new(), RandomState::new());
        FlowControl(Arc::new_cyclic(|shared| {
            let total = 600;
            let plan = Plan::of(&Objects::default());
            let table = Table::new(plan, None, total, clock, &hasher, shared);
            Shared {
                table: ArcSwap::from_pointee(table),
                objects: Mutex::default(),
                total: AtomicU32::new(total),
                adjusting: AtomicBool::new(false),
                fraction: AtomicU64::new(0),
                clock,
                hasher,
            }
        }))
    }

    /// Sets how many seats all levels have together.
    pub(crate) fn set_total(&self, total: usize) {
        let total = u32::try_from(total).unwrap_or(u32::MAX).max(1);
        let objects = self.0.objects.lock();
        self.0.total.store(total, Ordering::Relaxed);
        self.compile(&objects);
    }

    /// Adds or replaces a FlowSchema; `None` removes it.
    pub fn set_schema(&self, name: &str, schema: Option<&Value>) {
        let mut objects = self.0.objects.lock();
        let schema = schema.map(|value| Arc::new(Schema::from_value(value)));
        if objects.schemas.get(name) == schema.as_ref() {
            return;
        }
        match schema {
            Some(schema) => drop(objects.schemas.insert(Str::new(name), schema)),
            None => drop(objects.schemas.remove(name)),
        }
        self.compile(&objects);
    }

    /// Adds or replaces a PriorityLevelConfiguration; `None` removes it.
    pub fn set_level(&self, name: &str, level: Option<&Value>) {
        let mut objects = self.0.objects.lock();
        let level = level.map(LevelSpec::from_value);
        if objects.levels.get(name) == level.as_ref() {
            return;
        }
        match level {
            Some(level) => drop(objects.levels.insert(Str::new(name), level)),
            None => drop(objects.levels.remove(name)),
        }
        self.compile(&objects);
    }

    /// Replaces all schemas.
    pub fn reset_schemas<'a>(&self, schemas: impl IntoIterator<Item = &'a Value>) {
        let schemas = schemas
            .into_iter()
            .map(|value| Arc::new(Schema::from_value(value)));
        let mut objects = self.0.objects.lock();
        objects.schemas = schemas
            .map(|schema| (schema.name.clone(), schema))
            .collect();
        self.compile(&objects);
    }

    /// Replaces all priority levels.
    pub fn reset_levels<'a>(&self, levels: impl IntoIterator<Item = &'a Value>) {
        let levels = levels.into_iter().map(LevelSpec::from_value);
        let mut objects = self.0.objects.lock();
        objects.levels = levels.map(|level| (level.name.clone(), level)).collect();
        self.compile(&objects);
    }

    fn compile(&self, objects: &Objects) {
        let shared = &self.0;
        let total = shared.total.load(Ordering::Relaxed);
        let old = shared.table.load();
        let weak = Arc::downgrade(shared);
        let plan = Plan::of(objects);
        let table = Table::new(plan, Some(&old), total, shared.clock, &shared.hasher, &weak);
        shared.table.store(Arc::new(table));
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// Returns the schema and level of a request.
    pub(crate) fn classify(&self, user: &User, info: &RequestInfo) -> Arc<Class> {
        let table = self.0.table.load();
        match table.classifier.classify(user, &request(info)) {
            Some(place) => table.classes[place].clone(),
            None => table.catch_all.clone(),
        }
    }

    /// The metrics of levels and schemas.
    pub(super) fn collector(&self) -> Box<dyn Collector> {
        Box::new(Meters::of(self))
    }

    /// How many seats reads and writes hold.
    pub(super) fn in_flight(&self) -> (usize, usize) {
        let table = self.0.table.load();
        let count = |writes: bool| {
            let classes = table.classes.iter();
            classes.map(|class| class.meter.executing(writes).0).sum()
        };
        (count(false), count(true))
    }
}

/// Returns a request as flow schemas see it.
pub(super) fn request(info: &RequestInfo) -> Request<'_> {
    match info.is_resource {
        true => Request::Resource {
            verb: &info.verb,
            group: &info.group,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
        },
        false => Request::Url {
            verb: &info.verb,
            path: &info.path,
        },
    }
}

/// The effective schemas and levels, before they are compiled.
struct Plan {
    schemas: Vec<Arc<Schema>>,
    levels: Vec<LevelSpec>,
}

impl Plan {
    /// Computes them from the stored objects. Mandatory objects have their fixed spec whatever is stored; while nothing
    /// is stored, the defaults apply.
    fn of(objects: &Objects) -> Plan {
        let mut levels = objects.levels.clone();
        for default in defaults::levels().iter().map(LevelSpec::from_value) {
            match objects.levels.get(&default.name) {
                Some(stored) if defaults::is_mandatory(&default.name) => {
                    let forced = LevelSpec {
                        uid: stored.uid.clone(),
                        shares: if default.exempt {
                            stored.shares
                        } else {
                            default.shares
                        },
                        ..default
                    };
                    levels.insert(forced.name.clone(), forced);
                }
                None if objects.levels.is_empty() || defaults::is_mandatory(&default.name) => {
                    levels.insert(default.name.clone(), default);
                }
                _ => {}
            }
        }
        let mut schemas = objects.schemas.clone();
        for mut default in defaults::schemas().iter().map(Schema::from_value) {
            let stored = objects.schemas.get(&default.name);
            let mandatory = defaults::is_mandatory(&default.name);
            if mandatory || (stored.is_none() && objects.schemas.is_empty()) {
                default.uid = stored.map(|stored| stored.uid.clone()).unwrap_or_default();
                schemas.insert(default.name.clone(), Arc::new(default));
            }
        }
        Plan {
            // A schema without its level matches nothing.
            schemas: schemas
                .into_values()
                .filter(|schema| levels.contains_key(&schema.level))
                .collect(),
            levels: levels.into_values().collect(),
        }
    }
}

impl Table {
    fn new(
        plan: Plan,
        old: Option<&Table>,
        total: u32,
        clock: Clock,
        hasher: &RandomState,
        shared: &Weak<Shared>,
    ) -> Table {
        let limits = divide(total, &plan.levels);
        let mut known: HashMap<&str, &LevelSlot> = HashMap::new();
        for slot in old.iter().flat_map(|table| &table.levels) {
            known.insert(&slot.spec.name, slot);
        }
        let levels: Vec<LevelSlot> = plan
            .levels
            .into_iter()
            .zip(limits)
            .map(|(spec, limits)| {
                let kept = known.get(spec.name.as_str());
                let kept = kept.filter(|slot| slot.spec.exempt == spec.exempt);
                let changed = |slot: &&&LevelSlot| slot.spec != spec || slot.limits != limits;
                if let Some(slot) = kept.filter(changed) {
                    slot.level.configure(&spec, limits, total);
                }
                LevelSlot {
                    level: match kept {
                        Some(slot) => slot.level.clone(),
                        None => Arc::new(Level::new(&spec, limits, total, clock)),
                    },
                    demand: kept.map(|slot| slot.demand.clone()).unwrap_or_default(),
                    spec,
                    limits,
                }
            })
            .collect();
        let by_name: HashMap<&str, &LevelSlot> = levels
            .iter()
            .map(|slot| (slot.spec.name.as_str(), slot))
            .collect();
        let before: HashMap<(&str, &str), &Arc<Class>> = old
            .iter()
            .flat_map(|table| &table.classes)
            .map(|class| {
                (
                    (class.schema.name.as_str(), class.level.name.as_str()),
                    class,
                )
            })
            .collect();
        let classifier = Classifier::new(plan.schemas);
        let class = |schema: &Arc<Schema>| {
            let slot = by_name.get(schema.level.as_str())?;
            let same = before.get(&(schema.name.as_str(), schema.level.as_str()));
            let header = |uid: &Str| match uid.is_empty() {
                true => None,
                false => HeaderValue::from_str(uid).ok(),
            };
            Some(Arc::new(Class {
                schema: schema.clone(),
                level: slot.level.clone(),
                meter: same.map(|class| class.meter.clone()).unwrap_or_default(),
                uids: header(&schema.uid).zip(header(&slot.spec.uid)),
                seed: hasher.hash_one(&schema.name),
                hasher: hasher.clone(),
                shared: shared.clone(),
            }))
        };
        let classes: Vec<Arc<Class>> = classifier.schemas().iter().filter_map(class).collect();
        let catch_all = classes
            .iter()
            .find(|class| class.schema.name == "catch-all");
        let catch_all = catch_all
            .expect("the schema catch-all is always there")
            .clone();
        Table {
            classifier,
            classes,
            catch_all,
            levels,
        }
    }
}
