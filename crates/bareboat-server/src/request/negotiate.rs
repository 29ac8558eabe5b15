//! Content negotiation: the media type of answers and of request bodies.

use http::{HeaderMap, header};

/// An encoding of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Media {
    /// Returns the name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Yaml => "application/yaml",
            Media::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn from_name(name: &str) -> Option<Media> {
        match name {
            "application/json" => Some(Media::Json),
            "application/yaml" => Some(Media::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Media::Protobuf),
            _ => None,
        }
    }
}

/// The form of objects in an answer: whole, as table rows, or metadata only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The whole object.
    Whole,
    /// A table.
    Table {
        /// Whether the client requested `meta.k8s.io/v1beta1`.
        beta: bool,
    },
    /// The object's metadata.
    Metadata {
        /// Whether the client requested `meta.k8s.io/v1beta1`.
        beta: bool,
    },
}

/// The negotiated media type and form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The media type.
    pub media: Media,
    /// The form of objects.
    pub transform: Transform,
    /// Whether to indent the answer.
    pub pretty: bool,
}

impl Agreed {
    /// Returns whether the answer is compact JSON, whatever its form.
    pub fn is_plain(self) -> bool {
        self.media == Media::Json && !self.pretty
    }

    /// Returns whether whole objects are sent as compact JSON.
    pub(crate) fn is_plain_json(self) -> bool {
        self.media == Media::Json && self.transform == Transform::Whole && !self.pretty
    }
}

/// The encodings an endpoint offers.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Whether whole objects are offered in protobuf.
    pub protobuf: bool,
    /// Whether metadata is offered in protobuf.
    pub protobuf_metadata: bool,
    /// Whether YAML is offered; watches do not offer it.
    pub yaml: bool,
    /// Whether tables are offered.
    pub table: bool,
    /// The `as=` value for metadata: `PartialObjectMetadata` or `PartialObjectMetadataList`.
    pub metadata: Option<&'static str>,
}

impl Offer {
    /// Objects in JSON and YAML only.
    pub const PLAIN: Offer = Offer {
        protobuf: false,
        protobuf_metadata: false,
        yaml: true,
        table: false,
        metadata: None,
    };

    fn has(&self, media: Media, transform: Transform) -> bool {
        match media {
            Media::Json => true,
            Media::Yaml => self.yaml,
            Media::Protobuf => match transform {
                Transform::Whole => self.protobuf,
                Transform::Metadata { .. } => self.protobuf_metadata,
                Transform::Table { .. } => false,
            },
        }
    }

    /// Returns the offered media types, for error messages.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = vec!["application/json"];
        if self.yaml {
            names.push("application/yaml");
        }
        if self.protobuf {
            names.push("application/vnd.kubernetes.protobuf");
        }
        names
    }

    /// Returns whether an Accept header names an offered media type, whatever its parameters.
    pub(crate) fn is_named(&self, headers: &HeaderMap) -> bool {
        clauses(headers).iter().any(|clause| {
            let named = || Media::from_name(clause.media);
            clause.media == "*/*" || named().is_some_and(|media| self.has(media, Transform::Whole))
        })
    }
}

/// One clause of an Accept header.
#[derive(Debug)]
pub(crate) struct Clause<'a> {
    pub(crate) media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: u32,
}

impl<'a> Clause<'a> {
    pub(crate) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    fn specificity(&self) -> u32 {
        match self.media {
            "*/*" => 0,
            media if media.ends_with("/*") => 1,
            _ => 2,
        }
    }
}

/// Returns the clauses of all Accept headers, the preferred ones first.
pub(crate) fn clauses(headers: &HeaderMap) -> Vec<Clause<'_>> {
    let mut found = Vec::new();
    for text in headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
    {
        for clause in text
            .split(',')
            .map(str::trim)
            .filter(|clause| !clause.is_empty())
        {
            // No client sends more clauses than this; the rest is ignored.
            if found.len() == 64 {
                break;
            }
            let mut pieces = clause.split(';').map(str::trim);
            let media = pieces.next().unwrap_or("");
            let parameters: Vec<(&str, &str)> = pieces
                .filter_map(|piece| piece.split_once('='))
                .map(|(key, value)| (key.trim(), value.trim().trim_matches('"')))
                .collect();
            let mut clause = Clause {
                media,
                parameters,
                quality: 1000,
            };
            if let Some(q) = clause
                .parameter("q")
                .and_then(|text| text.parse::<f32>().ok())
            {
                clause.quality = (q.clamp(0.0, 1.0) * 1000.0) as u32;
            }
            if clause.quality > 0 {
                found.push(clause);
            }
        }
    }
    // The sort is stable: among equals the client's order decides.
    let rank = |clause: &Clause| (clause.quality, clause.specificity());
    bareboat_api::sort_by(&mut found, |a, b| rank(b).cmp(&rank(a)));
    found
}

