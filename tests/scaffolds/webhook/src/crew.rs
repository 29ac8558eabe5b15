//! The rules for crews. They see objects as JSON, so that they work for every version.

use serde_json::{Value, json};

/// Changes a new object before it is stored.
pub fn mutate(object: &mut Value) {
    let labels = &mut object["metadata"]["labels"];
    if labels["reviewed-by"].is_null() {
        labels["reviewed-by"] = json!("guard");
    }
}

/// Refuses an object, with the reason.
pub fn validate(object: &Value, _old: Option<&Value>) -> Result<(), String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match name.starts_with("forbidden") {
        true => Err("names must not begin with \"forbidden\"".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_added_once() {
        let mut object = json!({"metadata": {"labels": {"reviewed-by": "me"}}});
        mutate(&mut object);
        assert_eq!(object["metadata"]["labels"]["reviewed-by"], "me");
    }
}
