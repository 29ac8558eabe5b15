//! Controllers that run in the server process as clients of the server.

pub use bareboat_controllers::{
    CertificateSigning, Client, Controllers, DefaultRoles, FrontProxy, KubernetesService, Options,
    SecretTokenIssuer, UnknownController, UseHook, migration, read_answer, tokens,
};
