//! The shelf.

use crate::objects::{Fleet, KINDS, member, name, namespace, object};
use crate::{Result, median, memory, report, timed};
use bareboat_api::labels::{Operator, Requirement};
use bareboat_shelf::{
    Batch, Change, Column, Draft, KindId, KindInfo, Path, Predicate, Progress, Query, Settings,
    Shelf, SortColumn, Term, parse_field_selector,
};
use std::path;

pub(crate) fn fill(directory: &path::Path, fleet: &Fleet) -> Result<()> {
    let shelf = Shelf::open(directory.join("fleet.db"), Settings::default())?;
    let mut kinds: Vec<KindId> = Vec::new();
    for (group, _, resource, kind) in KINDS {
        kinds.push(shelf.add_kind(&KindInfo {
            group: group.to_owned(),
            resource: resource.to_owned(),
            kind: kind.to_owned(),
            namespaced: true,
        })?);
    }
    shelf.declare(kinds[0], &[Path::parse("spec.nodeName")?], 0)?;
    for cluster in 0..fleet.members {
        let name = member(cluster);
        let (id, _) = shelf.add_member(&name, "")?;
        for start in (0..fleet.objects).step_by(500) {
            let numbers = start..fleet.objects.min(start + 500);
            let mut batches: Vec<Batch> = kinds
                .iter()
                .map(|kind| Batch {
                    member: id,
                    kind: *kind,
                    changes: Vec::new(),
                    progress: Some(Progress {
                        version: "v1".to_owned(),
                        resource_version: numbers.end.to_string(),
                    }),
                })
                .collect();
            for number in numbers {
                let draft = Draft::new(&name, object(cluster, number))?;
                let change = Change::Put(Box::new(draft));
                batches[number % KINDS.len()].changes.push(change);
            }
            shelf.apply(batches, 1)?;
        }
    }
    shelf.close()?;
    Ok(())
}

fn label(key: &str, value: &str) -> Result<Predicate> {
    let requirement = Requirement::new(key, Operator::Equals, vec![value.into()])?;
    Ok(Predicate::Term(Term::Label(requirement)))
}

fn field(text: &str) -> Result<Predicate> {
    let parsed = parse_field_selector(text)?;
    let terms = parsed
        .into_iter()
        .map(|one| Predicate::Term(Term::Field(one)));
    Ok(Predicate::All(terms.collect()))
}

pub(crate) fn ask(directory: &path::Path) -> Result<()> {
    let open = || {
        Ok(Shelf::open(
            directory.join("fleet.db"),
            Settings::default(),
        )?)
    };
    let (took, shelf) = timed(open)?;
    report("shelf: open again", took, &format!("{} MB", memory()));
    let known = shelf.directory();
    let pods = known.kind("", "pods").ok_or("there are no pods")?;
    let deployments = known
        .kind("apps", "deployments")
        .ok_or("there are no deployments")?;
    let members = known.members().count();
    let page = |kind: KindId, filter: Predicate, most: usize| -> Result<usize> {
        let query = Query {
            kinds: vec![kind],
            filter,
            ..Query::default()
        };
        Ok(shelf.page(&query, most)?.items.len())
    };
    median("shelf: get by name", 1000, |round| {
        let number = round % 900 * 10;
        let cluster = known
            .member(&member(round % members))
            .ok_or("no such member")?;
        let found = shelf.get(cluster, pods, &namespace(number), &name(number))?;
        Ok(usize::from(found.is_some()))
    })?;
    median("shelf: page of 500 over all members", 50, |_| {
        page(pods, Predicate::default(), 500)
    })?;
    median("shelf: label without index, all Pods", 5, |round| {
        page(
            pods,
            label("tier", ["front", "middle", "back"][round % 3])?,
            100_000,
        )
    })?;
    median("shelf: rare label without index, all Pods", 5, |round| {
        page(pods, label("team", &format!("team-{round}"))?, 500)
    })?;
    for round in 0..12 {
        page(deployments, label("team", &format!("team-{round}"))?, 1)?;
    }
    let (took, ()) = timed(|| Ok(shelf.upkeep(1)?))?;
    report(
        "shelf: index on a label is made",
        took,
        "after it was asked for often",
    );
    median("shelf: label with index", 50, |round| {
        page(
            deployments,
            label("team", &format!("team-{}", round * 37 % 9973))?,
            500,
        )
    })?;
    median("shelf: declared field", 50, |round| {
        page(pods, field(&format!("spec.nodeName=node-{round}"))?, 500)
    })?;
    median("shelf: field without index, all Pods", 5, |_| {
        page(pods, field("spec.containers[].image=nothing")?, 500)
    })?;
    median("shelf: count of a kind", 5, |_| {
        let query = Query {
            kinds: vec![pods],
            ..Query::default()
        };
        Ok(usize::try_from(shelf.count(&query)?)?)
    })?;
    median("shelf: summary of a kind by cluster", 5, |_| {
        let query = Query {
            kinds: vec![pods],
            ..Query::default()
        };
        let by = [SortColumn::Column(Column::Cluster)];
        Ok(shelf.summary(&query, &by)?.groups.len())
    })?;
    println!("shelf: {} MB of memory at the end", memory());
    shelf.close()?;
    Ok(())
}
