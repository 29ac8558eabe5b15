//! Everything `kubectl create` can make without a manifest.

use super::Kubectl;
use rcgen::generate_simple_self_signed;

/// A command line and the object it creates.
const CREATED: &[(&str, &str)] = &[
    ("namespace harbour", "namespace/harbour"),
    (
        "configmap settings --from-literal=a=b --from-file=tls.crt",
        "configmap/settings",
    ),
    (
        "secret generic vault --from-literal=a=b --type=example.com/vault",
        "secret/vault",
    ),
    (
        "secret docker-registry pull --docker-username=u --docker-password=p",
        "secret/pull",
    ),
    (
        "secret tls cert --cert=tls.crt --key=tls.key",
        "secret/cert",
    ),
    ("serviceaccount robot", "serviceaccount/robot"),
    (
        "deployment web --image=nginx:1 --port=80 --replicas=2",
        "deployment.apps/web",
    ),
    ("job once --image=busybox -- date", "job.batch/once"),
    (
        "cronjob often --image=busybox --schedule='*/5 * * * *' -- date",
        "cronjob.batch/often",
    ),
    ("job now --from=cronjob/often", "job.batch/now"),
    ("service clusterip inner --tcp=80:8080", "service/inner"),
    ("service clusterip bare --clusterip=None", "service/bare"),
    ("service nodeport outer --tcp=80", "service/outer"),
    ("service loadbalancer wide --tcp=443:8443", "service/wide"),
    (
        "service externalname other --external-name=a.example.com",
        "service/other",
    ),
    (
        "ingress web --class=nginx --rule=a.example.com/*=inner:80,tls=cert",
        "ingress.networking.k8s.io/web",
    ),
    (
        "role reader --verb=get,list --resource=configmaps,secrets --resource-name=settings",
        "role.rbac.authorization.k8s.io/reader",
    ),
    (
        "rolebinding readers --role=reader --user=ann --serviceaccount=default:robot",
        "rolebinding.rbac.authorization.k8s.io/readers",
    ),
    (
        "clusterrole scaler --verb=patch --resource=deployments.apps/scale",
        "clusterrole.rbac.authorization.k8s.io/scaler",
    ),
    (
        "clusterrole logs --verb=get --non-resource-url=/logs/*",
        "clusterrole.rbac.authorization.k8s.io/logs",
    ),
    (
        "clusterrole sum --aggregation-rule=rbac.example.com/sum=true",
        "clusterrole.rbac.authorization.k8s.io/sum",
    ),
    (
        "clusterrolebinding crew --clusterrole=scaler --group=crew",
        "clusterrolebinding.rbac.authorization.k8s.io/crew",
    ),
    ("quota few --hard=cpu=4,configmaps=20", "resourcequota/few"),
    (
        "poddisruptionbudget steady --selector=app=web --min-available=50%",
        "poddisruptionbudget.policy/steady",
    ),
    (
        "priorityclass high --value=1000 --preemption-policy=Never --description='first of all'",
        "priorityclass.scheduling.k8s.io/high",
    ),
];

#[test]
fn every_generator_creates_its_object_and_it_can_be_described() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let pair = generate_simple_self_signed(["a.example.com".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        std::fs::write(kubectl.home.path().join(name), text).unwrap();
    };
    file("tls.crt", pair.cert.pem());
    file("tls.key", pair.signing_key.serialize_pem());
    for (line, made) in CREATED {
        kubectl.says(&format!("create {line}"), &[&format!("{made} created")]);
    }
    let all: Vec<_> = CREATED.iter().map(|(_, made)| *made).collect();
    let described = kubectl.gives(&format!("describe {}", all.join(" ")));
    for (_, made) in CREATED {
        let name = made.rsplit('/').next().unwrap();
        let line = format!("Name: {name}");
        assert!(
            super::spaced(&described).contains(&line),
            "{made} is not described"
        );
    }
    for (line, wanted) in [
        (
            "get secrets",
            &[
                "vault example.com/vault 1",
                "pull kubernetes.io/dockerconfigjson 1",
                "cert kubernetes.io/tls 2",
            ][..],
        ),
        (
            "get services",
            &[
                "inner ClusterIP",
                "bare ClusterIP None <none> <none>",
                "outer NodePort",
                "wide LoadBalancer",
                "other ExternalName <none> a.example.com <none>",
            ],
        ),
        (
            "get jobs,cronjobs -o wide",
            &["job.batch/now", "cronjob.batch/often */5 * * * *"],
        ),
        ("get ingress", &["web nginx a.example.com", "80, 443"]),
        (
            "describe role reader",
            &["configmaps [] [settings] [get list]"],
        ),
        (
            "get rolebinding readers -o wide",
            &["readers Role/reader", "ann", "default/robot"],
        ),
        ("describe clusterrole logs", &["[/logs/*] [] [get]"]),
        (
            "get pdb,priorityclass,quota",
            &["steady 50% N/A 0", "high 1000 false", "few"],
        ),
        ("get job now -o yaml", &["kind: CronJob", "name: often"]),
    ] {
        kubectl.says(line, wanted);
    }
    kubectl.refuses(
        "create service clusterip inner --tcp=80",
        &["services \"inner\" already exists"],
    );
    kubectl.refuses(
        "create deployment Web --image=nginx",
        &["metadata.name", "lowercase RFC 1123 subdomain"],
    );
}
