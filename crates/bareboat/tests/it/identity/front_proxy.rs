//! Front proxies: who may name users in headers, and who may not.

use super::peer::Ca;
use super::who;
use crate::socket::{As, Connection, with_certificate};
use crate::support::*;
use bareboat::server::authn::{FrontProxy, FrontProxyError, FrontProxySettings};
use bareboat_testing::TestServer;

struct Setting {
    server: TestServer,
    ca: Ca,
    proxy: FrontProxy,
}

async fn setting() -> Setting {
    let ca = Ca::new();
    let mut settings = FrontProxySettings::new(ca.pem(), vec!["front".to_owned()]);
    settings.username_headers.push("X-Other-User".to_owned());
    let proxy = FrontProxy::new(settings, None).unwrap();
    let installed = proxy.clone();
    let server = TestServer::builder()
        .with(move |builder| builder.authenticator(installed.clone()))
        .default_roles()
        .listening()
        .start()
        .await;
    server.tls().ask_front_proxies(&ca.pem()).unwrap();
    Setting { server, ca, proxy }
}

async fn connect(setting: &Setting, shown: &(String, String)) -> Connection {
    let stream = with_certificate(&setting.server, (&shown.0, &shown.1)).await;
    Connection::over_http1(stream).await
}

const ANN: [(&str, &str); 1] = [("x-remote-user", "ann")];