/// Negotiates the encoding of the answer; `None` if no clause can be met.
pub fn negotiate(headers: &HeaderMap, pretty_query: Option<&str>, offer: &Offer) -> Option<Agreed> {
    let pretty = wants_pretty(headers, pretty_query);
    let whole = |media| Agreed {
        media,
        transform: Transform::Whole,
        pretty,
    };
    let mut accepts = headers.get_all(header::ACCEPT).iter();
    match (accepts.next(), accepts.next()) {
        (None, _) => return Some(whole(Media::Json)),
        (Some(only), None) if only == "application/json" || only == "*/*" || only.is_empty() => {
            return Some(whole(Media::Json));
        }
        _ => {}
    }
    let clauses = clauses(headers);
    if clauses.is_empty() {
        return Some(whole(Media::Json));
    }
    clauses.iter().find_map(|clause| {
        let transform = wanted_transform(clause, offer)?;
        let media = match clause.media {
            "*/*" | "application/*" => Media::Json,
            name => Media::from_name(name)?,
        };
        let streams = match clause.parameter("stream") {
            None | Some("") => true,
            Some("watch") => media != Media::Yaml,
            Some(_) => false,
        };
        let server_version = matches!(clause.parameter("sv"), None | Some("" | "v1"));
        if !streams || !server_version {
            return None;
        }
        offer.has(media, transform).then(|| Agreed {
            media,
            transform,
            pretty: pretty || clause.parameter("pretty") == Some("1"),
        })
    })
}

fn wanted_transform(clause: &Clause<'_>, offer: &Offer) -> Option<Transform> {
    let transforms = ["as", "g", "v"].map(|name| clause.parameter(name));
    if transforms.iter().all(Option::is_none) {
        return Some(Transform::Whole);
    }
    // A group or a version without a kind has no meaning.
    let wanted = clause.parameter("as")?;
    if clause.parameter("g") != Some("meta.k8s.io") {
        return None;
    }
    let beta = match clause.parameter("v") {
        Some("v1") => false,
        Some("v1beta1") => true,
        _ => return None,
    };
    match wanted {
        "Table" if offer.table => Some(Transform::Table { beta }),
        other if offer.metadata == Some(other) => Some(Transform::Metadata { beta }),
        _ => None,
    }
}

fn wants_pretty(headers: &HeaderMap, query: Option<&str>) -> bool {
    if let Some(text) = query.filter(|text| !text.is_empty()) {
        return matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = headers
        .get(header::USER_AGENT)
        .map_or(&b""[..], |value| value.as_bytes());
    agent.starts_with(b"curl") || agent.starts_with(b"Wget") || agent.starts_with(b"Mozilla/5.0")
}

/// Returns the media type of the body; JSON if there is no header, `None` if it is not supported.
pub fn content_type(headers: &HeaderMap, protobuf: bool) -> Option<Media> {
    let media = match media_type(headers) {
        "" => Media::Json,
        name => {
            let exact = Media::from_name(name);
            exact.or_else(|| Media::from_name(&name.to_ascii_lowercase()))?
        }
    };
    (media != Media::Protobuf || protobuf).then_some(media)
}

/// Returns the Content-Type without parameters.
pub fn media_type(headers: &HeaderMap) -> &str {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    text.unwrap_or("").split(';').next().unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const ALL: Offer = Offer {
        protobuf: true,
        protobuf_metadata: true,
        yaml: true,
        table: true,
        metadata: Some("PartialObjectMetadataList"),
    };

    fn check(accept: &str, offer: &Offer, expected: Option<(Media, Transform)>) {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_str(accept).expect("a header value"),
        );
        let agreed = negotiate(&headers, None, offer);
        assert_eq!(
            agreed.map(|agreed| (agreed.media, agreed.transform)),
            expected,
            "{accept}"
        );
    }

    #[test]
    fn the_preferred_offered_encoding_wins() {
        let custom = Offer {
            protobuf: false,
            ..ALL
        };
        check("", &ALL, Some((Media::Json, Transform::Whole)));
        check("*/*", &ALL, Some((Media::Json, Transform::Whole)));
        check("application/*", &ALL, Some((Media::Json, Transform::Whole)));
        check("text/html", &ALL, None);
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            &ALL,
            Some((Media::Protobuf, Transform::Whole)),
        );
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            &custom,
            Some((Media::Json, Transform::Whole)),
        );
        check("application/vnd.kubernetes.protobuf", &custom, None);
        check(
            "application/json;q=0.5, application/yaml",
            &ALL,
            Some((Media::Yaml, Transform::Whole)),
        );
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            &ALL,
            Some((Media::Json, Transform::Table { beta: false })),
        );
        check(
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            &ALL,
            None,
        );
        check(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            &custom,
            Some((Media::Protobuf, Transform::Metadata { beta: false })),
        );
    }

    #[test]
    fn a_clause_with_parameters_that_are_not_offered_is_skipped() {
        let whole = Some((Media::Json, Transform::Whole));
        check("application/json;g=meta.k8s.io;v=v1", &ALL, None);
        check("application/json;v=v1", &ALL, None);
        check("application/json;as=Table", &ALL, None);
        check(
            "application/json;g=meta.k8s.io, application/json;q=0.1",
            &ALL,
            whole,
        );
        check("application/json;stream=watch", &ALL, whole);
        check("application/json;stream=other", &ALL, None);
        check("application/yaml;stream=watch", &ALL, None);
        check("application/json;sv=v2", &ALL, None);
        check("application/json;sv=v1;pretty=1", &ALL, whole);
    }

    #[test]
    fn the_pretty_query_takes_booleans_of_go() {
        let mut curl = HeaderMap::new();
        curl.insert(header::USER_AGENT, HeaderValue::from_static("curl/8"));
        for (query, others, of_curl) in [
            (None, false, true),
            (Some(""), false, true),
            (Some("true"), true, true),
            (Some("T"), true, true),
            (Some("false"), false, false),
            (Some("yes"), false, false),
        ] {
            assert_eq!(wants_pretty(&HeaderMap::new(), query), others, "{query:?}");
            assert_eq!(wants_pretty(&curl, query), of_curl, "{query:?} of curl");
        }
    }
}
