//! Rules of epochs: only a declared fault begins one, and it ends every stream.

use super::{History, Rule, Type, Violation, violation};

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    if history.epochs.len() > history.declared_epochs {
        let detail = format!("{:?}", history.epochs);
        found.push(violation(Rule::Undeclared, detail));
    }
    for stream in &history.streams {
        let crossed = |revision: u64| {
            let mut epochs = history.epochs.iter();
            epochs.any(|epoch| stream.after < epoch.at && revision > epoch.at)
        };
        if let Some(event) = stream
            .events
            .iter()
            .find(|one| crossed(one.object.revision))
        {
            let detail = format!("a stream after {} has {event:?}", stream.after);
            found.push(violation(Rule::EpochEndsStreams, detail));
        }
        if stream.expired && history.epochs.is_empty() {
            let events = stream
                .events
                .iter()
                .filter(|one| one.kind != Type::Bookmark);
            let detail = format!("after {} and {} events", stream.after, events.count());
            found.push(violation(Rule::Expired, detail));
        }
    }
}
