//! The parameters of a search, parsed and checked.

use crate::filter;
use crate::members::Fleet;
use crate::spelling::Spelled;
use crate::times;
use crate::types::Asked;
use bareboat_api::Status;
use bareboat_api::labels::Selector;
use bareboat_server::request::options::is_true;
use bareboat_server::request::query::Query as Parameters;
use bareboat_shelf::{
    Column, Comparison, Cursor, FieldOperator, Literal, Order, OwnerSearch, Predicate, SortColumn,
    Term, parse_field_selector, parse_where,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::time::Duration;

/// The most names in one list of a search.
const MOST_NAMES: usize = 10_000;

/// A search as the client asked for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// The members by name; empty for all.
    pub(crate) clusters: Vec<String>,
    /// The members by label.
    pub(crate) cluster_selector: Option<Selector>,
    /// The namespaces; empty for all.
    pub(crate) namespaces: Vec<String>,
    /// Conditions on what an object cannot change, apart from members and namespaces.
    pub(crate) scope: Predicate,
    /// All other conditions.
    pub(crate) filter: Predicate,
    pub(crate) owner: Option<OwnerAsked>,
    pub(crate) order: Order,
    /// The size of a page; 0 for everything.
    pub(crate) limit: usize,
    pub(crate) start: Start,
    /// Whether the number of objects after this page is wanted.
    pub(crate) counts: bool,
    pub(crate) injects_events: bool,
    pub(crate) only_metadata: bool,
    /// The columns to count by.
    pub(crate) summary: Vec<(String, SortColumn)>,
    /// Whether what the user may not see is left out.
    pub(crate) visible: bool,
    pub(crate) max_staleness: Option<Duration>,
    /// The label selector without keys of searches.
    pub(crate) label_text: String,
    /// Whether the label selector has keys of searches, apart from members and namespaces.
    pub(crate) has_keys: bool,
    /// Parameters that mean nothing.
    pub(crate) unknown: Vec<String>,
}

/// Where a page begins.
#[derive(Clone, Debug, Default)]
pub(crate) enum Start {
    /// At the first object.
    #[default]
    First,
    /// After so many objects.
    Offset(usize),
    /// After the last object of the page before.
    After(Cursor),
}

/// An owner, before its kind is looked up.
#[derive(Clone, Debug)]
pub(crate) struct OwnerAsked {
    pub(crate) uid: Option<String>,
    pub(crate) name: String,
    /// The resource and the group, such as `deployments` and `apps`.
    pub(crate) resource: Option<(String, String)>,
    pub(crate) seniority: usize,
}

/// Returns the namespaces that a request is about; the path wins.
pub(crate) fn namespaces(spelled: &Spelled, path: &str) -> Vec<String> {
    match path {
        "" => spelled.list("namespaces"),
        path => vec![path.to_owned()],
    }
}

impl Search {
    /// Reads the parameters of a request for a type, or for several; `namespace` is that of the path.
    pub(crate) fn parse(
        query: &Parameters,
        namespace: &str,
        fleet: &Fleet,
        asked: Option<&Asked>,
    ) -> Result<Search, Status> {
        let spelled = Spelled::read(query)?;
        let selector = |text: &str| {
            let parsed = Selector::parse(text);
            parsed.map_err(|error| Status::bad_request(format!("clusterSelector: {error}")))
        };
        let mut search = Search {
            clusters: few("clusters", spelled.list("clusters"))?,
            cluster_selector: query.given("clusterSelector").map(selector).transpose()?,
            namespaces: few("namespaces", namespaces(&spelled, namespace))?,
            owner: owner(&spelled)?,
            order: order(&spelled, query)?,
            counts: spelled.is_set("withRemainingCount").unwrap_or(false),
            injects_events: spelled.is_set("injectEvents").unwrap_or(false),
            only_metadata: query.get("onlyMetadata").is_some_and(is_true),
            visible: query.get("visible").is_some_and(is_true),
            summary: summary(query)?,
            ..Search::default()
        };
        if let Some(text) = query.given("maxStaleness") {
            search.max_staleness = Some(times::duration("maxStaleness", text)?);
        }
        search.paging(&spelled, query)?;
        search.conditions(&spelled, query, fleet, asked)?;
        if let Some(asked) = asked {
            search.rename(&|name| asked.stored_name(name));
        }
        search.has_keys = !spelled.fuzzy.is_empty() || spelled.has_conditions();
        search.label_text = spelled.label_text;
        search.unknown = spelled.unknown;
        Ok(search)
    }

