//! A server that lets another one decide who asks and what they may do.

use super::holder;
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::RemoteApi;
use bareboat_testing::TestServer;

#[tokio::test]
async fn another_server_decides() {
    let hub = TestServer::builder()
        .token("a", "ann", &["dev"])
        .default_roles()
        .listening()
        .start()
        .await;
    super::revocation::allow(&hub, "ann").await;
    let kubeconfig = hub.kubeconfig_path();
    let spoke = TestServer::builder()
        .with(move |builder| {
            builder.delegate_access(RemoteApi::from_kubeconfig(&kubeconfig).unwrap())
        })
        .listening()
        .start()
        .await;
    let mut connection = Connection::http1(&spoke, As::Nobody).await;
    let user = holder(&mut connection, "a").await.unwrap();
    assert_eq!(user["username"], "ann");
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
    let ann = [("authorization", "Bearer a")];
    assert_eq!(connection.send("GET", MAPS, &ann, "").await.code, 200);
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(connection.send("GET", secrets, &ann, "").await.code, 403);
    let stranger = [("authorization", "Bearer b")];
    assert_eq!(connection.send("GET", MAPS, &stranger, "").await.code, 401);
}
