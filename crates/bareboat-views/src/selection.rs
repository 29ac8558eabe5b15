//! Which members a request reads, and what it is told about those that are not fresh.

use crate::members::{Fleet, Member};
use crate::rights::{Rights, member_info};
use crate::search::Search;
use crate::times;
use bareboat_api::Status;
use std::sync::Arc;

/// How many members that are not fresh are named.
const NAMED: usize = 5;

/// The answer for a member that does not exist.
pub(crate) fn no_such_cluster() -> Status {
    Status::bad_request("the server could not find the requested cluster")
}

/// Returns whether a search is about a member, by its name and labels.
pub(crate) fn is_asked_for(search: &Search, member: &Member) -> bool {
    let named = search.clusters.is_empty() || search.clusters.contains(&member.name);
    let label = |key: &str| member.labels.get(key).map(String::as_str);
    named
        && search
            .cluster_selector
            .as_ref()
            .is_none_or(|selector| selector.matches(label))
}

/// Returns the members that a search over all of them reads, and warns about those it leaves out. Members that are asked for by
/// name must be readable.
pub(crate) async fn members(
    fleet: &Fleet,
    search: &Search,
    rights: &Rights,
    warn: &(dyn Fn(String) + Send + Sync),
) -> Result<Vec<Arc<Member>>, Status> {
    for name in &search.clusters {
        if !fleet.members.contains_key(name) {
            warn(format!("there is no cluster {name:?}"));
        }
    }
    let wanted = fleet.members.values();
    let wanted = wanted.filter(|member| is_asked_for(search, member));
    let (mut readable, mut hidden, mut refusal) = (Vec::new(), 0_usize, None);
    for member in wanted {
        match rights.check(&member_info(&member.name)).await {
            Ok(()) => readable.push(member.clone()),
            Err(status) if !search.clusters.is_empty() && !search.visible => return Err(status),
            Err(status) => {
                hidden += 1;
                refusal = Some(status);
            }
        }
    }
    match (readable.is_empty(), refusal) {
        (true, Some(status)) if !search.visible => return Err(status),
        _ => {}
    }
    if hidden > 0 && !search.visible {
        warn(format!(
            "{hidden} clusters are left out, because you may not read them"
        ));
    }
    Ok(readable)
}

/// Refuses a search that must not be older than some time.
pub(crate) fn check_staleness(
    members: &[Arc<Member>],
    search: &Search,
    now: i64,
) -> Result<(), Status> {
    let Some(most) = search.max_staleness else {
        return Ok(());
    };
    let most = i64::try_from(most.as_millis()).unwrap_or(i64::MAX);
    let old = |member: &&Arc<Member>| {
        !member.in_sync && member.heard.is_none_or(|heard| now - heard > most)
    };
    let stale: Vec<&str> = members
        .iter()
        .filter(old)
        .map(|member| member.name.as_str())
        .collect();
    match stale.is_empty() {
        true => Ok(()),
        false => Err(Status::unavailable(format!(
            "the answer could be older than maxStaleness allows: {}",
            stale.join(", ")
        ))
        .retry_after(1)),
    }
}

/// Warns about members that are not fresh, and returns the value of the header `Fleet-Clusters`.
pub(crate) fn freshness(
    members: &[Arc<Member>],
    single: bool,
    now: i64,
    warn: &(dyn Fn(String) + Send + Sync),
) -> String {
    let stale: Vec<&Arc<Member>> = members.iter().filter(|member| !member.in_sync).collect();
    let fresh = members.len() - stale.len();
    if single {
        for member in members.iter().filter(|member| !member.ready) {
            warn(format!(
                "{} is not ready and the resources obtained may be inaccurate, reason: {}",
                member.name, member.reason
            ));
        }
    } else {
        for member in stale.iter().take(NAMED) {
            warn(match member.heard {
                Some(heard) => {
                    format!(
                        "{} was last heard {} ago",
                        member.name,
                        times::ago(now - heard)
                    )
                }
                None => format!("{} was never heard", member.name),
            });
        }
        if stale.len() > NAMED {
            warn(format!(
                "{} more clusters are not up to date",
                stale.len() - NAMED
            ));
        }
    }
    format!("total={} fresh={fresh}", members.len())
}
