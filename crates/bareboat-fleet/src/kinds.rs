//! The kinds of a fleet: PediaCluster, ClusterSyncResources and ClusterProfile, with the rules that their schemas cannot say.

mod rules;

use bareboat_api::kind::{Kind, Strategy};
use bareboat_server::kinds::kind_of_definition;
use rules::ClusterRules;
use std::sync::Arc;

/// The collection of members.
pub(crate) const CLUSTERS: &str = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters";
/// The store resource of members.
pub(crate) const CLUSTER_STORE: &str = "cluster.clusterpedia.io/pediaclusters";
/// The store resource of lists of types.
pub(crate) const TYPES_STORE: &str = "cluster.clusterpedia.io/clustersyncresources";
/// The store resource of Secrets.
pub(crate) const SECRET_STORE: &str = "core/secrets";
/// The finalizer of members: their rows are removed before they are.
pub(crate) const FINALIZER: &str = "clusterpedia.io/cluster-synchro-controller";
/// The annotation with settings of the sync.
pub(crate) const SYNC: &str = "fleet.bareboat.dev/sync";
/// The annotation of members that administrators of this server may use as administrators.
pub(crate) const MASTERS: &str = "fleet.bareboat.dev/masters";
/// The annotation of members that decide themselves who reads their objects, if it is `Member`; else it is `Hub`.
pub(crate) const AUTHORIZATION: &str = "fleet.bareboat.dev/authorization";
/// The annotation with the Secret whose token acts as the users of forwarded requests.
pub(crate) const IMPERSONATOR: &str = "fleet.bareboat.dev/impersonator";
/// The annotation of members whose certificate is not verified.
pub(crate) const INSECURE: &str = "fleet.bareboat.dev/insecure";

const DEFINITIONS: [&str; 3] = [
    include_str!("kinds/pediaclusters.yaml"),
    include_str!("kinds/clustersyncresources.yaml"),
    include_str!("kinds/clusterprofiles.yaml"),
];

/// Returns the kinds of a fleet.
pub fn kinds() -> Vec<Kind> {
    DEFINITIONS.iter().map(|text| kind(text)).collect()
}

fn kind(text: &str) -> Kind {
    let definition = bareboat_wire::yaml::parse(text.as_bytes())
        .expect("the definitions of this crate are YAML")
        .value;
    let mut kind =
        kind_of_definition(&definition).expect("the definitions of this crate are valid");
    if kind.store == CLUSTER_STORE {
        let inner: Arc<dyn Strategy> = kind.strategy;
        kind.strategy = Arc::new(ClusterRules { inner });
    }
    kind
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_definitions_are_valid() {
        let kinds = super::kinds();
        let stores: Vec<&str> = kinds.iter().map(|kind| kind.store.as_str()).collect();
        assert_eq!(
            stores,
            [
                super::CLUSTER_STORE,
                super::TYPES_STORE,
                "multicluster.x-k8s.io/clusterprofiles"
            ]
        );
        let columns: Vec<(&str, i32)> = kinds[0].versions[0]
            .columns
            .iter()
            .map(|column| (column.name.as_str(), column.priority))
            .collect();
        assert_eq!(
            columns,
            [
                ("Ready", 0),
                ("Version", 0),
                ("APIServer", 0),
                ("Validated", 10),
                ("SynchroRunning", 10),
                ("ClusterHealthy", 10),
                ("ShardingName", 10)
            ]
        );
    }
}
