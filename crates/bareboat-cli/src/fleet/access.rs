//! How commands of the fleet reach the hub.

use crate::client::{Client, find_kubeconfig};
use anyhow::Result;
use std::path::PathBuf;

/// The collection of members.
pub(super) const CLUSTERS: &str = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters";
/// The path of all views.
pub(super) const VIEWS: &str = "/apis/clusterpedia.io/v1beta1/resources";

/// How to reach the server with the fleet.
#[derive(clap::Args, Debug)]
pub(crate) struct HubFlags {
    /// How to reach the server with the fleet [default: ./bareboat-data/admin.kubeconfig, else ~/.kube/config]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
}

impl HubFlags {
    /// The path of the kubeconfig.
    pub(super) fn path(&self) -> Result<PathBuf> {
        find_kubeconfig(self.kubeconfig.as_deref())
    }

    /// A client of the server.
    pub(super) fn client(&self) -> Result<Client> {
        Client::new(&self.path()?, self.context.as_deref(), None)
    }
}
