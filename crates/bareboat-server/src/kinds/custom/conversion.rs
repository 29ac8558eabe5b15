//! Conversion by webhook: sends ConversionReviews and checks the answers.
//!
//! A converter may change everything but the identity of an object. `outbound` calls the webhook, verifies its
//! certificate and enforces timeouts. The callers decide which objects are converted, and in which batches.

use crate::flow;
use crate::outbound::{Bounds, Destination, Outbound, OutboundError};
use crate::work;
use bareboat_api::kind::{AsyncConvert, BoxFuture, ConvertError};
use bareboat_api::metadata::validate_converted;
use bareboat_api::value::write_string;
use bareboat_api::{Map, Object, Str, Value};
use bareboat_schema::crd::Webhook;
use bytes::Bytes;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Timeout of a conversion.
const TIME: Duration = Duration::from_secs(30);
/// The same timeout, as sent to converters.
const TIME_QUERY: &str = "timeout=30s";
/// Maximum size of an answer to a small review.
const ANSWER: usize = 8 << 20;
/// Beyond that, an answer may be this many times larger than the review.
const GROWTH: usize = 4;
/// How many requests may wait for one converter. They hold objects, but no concurrency seats.
const WAITING: usize = 256;
/// The cost of printing an object, in bytes of work.
const OBJECT: usize = 1024;

/// A webhook that converts the objects of a definition.
pub(super) struct Converter {
    outbound: Arc<Outbound>,
    /// An error in the definition is returned to each request that needs the conversion.
    destination: Result<Destination, OutboundError>,
    /// The first of the converter's review versions that this server supports.
    review: Option<ReviewVersion>,
    /// Limits the requests that wait for an answer.
    waiting: Semaphore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    fn first_known(versions: &[Str]) -> Option<ReviewVersion> {
        versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        })
    }

    fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "apiextensions.k8s.io/v1",
            ReviewVersion::V1Beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }
}

impl Converter {
    /// Returns the converter that a definition names.
    pub(super) fn new(webhook: &Webhook, outbound: &Arc<Outbound>) -> Converter {
        Converter {
            outbound: outbound.clone(),
            destination: Destination::new(&webhook.target, TIME_QUERY, &webhook.ca_bundle),
            review: ReviewVersion::first_known(&webhook.review_versions),
            waiting: Semaphore::new(WAITING),
        }
    }

    async fn convert_all(
        &self,
        mut objects: Vec<Object>,
        to: &str,
    ) -> Result<Vec<Object>, ConvertError> {
        let mut sent = Vec::new();
        for (at, object) in objects.iter_mut().enumerate() {
            if object.api_version() == to {
                continue;
            }
            if is_empty(object) {
                let kind = object.kind().to_owned();
                object.set_type(to, &kind);
                continue;
            }
            sent.push(at);
        }
        let Some(first) = sent.first() else {
            return Ok(objects);
        };
        let what = described(&objects[*first]);
        let failed = |why: &dyn Display| {
            ConvertError(format!("conversion webhook for {what} failed: {why}"))
        };
        let version = self
            .review
            .ok_or_else(|| failed(&"no supported conversion review versions"))?;
        let destination = self.destination.as_ref().map_err(|error| failed(error))?;

        work::maybe_large(sent.len() * OBJECT).await;
        let uid = crate::random::uuid().to_string();
        let question = question(version, &uid, to, sent.iter().map(|at| &objects[*at]));
        let bounds = Bounds {
            time: TIME,
            answer: ANSWER + GROWTH * question.len(),
        };
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(failed(&"too many requests wait for its answer"));
        };
        let aside = flow::set_body_aside(&question);
        let _aside = aside.map_err(|status| failed(&status.message))?;
        let asked = self.outbound.post_json(destination, question, bounds);
        let answer = flow::away(asked).await;
        let answer = answer.map_err(|error| failed(&self.outbound.disclose(&error)))?;
        work::maybe_large(answer.len()).await;
        let converted = believe(version, &uid, &answer).map_err(|why| match why {
            Unusable::Refused(message) => failed(&message),
            Unusable::Invalid(why) => failed(&self.outbound.disclose_answer(&why)),
        })?;
        if converted.len() != sent.len() {
            return Err(ConvertError(format!(
                "conversion webhook for {what} returned {} objects, expected {}",
                converted.len(),
                sent.len()
            )));
        }
        for (index, (at, converted)) in sent.into_iter().zip(converted).enumerate() {
            let checked = checked(&objects[at], converted, to).map_err(|wrong| {
                let wrong = wrong.at(index);
                ConvertError(format!("conversion webhook for {what} returned {wrong}"))
            })?;
            objects[at] = checked;
        }
        Ok(objects)
    }
}

impl AsyncConvert for Converter {
    fn convert<'a>(
        &'a self,
        objects: Vec<Value>,
        to: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, ConvertError>> {
        Box::pin(async move {
            let objects: Result<Vec<Object>, _> =
                objects.into_iter().map(Object::try_from).collect();
            let objects =
                objects.map_err(|_| ConvertError("only objects can be converted".to_owned()))?;
            let converted = self.convert_all(objects, to).await?;
            Ok(converted.into_iter().map(Value::from).collect())
        })
    }
}

/// Returns whether an object has nothing but its apiVersion and kind, so that there is nothing to convert.
fn is_empty(object: &Object) -> bool {
    object
        .map()
        .keys()
        .all(|member| matches!(member, "apiVersion" | "kind"))
}

