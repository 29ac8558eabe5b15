//! Writing down that all objects are in the storage version.

use super::{Api, Definition, JSON, MigrateError, request};
use bareboat_api::value;
use http::Method;

/// How often a change by others is looked through.
const TRIES: u32 = 10;

/// Trims `status.storedVersions` to the storage version, if it is still the one that was migrated to.
pub(super) async fn stored_versions(
    api: &dyn Api,
    migrated: &Definition,
) -> Result<(), MigrateError> {
    let path = format!("{}/status", migrated.path);
    let mut conflict = None;
    for _ in 0..TRIES {
        let crd = api
            .send(Method::GET, &migrated.path, JSON, None)
            .await
            .map_err(request("the definition cannot be read"))?;
        let now = Definition::of(&crd, migrated.path.clone());
        // Objects may have been written in a version that came later, or that came and went.
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
            Err(status) => return Err(request("storedVersions cannot be written")(status)),
        }
    }
    match conflict {
        Some(status) => Err(request("storedVersions cannot be written")(status)),
        None => Err(MigrateError::Changed),
    }
}
