//! Pages as other servers send them, and pages that no server should send.

use super::*;

type Names = Listing<String, fn(Metadata) -> Option<String>>;

fn names() -> Names {
    Listing::new(|metadata| match metadata.owner_references.0.is_empty() {
        true => None,
        false => Some(metadata.name.to_string()),
    })
}

fn add(listing: Names, text: impl Into<Bytes>) -> Result<(Names, Option<Str>), Status> {
    listing.add(&text.into())
}

/// Returns why a page cannot be read.
fn refusal(text: impl Into<Bytes>) -> String {
    let refused = add(names(), text).map(|_| ());
    refused.expect_err("the page is refused").message
}

#[test]
fn only_what_is_kept_of_an_object_stays() {
    let first = r#"{"kind": "List", "metadata": {"continue": "more", "resourceVersion": "7"}, "items": [
        {"metadata": {"name": "a", "labels": {"b": "c"}, "ownerReferences": [{"uid": "1", "controller": true}]}, "spec": [[{}]]},
        {"metadata": {"name": "b", "ownerReferences": null, "finalizers": null}},
        {"metadata": {"name": "c"}}]}"#;
    let (listing, next) = add(names(), first).expect("a page");
    assert_eq!(next.as_deref(), Some("more"));
    let (listing, next) =
        add(listing, r#"{"items": null, "metadata": {"continue": ""}}"#).expect("an empty page");
    assert_eq!((listing.found, next), (vec!["a".to_owned()], None));
    assert_eq!(listing.objects, 3);
}

#[test]
fn an_answer_that_is_no_list_does_not_say_that_there_are_no_objects() {
    for text in ["{}", "[]", r#"{"kind": "Thing", "metadata": {}}"#] {
        refusal(text);
    }
    refusal(r#"{"items": [{"spec": {}}]}"#);
    refusal(r#"{"items": []} and more"#);
}

#[test]
fn a_page_of_countless_tiny_objects_is_not_read_to_its_end() {
    let mut text = String::from(r#"{"items": ["#);
    text.push_str(&r#"{"metadata":{}},"#.repeat(MOST_OBJECTS + 1));
    // What follows is not JSON, so this is not reached.
    assert!(refusal(text).contains("too many objects"));
}

#[test]
fn an_object_with_countless_owners_is_not_read_to_its_end() {
    let mut text = String::from(r#"{"items": [{"metadata": {"ownerReferences": ["#);
    text.push_str(&"{},".repeat(10_000));
    assert!(refusal(text).contains("too many owners"));
}

#[test]
fn what_is_kept_has_a_limit() {
    let uid = "u".repeat(1 << 20);
    let item = format!(r#"{{"metadata":{{"name":"a","ownerReferences":[{{"uid":"{uid}"}}]}}}},"#);
    let page = format!(r#"{{"items":[{}"#, item.repeat(8));
    let page = format!("{}]}}", page.trim_end_matches(','));
    let mut listing = names();
    for _ in 0..3 {
        listing = add(listing, page.clone())
            .expect("it is within the limit")
            .0;
    }
    let refused = add(listing, page).map(|_| ());
    let why = refused.expect_err("it is not kept").message;
    assert!(why.contains("too large"), "{why}");
}

#[test]
fn the_place_of_the_next_page_is_escaped() {
    assert_eq!(escape("a/b+c="), "a%2Fb%2Bc%3D");
}
