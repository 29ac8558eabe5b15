//! The config map `extension-apiserver-authentication`.

use crate::fixture::Fixture;
use bareboat_api::{Object, Value, value};
use bareboat_controllers::{FrontProxy, Options};

const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

fn names(config: &Object) -> Option<&str> {
    let names = config.at(&["data", "requestheader-allowed-names"]);
    names.and_then(Value::as_str)
}

fn options(name: &str) -> Options {
    Options {
        front_proxy: Some(FrontProxy {
            client_ca: "client CA".to_owned(),
            ca: "front proxy CA".to_owned(),
            names: vec![name.to_owned()],
        }),
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_map_exists_from_the_start_and_is_repaired() {
    let fixture = Fixture::with(options("first"), |_| {}).await;
    let config = fixture.get(PATH).await.unwrap();
    assert_eq!(names(&config), Some(r#"["first"]"#));
    let patch = value!({"data": {"requestheader-allowed-names": "[]", "more": "kept"}});
    fixture.client.merge(PATH, &patch).await.unwrap();
    fixture
        .until_it(PATH, |config| names(config) == Some(r#"["first"]"#))
        .await;
    let config = fixture.get(PATH).await.unwrap();
    assert_eq!(config.at(&["data", "more"]), Some(&value!("kept")));
    fixture.delete(PATH, "Background").await;
    fixture
        .until_it(PATH, |again| again.uid() != config.uid())
        .await;
    // Another certificate after the next start.
    let fixture = fixture.restarted(options("second")).await;
    let config = fixture.get(PATH).await.unwrap();
    assert_eq!(names(&config), Some(r#"["second"]"#));
}
