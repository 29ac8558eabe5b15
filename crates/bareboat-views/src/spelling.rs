//! The two spellings of search parameters: query parameters, and requirements in the label selector.
//!
//! Requirements whose keys contain `clusterpedia.io` are taken out of the selector. Their values keep the order in which they
//! were written, which `orderby` needs.

use bareboat_api::Status;
use bareboat_api::labels::Selector;
use bareboat_server::request::query::Query;
use std::collections::HashMap;

/// The prefix of keys in label selectors.
const PREFIX: &str = "search.clusterpedia.io/";
/// The key for parts of names.
const FUZZY: &str = "internalstorage.clusterpedia.io/fuzzy-name";

/// Keys of label selectors and the query parameters that mean the same.
const KEYS: [(&str, &str); 16] = [
    ("clusters", "clusters"),
    ("namespaces", "namespaces"),
    ("names", "names"),
    ("since", "since"),
    ("before", "before"),
    ("owner-uid", "ownerUID"),
    ("owner-name", "ownerName"),
    ("owner-gr", "ownerGR"),
    ("owner-seniority", "ownerSeniority"),
    ("orderby", "orderby"),
    ("limit", "limit"),
    ("size", "size"),
    ("offset", "offset"),
    ("with-continue", "withContinue"),
    ("with-remaining-count", "withRemainingCount"),
    ("inject-events", "injectEvents"),
];

/// Other query parameters that views or Kubernetes know.
const OTHERS: [&str; 35] = [
    "labelSelector",
    "fieldSelector",
    "resourceVersion",
    "resourceVersionMatch",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "timeoutSeconds",
    "timeout",
    "pretty",
    "includeObject",
    "continue",
    "onlyMetadata",
    "whereSQL",
    "whereSQLStatement",
    "whereSQLParam",
    "whereSQLJSONParams",
    "filter",
    "sort",
    "page",
    "pageSize",
    "pagesize",
    "summary",
    "clusterSelector",
    "visible",
    "maxStaleness",
    "fuzzyName",
    "groups",
    "resources",
    "fieldManager",
    "fieldValidation",
    "dryRun",
    "gracePeriodSeconds",
    "propagationPolicy",
    "force",
];

/// The parameters of a search, whatever their spelling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spelled {
    /// Values by the name of the query parameter.
    values: HashMap<&'static str, Vec<String>>,
    /// Parts that names contain.
    pub(crate) fuzzy: Vec<String>,
    /// Whether the member itself is asked.
    pub(crate) forward: bool,
    /// The rest of the label selector.
    pub(crate) labels: Option<Selector>,
    /// The rest of the label selector as it was written.
    pub(crate) label_text: String,
    /// Parameters and keys that mean nothing here.
    pub(crate) unknown: Vec<String>,
}

impl Spelled {
    /// Reads both spellings. A query parameter wins over a requirement.
    pub(crate) fn read(query: &Query) -> Result<Spelled, Status> {
        let mut spelled = Spelled::default();
        let mut rest = Vec::new();
        for part in split(query.get("labelSelector").unwrap_or("")) {
            let (key, values) = requirement(part);
            if !key.contains("clusterpedia.io") {
                rest.push(part);
                continue;
            }
            let known = key.strip_prefix(PREFIX);
            let known = known.and_then(|key| KEYS.iter().find(|(label, _)| *label == key));
            match known {
                Some((_, name)) => {
                    spelled.values.entry(name).or_default().extend(values);
                }
                None if key == FUZZY => spelled.fuzzy.extend(values),
                None if key == "search.clusterpedia.io/forward" => {
                    spelled.forward = values.iter().all(|value| value != "false");
                }
                None => spelled.unknown.push(key.to_owned()),
            }
        }
        spelled.label_text = rest.join(",");
        if !rest.is_empty() {
            let selector = Selector::parse(&spelled.label_text);
            let selector = selector.map_err(|error| Status::bad_request(error.to_string()))?;
            spelled.labels = Some(selector);
        }
        for (name, _) in query.iter() {
            let known = KEYS.iter().find(|(_, parameter)| *parameter == name);
            match known {
                Some((_, name)) => {
                    let given = query.all(name).filter(|value| !value.is_empty());
                    let given: Vec<String> = given.map(str::to_owned).collect();
                    if !given.is_empty() {
                        spelled.values.insert(name, given);
                    }
                }
                None if OTHERS.contains(&name) => {}
                None => {
                    if !spelled.unknown.iter().any(|known| known == name) {
                        spelled.unknown.push(name.to_owned());
                    }
                }
            }
        }
        spelled
            .fuzzy
            .extend(query.all("fuzzyName").map(str::to_owned));
        Ok(spelled)
    }

