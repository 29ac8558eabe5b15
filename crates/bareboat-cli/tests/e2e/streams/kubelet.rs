//! Streams through a kubelet: the streaming server of real ones, with local processes instead of containers.

use super::checks::{a_lost_right_ends_a_log, streams_work};
use super::{Client, pod, run_pod};
use crate::process::{Followed, run};
use crate::server::{Home, Running};
use crate::tools;
use std::process::Command;

/// A kubelet, a server, and a kubectl.
struct Setting {
    kubelet: Followed,
    port: u16,
    _server: Running,
    _home: Home,
    client: Client,
}

impl Setting {
    /// Starts them with a node `n1` and a pod `web` on it; `None` if the programs are missing.
    fn start() -> Option<Setting> {
        let program = tools::peer("stub-kubelet")?;
        let files = tempfile::tempdir().unwrap();
        let certificate = files.path().join("kubelet.crt");
        let mut command = Command::new(program);
        command.arg("--write-certificate").arg(&certificate);
        let mut kubelet = Followed::start("stub-kubelet", &mut command);
        let port: u16 = kubelet.line().trim().parse().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "the-api-server");
        let own = params.self_signed(&key).unwrap();
        let (chain, secret) = (files.path().join("own.crt"), files.path().join("own.key"));
        std::fs::write(&chain, own.pem()).unwrap();
        std::fs::write(&secret, key.serialize_pem()).unwrap();
        let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        let home = Home::with(&[
            "--kubelet-certificate-authority",
            &text(&certificate),
            "--kubelet-client-certificate",
            &text(&chain),
            "--kubelet-client-key",
            &text(&secret),
        ]);
        let server = home.serve();
        let client = Client::new(Vec::new(), home.kubeconfig(), home.path().to_owned())?;
        client.apply(&format!(
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\nstatus:\n  addresses:\n  - type: InternalIP\n    address: 127.0.0.1\n  daemonEndpoints:\n    kubeletEndpoint:\n      Port: {port}\n"
        ));
        run_pod(&client, "web", "n1");
        Some(Setting {
            kubelet,
            port,
            _server: server,
            _home: home,
            client,
        })
    }
}

#[test]
fn a_kubelet_serves_streams_over_websockets_and_spdy() {
    let Some(mut setting) = Setting::start() else {
        return;
    };
    streams_work(&setting.client);
    setting.client.websockets = false;
    streams_work(&setting.client);
}

#[test]
fn a_kubelet_serves_logs() {
    let Some(setting) = Setting::start() else {
        return;
    };
    let client = &setting.client;
    assert_eq!(client.gives("logs web", ""), "log default/web/app \n");
    let text = client.gives(
        "logs web --tail=5 --timestamps --previous --limit-bytes=99",
        "",
    );
    assert_eq!(
        text,
        "log default/web/app limitBytes=99&previous=true&tailLines=5&timestamps=true\n"
    );
    let text = client.gives("logs -f web --since=10s", "");
    assert_eq!(
        text,
        "log default/web/app follow=true&sinceSeconds=10\nline 1\nline 2\nline 3\n"
    );
    a_lost_right_ends_a_log(client);
}

#[test]
fn nodes_pods_and_services_are_proxied() {
    let Some(setting) = Setting::start() else {
        return;
    };
    let (client, port) = (&setting.client, setting.port);
    let raw = |path: &str| client.gives(&format!("get --raw {path}"), "");
    assert_eq!(raw("/api/v1/nodes/n1/proxy/healthz"), "ok\n");
    assert_eq!(
        raw(&format!("/api/v1/nodes/n1:{port}/proxy/healthz")),
        "ok\n"
    );
    // Kubelets see the certificate of the server, and nothing of the user.
    assert_eq!(raw("/api/v1/nodes/n1/proxy/who"), "the-api-server\n \n");
    let other = raw(&format!("/api/v1/nodes/https:n1:{port}/proxy/who"));
    assert_eq!(other, "the-api-server\n \n");
    assert_eq!(raw("/api/v1/nodes/n1/proxy/moved"), "ok\n");
    client.apply(&format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  type: ExternalName\n  externalName: localhost\n  ports:\n  - name: web\n    port: {port}\n"
    ));
    let service = "/api/v1/namespaces/default/services";
    assert_eq!(
        raw(&format!("{service}/https:web:web/proxy/healthz")),
        "ok\n"
    );
    assert_eq!(raw(&format!("{service}/https:web:{port}/proxy/who")), " \n");
    client.refuses(
        &format!("get --raw {service}/web:1/proxy/"),
        "no service port 1 found for service \"web\"",
    );
    client.gives(
        "patch pod web --subresource=status -p '{\"status\":{\"podIP\":\"127.0.0.1\",\"podIPs\":[{\"ip\":\"127.0.0.1\"}]}}'",
        "",
    );
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(
        raw(&format!("{pods}/https:web:{port}/proxy/healthz")),
        "ok\n"
    );
    client.refuses(
        &format!("get --raw {pods}/ftp:web:1/proxy/"),
        "invalid pod request",
    );
}