#[tokio::test]
async fn a_front_proxy_names_users_request_by_request() {
    let setting = setting().await;
    let mut connection = connect(&setting, &setting.ca.client("front")).await;
    let headers = [
        ("X-Remote-User", "ann"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", "ops"),
        ("X-Remote-Extra-Example.com%2fTeam", "red"),
    ];
    let user = who(&mut connection, &headers).await.unwrap();
    assert_eq!(user["username"], "ann");
    assert_eq!(user["uid"], "7");
    assert_eq!(
        user["groups"],
        json!(["dev", "ops", "system:authenticated"])
    );
    assert_eq!(user["extra"], json!({"example.com/team": ["red"]}));
    let bob = who(&mut connection, &[("x-other-user", "bob")])
        .await
        .unwrap();
    assert_eq!(bob["username"], "bob");
    assert_eq!(
        who(&mut connection, &[("x-remote-user", "")]).await,
        Err(401)
    );
    assert_eq!(who(&mut connection, &[]).await, Err(401));
    let twice = [("x-remote-user", "ann"), ("x-remote-user", "root")];
    assert_eq!(who(&mut connection, &twice).await, Err(401));
    assert_eq!(
        who(&mut connection, &[("x_remote_user", "ann")]).await,
        Err(401)
    );
}

#[tokio::test]
async fn headers_that_hide_others_change_no_identity() {
    let setting = setting().await;
    let mut connection = connect(&setting, &setting.ca.client("front")).await;
    // A proxy drops headers that `Connection` names; this server is the last one to read them.
    let headers = [
        ("connection", "keep-alive, x-remote-user, x-remote-group"),
        ("x-remote-user", "ann"),
        ("x-remote-group", "dev"),
    ];
    let user = who(&mut connection, &headers).await.unwrap();
    assert_eq!(user["username"], "ann");
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
    // Spellings that some servers take for the same header.
    let mut connection = connect(&setting, &setting.ca.client("front")).await;
    let headers = [
        ("x-remote-user", "ann"),
        ("x_remote_group", "system:masters"),
        ("x-remote_group", "system:masters"),
        ("x-remote-groups", "system:masters"),
    ];
    let user = who(&mut connection, &headers).await.unwrap();
    assert_eq!(user["groups"], json!(["system:authenticated"]));
}

/// A literal of HPACK without Huffman coding; shorter than 127 bytes.
fn literal(text: &str) -> Vec<u8> {
    let mut out = vec![u8::try_from(text.len()).unwrap()];
    out.extend(text.as_bytes());
    out
}

#[tokio::test]
async fn upper_case_headers_over_http2_name_nobody() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let setting = setting().await;
    let (certificate, key) = setting.ca.client("front");
    let shown = Some((certificate.as_str(), key.as_str()));
    for (header, is_served) in [("x-remote-user", true), ("X-Remote-User", false)] {
        let mut stream = crate::socket::connect(&setting.server, shown, "h2").await;
        // GET, https, path and authority; then the header, not indexed.
        let mut block = vec![0x82, 0x87, 0x04];
        block.extend(literal("/api"));
        block.push(0x01);
        block.extend(literal("localhost"));
        block.push(0x00);
        block.extend(literal(header));
        block.extend(literal("ann"));
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // SETTINGS, then HEADERS that end the stream.
        bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        bytes.extend([0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
        bytes.extend(block);
        stream.write_all(&bytes).await.unwrap();
        // Frames until the answer, or the end of the stream or connection.
        let served = async {
            loop {
                let mut head = [0; 9];
                if stream.read_exact(&mut head).await.is_err() {
                    return false;
                }
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                let mut payload = vec![0; length as usize];
                stream.read_exact(&mut payload).await.unwrap();
                match head[3] {
                    // HEADERS: the first byte is `:status` 200, or a literal.
                    1 => return payload.first() == Some(&0x88),
                    // RST_STREAM and GOAWAY.
                    3 | 7 => return false,
                    _ => {}
                }
            }
        };
        assert_eq!(soon(served).await, is_served, "{header}");
    }
}

#[tokio::test]
async fn nobody_else_names_users() {
    let setting = setting().await;
    let mut nobody = Connection::http1(&setting.server, As::Nobody).await;
    assert_eq!(who(&mut nobody, &ANN).await, Err(401));
    // A user's own certificate counts, and the headers do not.
    let mut admin = Connection::http1(&setting.server, As::Admin).await;
    let user = who(&mut admin, &ANN).await.unwrap();
    assert_ne!(user["username"], "ann");
    for shown in [
        setting.ca.client("back"),
        setting.ca.client(""),
        Ca::new().client("front"),
    ] {
        let mut connection = connect(&setting, &shown).await;
        assert_eq!(who(&mut connection, &ANN).await, Err(401));
    }
    // The certificate of a front proxy is no user.
    let mut proxy = connect(&setting, &setting.ca.client("front")).await;
    assert_eq!(who(&mut proxy, &[]).await, Err(401));
}

#[tokio::test]
async fn another_ca_counts_on_open_connections() {
    let setting = setting().await;
    let mut connection = connect(&setting, &setting.ca.client("front")).await;
    assert!(who(&mut connection, &ANN).await.is_ok());
    let next = Ca::new();
    setting.proxy.replace_ca(&next.pem(), None).unwrap();
    assert_eq!(who(&mut connection, &ANN).await, Err(401));
    let mut connection = connect(&setting, &next.client("front")).await;
    assert!(who(&mut connection, &ANN).await.is_ok());
    let refused = setting.proxy.replace_ca(&next.pem(), Some(&next.pem()));
    assert!(matches!(refused, Err(FrontProxyError::SameCa)));
    assert!(who(&mut connection, &ANN).await.is_ok());
}

#[tokio::test]
async fn other_names_count_on_open_connections() {
    let setting = setting().await;
    let mut front = connect(&setting, &setting.ca.client("front")).await;
    let mut next = connect(&setting, &setting.ca.client("next")).await;
    assert!(who(&mut front, &ANN).await.is_ok());
    assert_eq!(who(&mut next, &ANN).await, Err(401));
    let names = vec!["next".to_owned()];
    setting.proxy.replace_names(names).unwrap();
    assert_eq!(who(&mut front, &ANN).await, Err(401));
    assert!(who(&mut next, &ANN).await.is_ok());
    let refused = setting.proxy.replace_names(Vec::new());
    assert!(matches!(refused, Err(FrontProxyError::NoNames)));
    assert!(who(&mut next, &ANN).await.is_ok());
}

#[tokio::test]
async fn settings_that_would_let_users_name_others_are_refused() {
    let ca = Ca::new();
    let settings = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        FrontProxySettings::new(ca.pem(), names)
    };
    let refused = |settings, other: Option<&str>| FrontProxy::new(settings, other).err().unwrap();
    assert!(matches!(
        refused(settings(&[]), None),
        FrontProxyError::NoNames
    ));
    assert!(matches!(
        refused(settings(&[""]), None),
        FrontProxyError::NoNames
    ));
    let both = format!("{}\n{}", Ca::new().pem(), ca.pem());
    assert!(matches!(
        refused(settings(&["a"]), Some(&both)),
        FrontProxyError::SameCa
    ));
    let mut headless = settings(&["a"]);
    headless.username_headers.clear();
    assert!(matches!(refused(headless, None), FrontProxyError::NoHeader));
    let nonsense = FrontProxySettings::new("nonsense", vec!["a".to_owned()]);
    assert!(matches!(refused(nonsense, None), FrontProxyError::Ca(_)));
}
