//! Fills in names: `@{Kind}` in a template is replaced by the kind.

use crate::names::KindNames;
use crate::project::Project;

/// The names of a template and their values.
#[derive(Clone, Debug)]
pub(crate) struct Names(Vec<(&'static str, String)>);

impl Names {
    /// The names of a project and one of its kinds.
    pub(crate) fn new(project: &Project, kind: &KindNames) -> Names {
        let version = kind.versions.first().cloned().unwrap_or_default();
        let (group, domain) = match project.group.split_once('.') {
            Some((first, rest)) if rest.contains('.') => (first.to_owned(), rest.to_owned()),
            _ => (String::new(), project.group.clone()),
        };
        Names(vec![
            ("project", project.name.clone()),
            ("crate", project.name.replace('-', "_")),
            ("group", project.group.clone()),
            ("first-label", group),
            ("domain", domain),
            ("Kind", kind.kind.clone()),
            ("kind", kind.singular()),
            ("plural", kind.plural.clone()),
            ("version", version),
            ("bareboat", project.library.manifest("bareboat")),
            ("bareboat-git", project.library.git().to_owned()),
            (
                "bareboat-testing",
                project.library.manifest("bareboat-testing"),
            ),
        ])
    }

    /// Sets one more name, or another value.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Names {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.to_owned()));
        self
    }

    /// Fills a template in. Unknown names stay, so that a test finds them.
    pub(crate) fn fill(&self, template: &str) -> String {
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("@{") {
            out.push_str(before);
            let value = after.split_once('}').and_then(|(name, end)| {
                let known = self.0.iter().find(|(known, _)| *known == name);
                known.map(|(_, value)| (value, end))
            });
            match value {
                Some((value, end)) => {
                    out.push_str(value);
                    rest = end;
                }
                None => {
                    out.push_str("@{");
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// A file of a template: where it goes, and its text.
pub(crate) type Template = (&'static str, &'static str);