/// `example.com/v1, Kind=Foo`.
fn described(object: &Object) -> String {
    format!("{}, Kind={}", object.api_version(), object.kind())
}

/// Returns the bytes of a review.
fn question<'a>(
    version: ReviewVersion,
    uid: &str,
    to: &str,
    objects: impl Iterator<Item = &'a Object>,
) -> Bytes {
    let mut out = br#"{"kind":"ConversionReview","apiVersion":"#.to_vec();
    write_string(version.api_version(), &mut out);
    out.extend_from_slice(br#","request":{"uid":"#);
    write_string(uid, &mut out);
    out.extend_from_slice(br#","desiredAPIVersion":"#);
    write_string(to, &mut out);
    out.extend_from_slice(br#","objects":["#);
    for (index, object) in objects.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        object.value().write_json(&mut out);
    }
    out.extend_from_slice(br#"]},"response":null}"#);
    out.into()
}

/// Why an answer has no converted objects.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    /// The converter refused, with this message.
    Refused(String),
    /// It is no valid answer to the review; holds the reason.
    Invalid(String),
}

/// Returns the converted objects of an answer, if it matches the review.
fn believe(version: ReviewVersion, uid: &str, answer: &[u8]) -> Result<Vec<Value>, Unusable> {
    let invalid = |why: String| Err(Unusable::Invalid(why));
    let mut review = bareboat_wire::json::parse(answer)
        .map_err(|error| Unusable::Invalid(format!("the answer is no JSON: {error}")))?
        .value;
    // The v1beta1 review does not require these.
    if version == ReviewVersion::V1 {
        let text = |key: &str| review.get(key).and_then(Value::as_str).unwrap_or("");
        let (got, kind) = (text("apiVersion"), text("kind"));
        let expected = version.api_version();
        if (got, kind) != (expected, "ConversionReview") {
            return invalid(format!(
                "expected webhook response of {expected}, Kind=ConversionReview, got {got}, Kind={kind}"
            ));
        }
    }
    let Some(response) = review
        .at_mut(&["response"])
        .filter(|found| !found.is_null())
    else {
        return invalid("no response provided".to_owned());
    };
    let text = |path: &[&str]| response.at(path).and_then(Value::as_str).unwrap_or("");
    let got = text(&["uid"]);
    if version == ReviewVersion::V1 && got != uid {
        return invalid(format!("expected response.uid={uid:?}, got {got:?}"));
    }
    let status = text(&["result", "status"]);
    if status != "Success" {
        let message = text(&["result", "message"]);
        return match message.is_empty() {
            true => invalid(format!(
                "response.result.status was '{status}', not 'Success'"
            )),
            false => Err(Unusable::Refused(message.to_owned())),
        };
    }
    match response.at_mut(&["convertedObjects"]).map(Value::take) {
        Some(Value::Array(objects)) => Ok(objects),
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(_) => invalid("response.convertedObjects is no list".to_owned()),
    }
}

/// An error in a converted object.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Object(String),
    Metadata(String),
}

impl Wrong {
    fn at(&self, index: usize) -> String {
        match self {
            Wrong::Object(why) => format!("invalid converted object at index {index}: {why}"),
            Wrong::Metadata(why) => format!("invalid metadata in object at index {index}: {why}"),
        }
    }
}

/// Returns the converted object with the identity and metadata of the original.
fn checked(original: &Object, converted: Value, to: &str) -> Result<Object, Wrong> {
    let mut converted =
        Object::try_from(converted).map_err(|_| Wrong::Object("it is no object".to_owned()))?;
    let (version, kind) = (converted.api_version(), converted.kind());
    if version != to {
        return Err(Wrong::Object(format!(
            "invalid groupVersion (expected {to}, received {version})"
        )));
    }
    if kind != original.kind() {
        let expected = original.kind();
        return Err(Wrong::Object(format!(
            "invalid kind (expected {expected}, received {kind})"
        )));
    }
    let identity = [("name", "name"), ("namespace", "namespace"), ("uid", "UID")];
    for (member, shown) in identity {
        let (expected, got) = (original.meta_str(member), converted.meta_str(member));
        if expected != got {
            return Err(Wrong::Object(format!(
                "must have the same {shown}: {expected} != {got}"
            )));
        }
    }
    let Some(before) = original.metadata() else {
        converted.map_mut().remove("metadata");
        return Ok(converted);
    };
    let after = converted
        .metadata()
        .ok_or_else(|| Wrong::Metadata("missing metadata in converted object".to_owned()))?;
    let restored = restored(before, after).map_err(Wrong::Metadata)?;
    converted
        .map_mut()
        .insert("metadata", Value::Object(restored));
    Ok(converted)
}

/// Returns the metadata of the original with the labels and annotations of the converted object.
fn restored(before: &Map, after: &Map) -> Result<Map, String> {
    let wrong = validate_converted(Some(before), after);
    if !wrong.is_empty() {
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        return Err(wrong.join(", "));
    }
    let mut restored = before.clone();
    for member in ["labels", "annotations"] {
        match after
            .get(member)
            .and_then(Value::as_object)
            .filter(|map| !map.is_empty())
        {
            Some(map) => restored.insert(member, Value::Object(map.clone())),
            None => restored.remove(member),
        };
    }
    Ok(restored)
}

#[cfg(test)]
mod tests;