    /// Reads where a page begins and how long it is.
    fn paging(&mut self, spelled: &Spelled, query: &Parameters) -> Result<(), Status> {
        let number = |name: &str, text: &str| -> Result<usize, Status> {
            let wrong = || Status::bad_request(format!("{name}: {text:?} is not a number"));
            let number: i64 = text.parse().map_err(|_| wrong())?;
            // Negative limits mean none, as in Kubernetes.
            Ok(usize::try_from(number).unwrap_or(0))
        };
        for name in ["size", "limit"] {
            if let Some(text) = spelled.one(name) {
                self.limit = number(name, text)?;
            }
        }
        let token = query.given("continue").or_else(|| spelled.one("offset"));
        if let Some(token) = token {
            self.start = match token.parse::<usize>() {
                Ok(offset) => Start::Offset(offset),
                Err(_) => Start::After(Cursor::parse(token).ok_or_else(|| {
                    Status::bad_request("continue key is not valid: it is not a token of a list")
                })?),
            };
        }
        let size = query.given("pageSize").or_else(|| query.given("pagesize"));
        let page = query.given("page");
        if size.is_none() && page.is_none() {
            return Ok(());
        }
        let size = size.map_or(Ok(500), |text| number("pageSize", text))?;
        let page = page.map_or(Ok(1), |text| number("page", text))?;
        if size == 0 || page == 0 {
            return Err(Status::bad_request(
                "page and pageSize are numbers from 1 on",
            ));
        }
        self.limit = size;
        self.start = Start::Offset((page - 1).saturating_mul(size));
        self.counts = true;
        Ok(())
    }

    /// Gives fields the names that they have in the rows of members.
    fn rename(&mut self, other: &dyn Fn(&str) -> Option<&'static str>) {
        self.filter.rename(other);
        let order = self.order.0.iter_mut().map(|key| &mut key.column);
        let summary = self.summary.iter_mut().map(|(_, column)| column);
        order.chain(summary).for_each(|column| column.rename(other));
    }

    fn conditions(
        &mut self,
        spelled: &Spelled,
        query: &Parameters,
        fleet: &Fleet,
        asked: Option<&Asked>,
    ) -> Result<(), Status> {
        let names = few("names", spelled.list("names"))?;
        if !names.is_empty() {
            self.scope.and(Predicate::one_of(Column::Name, names));
        }
        for part in &spelled.fuzzy {
            let contains = Comparison::Contains(part.clone());
            self.scope.and(Predicate::column(Column::Name, contains));
        }
        let since = spelled.one("since");
        let since = since.map(|text| times::parse("since", text)).transpose()?;
        let before = spelled.one("before");
        let before = before
            .map(|text| times::parse("before", text))
            .transpose()?;
        if let (Some(since), Some(before)) = (since, before)
            && since > before
        {
            return Err(Status::bad_request("Invalid Query, since is after before"));
        }
        let time = |at: i64| Literal::Text(times::print(at));
        if let Some(since) = since {
            let since = Comparison::AtLeast(time(since));
            self.scope.and(Predicate::column(Column::CreatedAt, since));
        }
        if let Some(before) = before {
            let before = Comparison::Less(time(before));
            self.scope.and(Predicate::column(Column::CreatedAt, before));
        }
        for requirement in spelled.labels.iter().flat_map(Selector::requirements) {
            self.filter
                .and(Predicate::Term(Term::Label(requirement.clone())));
        }
        self.fields(query)?;
        if let Some(expression) = query.given("filter") {
            self.filter.and(filter::compile(expression, fleet, asked)?);
        }
        if let Some(condition) = where_sql(query)? {
            self.filter.and(condition);
        }
        Ok(())
    }