    /// Returns whether there is more than members, namespaces and the size of pages.
    pub(crate) fn has_conditions(&self) -> bool {
        let plain = ["clusters", "namespaces", "limit", "size", "withContinue"];
        self.values.keys().any(|name| !plain.contains(name))
    }

    /// Returns the values of a parameter, split at commas.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let values = self.values.get(name).into_iter().flatten();
        let parts = values.flat_map(|value| value.split(','));
        let parts = parts.map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    }

    /// Returns the first value of a parameter.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let values = self.values.get(name)?;
        values.first().map(|value| value.trim())
    }

    /// Returns whether a parameter is set to something that is not false.
    pub(crate) fn is_set(&self, name: &str) -> Option<bool> {
        self.one(name)
            .map(bareboat_server::request::options::is_true)
    }
}

/// Splits a selector at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    let parts = parts.into_iter().map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns the key of a requirement, and its values in the order they are written.
fn requirement(part: &str) -> (&str, Vec<String>) {
    let part = part.trim_start_matches('!').trim();
    let end = part
        .find(|c: char| c.is_whitespace() || "=!<>(".contains(c))
        .unwrap_or(part.len());
    let (key, rest) = part.split_at(end);
    let rest = rest.trim();
    let listed = rest.split_once('(').and_then(|(word, list)| {
        let word = word.trim();
        matches!(word, "in" | "notin").then(|| list.trim_end_matches(')'))
    });
    let values = match listed {
        Some(list) => list,
        None => rest.trim_start_matches(['=', '!', '<', '>']),
    };
    let values = values.split(',').map(|value| value.trim().to_owned());
    (key, values.filter(|value| !value.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::Spelled;
    use bareboat_server::request::query::Query;

    fn read(query: &str) -> Spelled {
        let query = Query::parse(query).expect("the query is well formed");
        Spelled::read(&query).expect("the selector is well formed")
    }

    #[test]
    fn both_spellings_mean_the_same() {
        let label = read(
            "labelSelector=search.clusterpedia.io/clusters+in+(c2,c1),app=x,search.clusterpedia.io/limit=5",
        );
        assert_eq!(label.list("clusters"), ["c2", "c1"]);
        assert_eq!(label.one("limit"), Some("5"));
        assert_eq!(label.label_text, "app=x");
        assert_eq!(read("clusters=c2,c1").list("clusters"), ["c2", "c1"]);
        let both = read("clusters=c3&labelSelector=search.clusterpedia.io/clusters=c1");
        assert_eq!(both.list("clusters"), ["c3"]);
    }

    #[test]
    fn the_order_of_values_is_kept() {
        let label = read("labelSelector=search.clusterpedia.io/orderby+in+(namespace,+name_desc)");
        assert_eq!(label.list("orderby"), ["namespace", "name_desc"]);
    }

    #[test]
    fn unknown_names_are_found() {
        let spelled = read("namespace=a&labelSelector=search.clusterpedia.io/cluster=c1,a.b/c=d");
        assert_eq!(
            spelled.unknown,
            ["search.clusterpedia.io/cluster", "namespace"]
        );
        assert_eq!(spelled.label_text, "a.b/c=d");
    }
}