#[test]
fn streams_are_refused_with_the_reasons_of_kubernetes() {
    let Some(setting) = Setting::start() else {
        return;
    };
    let client = &setting.client;
    client.apply(&pod("homeless", ""));
    client.refuses(
        "exec homeless -- true",
        "pod homeless does not have a host assigned",
    );
    assert_eq!(client.gives("logs homeless", ""), "");
    client.refuses(
        "exec web -c nope -- true",
        "container nope is not valid for pod web",
    );
    client.apply(&pod("lost", "nowhere"));
    client.refuses("logs lost", "nodes \"nowhere\" not found");
    client.apply("apiVersion: v1\nkind: Pod\nmetadata:\n  name: two\nspec:\n  nodeName: n1\n  containers:\n  - {name: a, image: x}\n  - {name: b, image: x}\n");
    client.refuses(
        "get --raw /api/v1/namespaces/default/pods/two/log",
        "a container name must be specified for pod two, choose one of: [a b]",
    );
    client.refuses(
        "get --raw /api/v1/namespaces/default/pods/web/log?tailLines=-1",
        "tailLines: Invalid value: -1: must be greater than or equal to 0",
    );
    client.refuses(
        "get --raw /api/v1/namespaces/default/pods/web/exec?command=true&stdout=1",
        "Upgrade request required",
    );
    // To read is not to run: a WebSocket needs the right to create, too.
    client.gives(
        "create role reader --verb=get --resource=pods,pods/exec",
        "",
    );
    client.gives("create rolebinding readers --role=reader --user=rita", "");
    client.refuses("--as rita exec web -- true", "is forbidden");
    client.gives("create role runner --verb=create --resource=pods/exec", "");
    client.gives("create rolebinding runners --role=runner --user=rita", "");
    assert_eq!(client.gives("--as rita exec web -- echo yes", ""), "yes\n");
    client.refuses("--as rita port-forward web :80", "is forbidden");
    client.refuses(
        "--as nobody get --raw /api/v1/nodes/n1/proxy/healthz",
        "forbidden",
    );
}

#[test]
fn an_annotation_leads_to_a_backend() {
    let Some(setting) = Setting::start() else {
        return;
    };
    let (client, port) = (&setting.client, setting.port);
    let url = format!("bareboat.dev/kubelet-url=https://127.0.0.1:{port}");
    client.apply(&pod("homeless", ""));
    client.gives(
        "create clusterrole writer --verb=get,patch,update --resource=pods",
        "",
    );
    client.gives(
        "create clusterrolebinding writers --clusterrole=writer --user=wanda",
        "",
    );
    let annotate = format!("annotate pod homeless {url}");
    client.refuses(
        &format!("--as wanda {annotate}"),
        "needs the right to create nodes/proxy",
    );
    client.gives(&annotate, "");
    assert_eq!(client.gives("exec homeless -- echo here", ""), "here\n");
    // One that is there already may stay.
    client.gives("--as wanda label pod homeless a=b", "");
    client.apply("apiVersion: v1\nkind: Node\nmetadata:\n  name: n2\n");
    client.gives(&format!("annotate node n2 {url}"), "");
    client.apply(&pod("second", "n2"));
    assert_eq!(client.gives("exec second -- echo there", ""), "there\n");
    assert_eq!(
        client.gives("get --raw /api/v1/nodes/n2/proxy/healthz", ""),
        "ok\n"
    );
}

#[test]
fn an_ephemeral_container_is_debugged() {
    let Some(setting) = Setting::start() else {
        return;
    };
    let client = &setting.client;
    client.gives("debug web --image=busybox -c debugger", "");
    let text = client.gives("exec web -c debugger -- sh -c 'echo $POD $CONTAINER'", "");
    assert_eq!(text, "default/web debugger\n");
    assert_eq!(
        client.gives("logs web -c debugger", ""),
        "log default/web/debugger \n"
    );
}

#[test]
fn a_kubelet_that_is_gone_is_an_error() {
    let Some(setting) = Setting::start() else {
        return;
    };
    setting.kubelet.stop();
    let client = &setting.client;
    client.refuses("exec web -- true", "error dialing backend");
    client.refuses("logs web", "connection refused");
    client.refuses(
        "get --raw /api/v1/nodes/n1/proxy/healthz",
        "error trying to reach service",
    );
    let output = run(&mut client.command("get pods"), "");
    assert!(output.status.success());
}
