//! Authentication and authorization in kubectl: whoami, can-i, roles, tokens.

use super::Kubectl;
use base64::Engine as _;

#[test]
fn the_administrator_may_do_everything_and_an_unknown_user_nothing() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says(
        "auth whoami",
        &["Username bareboat-admin", "system:masters"],
    );
    kubectl.says("auth can-i create deployments", &["yes"]);
    kubectl.says("auth can-i '*' '*' --all-namespaces", &["yes"]);
    for line in ["get cm", "get cm x", "create cm x", "delete cm --all"] {
        kubectl.refuses(
            &format!("{line} --as=ann"),
            &["orbidden", "User \"ann\" cannot", "resource \"configmaps\""],
        );
    }
    kubectl.says("get cm --as=ann --as-group=system:masters", &[]);
}

#[test]
fn roles_are_reconciled_and_requests_for_certificates_are_decided() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n\
                rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n";
    let reconcile = "auth reconcile -f -";
    kubectl.says_for(reconcile, role, &["reconciliation required create"]);
    kubectl.says_for(
        reconcile,
        &role.replace("[get]", "[list]"),
        &["reconciliation required update", "missing rules added"],
    );
    kubectl.says("describe clusterrole reader", &["pods [] [] [get list]"]);
    kubectl.says("auth can-i --list", &["*.* [] [] [*]"]);

    let key = rcgen::KeyPair::generate().unwrap();
    let wish = rcgen::CertificateParams::new(["ann.example.com".to_owned()]).unwrap();
    let wish = wish.serialize_request(&key).unwrap().pem().unwrap();
    let wish = base64::engine::general_purpose::STANDARD.encode(wish);
    for name in ["good", "bad"] {
        let request = format!(
            "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {{name: {name}}}\n\
             spec: {{request: {wish}, signerName: example.com/yard, usages: [client auth]}}\n"
        );
        kubectl.says_for("create -f -", &request, &["created"]);
    }
    kubectl.says(
        "get csr good",
        &["example.com/yard bareboat-admin", "Pending"],
    );
    kubectl.says("certificate approve good", &["good approved"]);
    kubectl.says("certificate deny bad", &["bad denied"]);
    kubectl.says("get csr", &["<none> Approved", "<none> Denied"]);
    kubectl.refuses("certificate deny good", &["already Approved"]);
}

#[test]
fn roles_determine_what_a_user_may_do_and_grant() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says("api-resources --as=ann", &["configmaps"]);
    kubectl.says(
        "auth can-i --list --as=ann",
        &["selfsubjectaccessreviews.authorization.k8s.io", "/api/*"],
    );
    kubectl.refuses("get cm --as=ann", &["orbidden"]);
    kubectl.until("get clusterrole edit -o yaml", "configmaps");
    kubectl.gives("create rolebinding ann --clusterrole=edit --user=ann");
    kubectl.says("auth can-i create configmaps --as=ann", &["yes"]);
    kubectl.says("create cm anns --as=ann", &["created"]);
    kubectl.refuses("create cm anns -n kube-system --as=ann", &["orbidden"]);
    kubectl.refuses(
        "auth can-i create configmaps -n kube-system --as=ann",
        &["no"],
    );
    kubectl.refuses("auth can-i create rolebindings --as=ann", &["no"]);

    // An admin of a namespace may grant roles there, but only with their own permissions.
    kubectl.until("get clusterrole admin -o yaml", "rolebindings");
    kubectl.gives("create rolebinding bea --clusterrole=admin --user=bea");
    kubectl.says(
        "create rolebinding carl --clusterrole=view --user=carl --as=bea",
        &["created"],
    );
    kubectl.refuses(
        "create rolebinding root --clusterrole=cluster-admin --user=bea --as=bea",
        &["attempting to grant RBAC permissions not currently held"],
    );
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: more, namespace: default}\n\
                rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n";
    kubectl.refuses_for(
        "auth reconcile -f - --as=bea",
        role,
        &["{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}"],
    );
    kubectl.gives("delete rolebinding ann");
    kubectl.refuses("get cm --as=ann", &["orbidden"]);
}

#[test]
fn a_service_account_authenticates_with_its_token() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create serviceaccount robot");
    kubectl.gives("create role reader --verb=get,list --resource=configmaps");
    kubectl.gives("create rolebinding robot --role=reader --serviceaccount=default:robot");
    let token = kubectl.gives("create token robot --duration=15m");
    let token = token.trim();
    // No client certificate: the token alone authenticates.
    let server = kubectl.gives("config view -o 'jsonpath={.clusters[0].cluster.server}'");
    let authority = kubectl.home.data().join("certificates/ca.crt");
    let with = |line: &str, token: &str| {
        format!(
            "--kubeconfig=/dev/null --server={server} --certificate-authority={} --token={token} {line}",
            authority.display()
        )
    };
    kubectl.says(
        &with("auth whoami", token),
        &[
            "system:serviceaccount:default:robot",
            "system:serviceaccounts:default",
        ],
    );
    kubectl.until(&with("get cm", token), "kube-root-ca.crt");
    kubectl.refuses(&with("get secrets", token), &["orbidden"]);
    kubectl.says(
        &with("get --raw /openid/v1/jwks", token),
        &["\"alg\":\"ES256\""],
    );
    kubectl.gives("create secret generic held");
    let bound =
        kubectl.gives("create token robot --bound-object-kind=Secret --bound-object-name=held");
    kubectl.says(&with("get cm", bound.trim()), &["kube-root-ca.crt"]);
    kubectl.gives("delete secret held");
    kubectl.refuses(&with("get cm", bound.trim()), &["Unauthorized"]);
    kubectl.refuses(&with("get cm", &format!("{token}x")), &["Unauthorized"]);
    // The key survives restarts.
    let kubectl = kubectl.restarted();
    let server = kubectl.gives("config view -o 'jsonpath={.clusters[0].cluster.server}'");
    let again = format!(
        "--kubeconfig=/dev/null --server={server} --certificate-authority={} --token={token} get cm",
        authority.display()
    );
    kubectl.says(&again, &["kube-root-ca.crt"]);
    kubectl.gives("delete serviceaccount robot");
    kubectl.refuses(&again, &["Unauthorized"]);
}
