//! Updates `storedVersions` after a migration.

use super::{Api, JSON, MigrateError, MigrationTarget, request};
use bareboat_api::value;
use http::Method;

/// How often the update is tried if the definition changes at the same time.
const TRIES: u32 = 10;

/// Trims `status.storedVersions` to the storage version, if it is still the one that was migrated to.
pub(super) async fn stored_versions(
    api: &dyn Api,
    migrated: &MigrationTarget,
) -> Result<(), MigrateError> {
    let path = format!("{}/status", migrated.path);
    let mut conflict = None;
    for _ in 0..TRIES {
        let crd = api
            .send(Method::GET, &migrated.path, JSON, None)
            .await
            .map_err(request("cannot read the definition"))?;
        let now = MigrationTarget::of(&crd, migrated.path.clone());
        // If the versions changed, objects may have been written in another version.
        let same = now.uid == migrated.uid
            && now.storage == migrated.storage
            && now.stored == migrated.stored;
        if !same || !now.in_use {
            return Err(MigrateError::Changed);
        }
        let patch = value!({
            "metadata": {"uid": (now.uid.as_str()), "resourceVersion": (now.resource_version.as_str())},
            "status": {"storedVersions": [(now.storage.as_str())]},
        });
        match api.send(Method::PATCH, &path, JSON, Some(&patch)).await {
            Ok(_) => return Ok(()),
            Err(status) if status.code == 409 => conflict = Some(status),
            Err(status) => return Err(request("cannot write storedVersions")(status)),
        }
    }
    match conflict {
        Some(status) => Err(request("cannot write storedVersions")(status)),
        None => Err(MigrateError::Changed),
    }
}