    /// Reads the field selector. Names and namespaces have columns.
    fn fields(&mut self, query: &Parameters) -> Result<(), Status> {
        let Some(text) = query.given("fieldSelector") else {
            return Ok(());
        };
        let parsed = parse_field_selector(text);
        let parsed = parsed.map_err(|error| Status::bad_request(error.to_string()))?;
        for requirement in parsed {
            let column = match requirement.path.to_string().as_str() {
                "metadata.name" => Some(Column::Name),
                "metadata.namespace" => Some(Column::Namespace),
                "metadata.uid" => Some(Column::Uid),
                _ => None,
            };
            match (column, requirement.operator) {
                (Some(column), FieldOperator::In) => {
                    self.scope
                        .and(Predicate::one_of(column, requirement.values));
                }
                (Some(column), FieldOperator::NotIn) => {
                    let among = Predicate::one_of(column, requirement.values);
                    self.scope.and(Predicate::Not(Box::new(among)));
                }
                _ => self.filter.and(Predicate::Term(Term::Field(requirement))),
            }
        }
        Ok(())
    }

    /// Returns the search for owners, in these members.
    pub(crate) fn owner_search(
        &self,
        directory: &bareboat_shelf::Directory,
        members: &[String],
    ) -> Option<Result<OwnerSearch, ()>> {
        let asked = self.owner.as_ref()?;
        let owner = match (&asked.uid, &asked.resource) {
            (Some(uid), _) => bareboat_shelf::Owner::Uid(uid.clone()),
            (None, None) => bareboat_shelf::Owner::Name {
                name: asked.name.clone(),
                kind: None,
            },
            (None, Some((resource, group))) => match directory.kind(group, resource) {
                Some(kind) => bareboat_shelf::Owner::Name {
                    name: asked.name.clone(),
                    kind: Some(kind),
                },
                // No member has such owners.
                None => return Some(Err(())),
            },
        };
        let members = members.iter().filter_map(|name| directory.member(name));
        Some(Ok(OwnerSearch {
            owner,
            seniority: asked.seniority,
            members: members.collect(),
            namespaces: self.namespaces.clone(),
        }))
    }
}

fn few(name: &str, list: Vec<String>) -> Result<Vec<String>, Status> {
    match list.len() > MOST_NAMES {
        true => Err(Status::bad_request(format!(
            "{name}: more than {MOST_NAMES} values"
        ))),
        false => Ok(list),
    }
}

fn owner(spelled: &Spelled) -> Result<Option<OwnerAsked>, Status> {
    let seniority = spelled.one("ownerSeniority").unwrap_or("0");
    let seniority = seniority
        .parse()
        .map_err(|_| Status::bad_request("ownerSeniority is a number: 0 for parents"))?;
    let text = |name: &str| spelled.one(name).filter(|text| !text.is_empty());
    let (uid, name) = (text("ownerUID"), text("ownerName"));
    if uid.is_none() && name.is_none() {
        return Ok(None);
    }
    let resource = text("ownerGR").map(|text| match text.split_once('.') {
        Some((resource, group)) => (resource.to_owned(), group.to_owned()),
        None => (text.to_owned(), String::new()),
    });
    Ok(Some(OwnerAsked {
        uid: uid.map(str::to_owned),
        name: name.unwrap_or("").to_owned(),
        resource,
        seniority,
    }))
}

fn order(spelled: &Spelled, query: &Parameters) -> Result<Order, Status> {
    let parsed = match query.given("sort") {
        Some(text) => Order::parse_sort(text),
        None => {
            let keys = spelled.list("orderby");
            Order::parse_orderby(keys.iter().map(String::as_str))
        }
    };
    parsed.map_err(Status::bad_request)
}

