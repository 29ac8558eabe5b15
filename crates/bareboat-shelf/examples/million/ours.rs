//! The shelf.

use crate::Result;
use crate::objects::{Fleet, KINDS, SIDE_IMAGE, member, name, namespace, node, object, tier};
use crate::questions::{Engine, Question};
use bareboat_api::labels::{Operator, Requirement};
use bareboat_shelf::{
    Batch, Bounds, Change, Column, Draft, KindId, KindInfo, Owner, OwnerSearch, Path, Predicate,
    Progress, Query, Settings, Shelf, SortColumn, Term, parse_field_selector,
};
use std::path;
use std::time::Duration;

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
        // As a list of each type: pages of 500, and its version with the last one.
        for (index, kind) in kinds.iter().enumerate() {
            let numbers: Vec<usize> = (index..fleet.objects).step_by(KINDS.len()).collect();
            let pages = numbers.chunks(500).count();
            for (page, numbers) in numbers.chunks(500).enumerate() {
                let mut changes = Vec::with_capacity(numbers.len());
                for number in numbers {
                    let draft = Draft::new(&name, object(cluster, *number))?;
                    changes.push(Change::Put(Box::new(draft)));
                }
                let progress = (page + 1 == pages).then(|| Progress {
                    version: "v1".to_owned(),
                    resource_version: fleet.objects.to_string(),
                });
                let batch = Batch {
                    member: id,
                    kind: *kind,
                    changes,
                    progress,
                };
                shelf.apply(&[batch], 1)?;
            }
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

/// The shelf, open.
pub(crate) struct Ours {
    shelf: Shelf,
    pods: KindId,
    deployments: KindId,
}

impl Ours {
    pub(crate) fn open(directory: &path::Path) -> Result<Ours> {
        let shelf = Shelf::open(directory.join("fleet.db"), Settings::default())?;
        let known = shelf.directory();
        let kind = |group: &str, resource: &str| {
            known.kind(group, resource).ok_or("the shelf is not filled")
        };
        let (pods, deployments) = (kind("", "pods")?, kind("apps", "deployments")?);
        Ok(Ours {
            shelf,
            pods,
            deployments,
        })
    }

    pub(crate) fn members(&self) -> usize {
        self.shelf.directory().members().count()
    }

    pub(crate) fn close(&self) -> Result<()> {
        Ok(self.shelf.close()?)
    }

    fn pods(&self, scope: Predicate, filter: Predicate) -> Query {
        Query {
            kinds: vec![self.pods],
            scope,
            filter,
            // One of the questions reads the bodies of all Pods, 300 MB, which is more than a search may read by default.
            bounds: Bounds {
                time: Duration::from_secs(60),
                bytes: 4 << 30,
            },
            ..Query::default()
        }
    }

    fn page(&self, filter: Predicate) -> Result<Option<usize>> {
        let query = self.pods(Predicate::default(), filter);
        Ok(Some(self.shelf.page(&query, 500)?.items.len()))
    }

    fn everything(&self) -> Query {
        let directory = self.shelf.directory();
        Query {
            kinds: directory.kinds().map(|(id, _)| id).collect(),
            ..self.pods(Predicate::default(), Predicate::default())
        }
    }

    fn owned(&self, clusters: std::ops::Range<usize>, round: usize) -> Result<Option<usize>> {
        let known = self.shelf.directory();
        let number = round % 90 * 100;
        let members = clusters.filter_map(|cluster| known.member(&member(cluster)));
        let search = OwnerSearch {
            owner: Owner::Name {
                name: name(number + 5),
                kind: Some(self.deployments),
            },
            seniority: 1,
            members: members.collect(),
            namespaces: Vec::new(),
        };
        let found = self.shelf.owners(&search)?;
        let query = self.pods(
            Predicate::one_of(Column::OwnerUid, found),
            Predicate::default(),
        );
        Ok(Some(self.shelf.page(&query, 5000)?.items.len()))
    }
}

impl Engine for Ours {
    fn prepare(&mut self, question: Question) -> Result<()> {
        if question != Question::IndexedLabel {
            return Ok(());
        }
        for round in 0..12 {
            self.page(label("team", &format!("team-{round}"))?)?;
        }
        let begun = std::time::Instant::now();
        self.shelf.upkeep(1)?;
        println!(
            "shelf: the index on a label was made in {:.1} ms",
            crate::millis(begun.elapsed())
        );
        Ok(())
    }

    fn ask(&mut self, question: Question, round: usize, members: usize) -> Result<Option<usize>> {
        let all = Predicate::default;
        match question {
            Question::Get => {
                let number = round % 900 * 10;
                let known = self.shelf.directory();
                let cluster = known.member(&member(round % members));
                let cluster = cluster.ok_or("there is no such member")?;
                let place = (namespace(number), name(number));
                let found = self.shelf.get(cluster, self.pods, &place.0, &place.1)?;
                Ok(Some(usize::from(found.is_some())))
            }
            Question::Page => self.page(all()),
            Question::IndexedLabel | Question::RareLabel => {
                self.page(label("team", &format!("team-{}", round * 37 % 1000))?)
            }
            Question::FrequentLabel => self.page(label("tier", tier(round))?),
            Question::DeclaredField => {
                let node = node(round % members, round * 1000 % 9000);
                self.page(field(&format!("spec.nodeName={node}"))?)
            }
            Question::Field => self.page(field("spec.containers[].image=nothing")?),
            Question::FieldInEveryBody => {
                self.page(field(&format!("spec.containers[].args={SIDE_IMAGE}"))?)
            }
            Question::CountPods => {
                let count = self.shelf.count(&self.pods(all(), all()))?;
                Ok(Some(usize::try_from(count)?))
            }
            Question::CountAll => {
                let count = self.shelf.count(&self.everything())?;
                Ok(Some(usize::try_from(count)?))
            }
            Question::Summary => {
                let by = [SortColumn::Column(Column::Cluster)];
                let summary = self.shelf.summary(&self.pods(all(), all()), &by)?;
                Ok(Some(summary.groups.len()))
            }
            Question::SummaryAll => {
                let by = [SortColumn::Column(Column::Cluster)];
                let summary = self.shelf.summary(&self.everything(), &by)?;
                Ok(Some(summary.groups.len()))
            }
            Question::OwnerInOne => {
                let cluster = round % members;
                self.owned(cluster..cluster + 1, round)
            }
            Question::OwnerInAll => self.owned(0..members, round),
        }
    }
}