fn summary(query: &Parameters) -> Result<Vec<(String, SortColumn)>, Status> {
    let Some(text) = query.given("summary") else {
        return Ok(Vec::new());
    };
    let names = text.split(',').map(str::trim);
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let order = Order::parse_sort(&names.join(","));
    let order = order.map_err(|why| Status::bad_request(format!("summary: {why}")))?;
    let columns = order.0.into_iter().map(|key| key.column);
    let names = names.into_iter().map(str::to_owned);
    Ok(names.zip(columns).collect())
}

/// Reads `whereSQL` and its forms with parameters.
fn where_sql(query: &Parameters) -> Result<Option<Predicate>, Status> {
    let mut parameters: Vec<Literal> = query
        .all("whereSQLParam")
        .map(|text| Literal::Text(text.to_owned()))
        .collect();
    if let Some(text) = query.given("whereSQLJSONParams") {
        let wrong = || Status::bad_request("whereSQLJSONParams is a JSON array in base64");
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| wrong())?;
        let parsed = bareboat_wire::json::parse(&bytes).map_err(|_| wrong())?;
        for value in parsed.value.as_array().ok_or_else(wrong)? {
            parameters.push(match value {
                bareboat_api::Value::Null => Literal::Null,
                bareboat_api::Value::String(text) => Literal::Text(text.to_string()),
                number if number.as_f64().is_some() => Literal::Number(number.to_string()),
                bareboat_api::Value::Bool(truth) => Literal::Text(truth.to_string()),
                _ => return Err(wrong()),
            });
        }
    }
    let refuse = |error: bareboat_shelf::WhereError| Status::bad_request(error.to_string());
    let statement = query.given("whereSQLStatement");
    if statement.is_none() && !parameters.is_empty() {
        return Err(Status::new(
            422,
            "Invalid",
            "whereSQLParam and whereSQLJSONParams need a whereSQLStatement",
        ));
    }
    match (statement, query.given("whereSQL")) {
        (Some(statement), _) => parse_where(statement, &parameters)
            .map(Some)
            .map_err(refuse),
        (None, Some(text)) => parse_where(text, &[]).map(Some).map_err(refuse),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::{Search, Start};
    use crate::members::Fleet;
    use bareboat_server::request::query::Query;

    fn parse(query: &str) -> Result<Search, bareboat_api::Status> {
        let query = Query::parse(query).expect("the query is well formed");
        Search::parse(&query, "", &Fleet::default(), None)
    }

    #[test]
    fn pages_are_read_in_all_spellings() {
        let search = parse("limit=5&continue=30").expect("it is fine");
        assert_eq!(search.limit, 5);
        assert!(matches!(search.start, Start::Offset(30)));
        let search = parse("page=3&pageSize=10").expect("it is fine");
        assert!(matches!(search.start, Start::Offset(20)));
        assert!(search.counts);
        let search = parse("labelSelector=search.clusterpedia.io/size=7").expect("it is fine");
        assert_eq!(search.limit, 7);
    }

    #[test]
    fn wrong_parameters_are_refused() {
        for query in [
            "since=2022-04-10&before=2022-03-24",
            "orderby=name);DROP",
            "fieldSelector=[0]=x",
            "whereSQL=1=1;+DELETE+FROM+resources",
            "continue=abc",
            "page=0",
            "ownerName=x&ownerSeniority=many",
            "filter=1",
            "summary=a..b",
            "labelSelector=a==b==c",
            "maxStaleness=soon",
        ] {
            let code = parse(query).err().map(|status| status.code);
            assert_eq!(code, Some(400), "{query}");
        }
        let code = parse("whereSQLParam=x").err().map(|status| status.code);
        assert_eq!(code, Some(422));
    }

    #[test]
    fn statements_take_parameters() {
        assert!(
            parse("whereSQLStatement=namespace+IN+(?,?)&whereSQLParam=a&whereSQLParam=b").is_ok()
        );
        assert!(parse("whereSQLStatement=name=?&whereSQLJSONParams=WyJhIl0=").is_ok());
    }
}
