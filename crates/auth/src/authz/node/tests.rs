//! What a node may.

use super::*;
use expect_test::expect;
use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::json;

fn world() -> Nodes {
    let nodes = Nodes::new();
    nodes.put(
        "pods",
        &json!({
            "metadata": {"namespace": "ns", "name": "web"},
            "spec": {
                "nodeName": "n1", "serviceAccountName": "robot",
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{"envFrom": [{"configMapRef": {"name": "env"}}]}],
                "volumes": [
                    {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "b", "ephemeral": {}},
                    {"name": "c", "secret": {"secretName": "keys"}},
                ],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            },
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "web-gpu"}]},
        }),
    );
    nodes.put(
        "pods",
        &json!({
            "metadata": {"namespace": "ns", "name": "mirror", "annotations": {"kubernetes.io/config.mirror": "x"}},
            "spec": {"nodeName": "n1", "volumes": [{"name": "c", "secret": {"secretName": "stolen"}}]},
        }),
    );
    nodes.put(
        "persistentvolumes",
        &json!({
            "metadata": {"name": "pv"},
            "spec": {
                "claimRef": {"namespace": "ns", "name": "data"},
                "csi": {
                    "nodeStageSecretRef": {"namespace": "storage", "name": "stage"},
                    "controllerExpandSecretRef": {"namespace": "storage", "name": "expand"},
                },
            },
        }),
    );
    nodes.put("volumeattachments", &json!({"metadata": {"name": "va"}, "spec": {"nodeName": "n1"}}));
    nodes.put("resourceslices", &json!({"metadata": {"name": "slice"}, "spec": {"nodeName": "n1"}}));
    nodes
}

/// `verb resource[.group][/subresource] namespace|- name|-`, one per line.
fn ask(nodes: &Nodes, user: &UserInfo, selector: Option<&FieldSelector>, requests: &str) -> String {
    let mut told = String::new();
    for line in requests.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let (resource, subresource) = words[1].split_once('/').unwrap_or((words[1], ""));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let part = |word: usize| if words[word] == "-" { "" } else { words[word] };
        let request = Attributes::resource(user, words[0], group, resource).with_subresource(subresource);
        let request = Attributes { field_selector: selector, ..request.at(part(2), part(3)) };
        let verdict = nodes.authorize(&request);
        told += &format!("{line}: {:?} {}\n", verdict.decision, verdict.reason);
    }
    told
}

fn node(name: &str) -> UserInfo {
    user::named(&format!("system:node:{name}"), &["system:nodes"])
}

#[test]
fn what_pods_need() {
    let nodes = world();
    let requests = "
        get secrets ns keys
        list secrets ns pull
        get secrets ns stolen
        get secrets storage stage
        get secrets storage expand
        update secrets ns keys
        list secrets ns -
        list secrets - keys
        get configmaps ns env
        get persistentvolumeclaims ns data
        get persistentvolumeclaims ns web-b
        patch persistentvolumeclaims/status ns data
        get persistentvolumeclaims/status ns data
        list persistentvolumeclaims ns data
        get persistentvolumes - pv
        get resourceclaims.resource.k8s.io ns web-gpu
        get volumeattachments.storage.k8s.io - va
        get serviceaccounts ns robot
        create serviceaccounts/token ns robot
        create serviceaccounts/token ns other
        delete serviceaccounts ns robot
        get pods ns web
        get pods ns mirror";
    expect![[r#"
        get secrets ns keys: Allow 
        list secrets ns pull: Allow 
        get secrets ns stolen: NoOpinion no relationship found between node 'n1' and this object
        get secrets storage stage: Allow 
        get secrets storage expand: NoOpinion no relationship found between node 'n1' and this object
        update secrets ns keys: NoOpinion can only read resources of this type
        list secrets ns -: NoOpinion No Object name found
        list secrets - keys: NoOpinion can only read namespaced object of this type
        get configmaps ns env: Allow 
        get persistentvolumeclaims ns data: Allow 
        get persistentvolumeclaims ns web-b: Allow 
        patch persistentvolumeclaims/status ns data: Allow 
        get persistentvolumeclaims/status ns data: NoOpinion can only get/update/patch this type
        list persistentvolumeclaims ns data: NoOpinion can only get individual resources of this type
        get persistentvolumes - pv: Allow 
        get resourceclaims.resource.k8s.io ns web-gpu: Allow 
        get volumeattachments.storage.k8s.io - va: Allow 
        get serviceaccounts ns robot: Allow 
        create serviceaccounts/token ns robot: Allow 
        create serviceaccounts/token ns other: NoOpinion no relationship found between node 'n1' and this object
        delete serviceaccounts ns robot: NoOpinion can only create tokens for individual service accounts
        get pods ns web: Allow 
        get pods ns mirror: Allow 
    "#]]
    .assert_eq(&ask(&nodes, &node("n1"), None, requests));
    let others = ask(&nodes, &node("n2"), None, requests);
    assert!(!others.contains("Allow"), "{others}");
    nodes.remove("pods", "ns", "web");
    let left = ask(&nodes, &node("n1"), None, requests);
    let left: Vec<&str> = left.lines().filter(|line| line.contains("Allow")).collect();
    assert_eq!(left, ["get volumeattachments.storage.k8s.io - va: Allow ", "get pods ns mirror: Allow "]);
    nodes.replace("pods", &[]);
    nodes.replace("volumeattachments", &[]);
    assert!(!ask(&nodes, &node("n1"), None, requests).contains("Allow"));
}

#[test]
fn what_nodes_do() {
    let nodes = world();
    let requests = "
        list pods - -
        list pods ns web
        watch pods ns -
        create pods ns -
        update pods ns web
        patch pods/status ns web
        create pods/eviction ns web
        create pods/binding ns web
        get nodes - n1
        get nodes - n2
        list nodes - -
        create nodes - -
        patch nodes/status - n1
        delete nodes - n1
        get leases.coordination.k8s.io kube-node-lease n1
        get leases.coordination.k8s.io kube-node-lease n2
        create leases.coordination.k8s.io kube-node-lease -
        list leases.coordination.k8s.io kube-node-lease -
        get leases.coordination.k8s.io kube-system n1
        get csinodes.storage.k8s.io - n1
        get csinodes.storage.k8s.io - n2
        list csinodes.storage.k8s.io - -
        list resourceslices.resource.k8s.io - -
        delete resourceslices.resource.k8s.io - slice
        delete resourceslices.resource.k8s.io - other
        list services - -
        create events ns -
        create certificatesigningrequests.certificates.k8s.io - -
        list deployments.apps - -";
    expect![[r#"
        list pods - -: NoOpinion can only list/watch pods with spec.nodeName field selector
        list pods ns web: Allow 
        watch pods ns -: NoOpinion can only list/watch pods with spec.nodeName field selector
        create pods ns -: Allow 
        update pods ns web: NoOpinion 
        patch pods/status ns web: Allow 
        create pods/eviction ns web: Allow 
        create pods/binding ns web: NoOpinion 
        get nodes - n1: Allow 
        get nodes - n2: NoOpinion node 'n1' cannot read 'n2', only its own Node object
        list nodes - -: NoOpinion node 'n1' cannot read all nodes, only its own Node object
        create nodes - -: Allow 
        patch nodes/status - n1: Allow 
        delete nodes - n1: NoOpinion 
        get leases.coordination.k8s.io kube-node-lease n1: Allow 
        get leases.coordination.k8s.io kube-node-lease n2: NoOpinion can only access node lease with the same name as the requesting node
        create leases.coordination.k8s.io kube-node-lease -: Allow 
        list leases.coordination.k8s.io kube-node-lease -: NoOpinion can only get, create, update, patch, or delete a node lease
        get leases.coordination.k8s.io kube-system n1: NoOpinion can only access leases in the "kube-node-lease" system namespace
        get csinodes.storage.k8s.io - n1: Allow 
        get csinodes.storage.k8s.io - n2: NoOpinion can only access CSINode with the same name as the requesting node
        list csinodes.storage.k8s.io - -: NoOpinion can only get, create, update, patch, or delete a CSINode
        list resourceslices.resource.k8s.io - -: NoOpinion can only list/watch/deletecollection resourceslices with nodeName field selector
        delete resourceslices.resource.k8s.io - slice: Allow 
        delete resourceslices.resource.k8s.io - other: NoOpinion no relationship found between node 'n1' and this object
        list services - -: Allow 
        create events ns -: Allow 
        create certificatesigningrequests.certificates.k8s.io - -: Allow 
        list deployments.apps - -: NoOpinion 
    "#]].assert_eq(&ask(&nodes, &node("n1"), None, requests));
    let own = FieldSelector::equal("spec.nodeName", "n1");
    let selected = "
        list pods - -
        watch pods ns -
        list resourceslices.resource.k8s.io - -";
    expect![[r#"
        list pods - -: Allow 
        watch pods ns -: Allow 
        list resourceslices.resource.k8s.io - -: Allow 
    "#]]
    .assert_eq(&ask(&nodes, &node("n1"), Some(&own), selected));
    expect![[r#"
        get nodes - n1: NoOpinion unknown node for user "system:node:"
    "#]]
    .assert_eq(&ask(&nodes, &node(""), None, "get nodes - n1"));
    expect![[r#"
        get nodes - n1: NoOpinion 
    "#]]
    .assert_eq(&ask(&nodes, &user::named("system:node:n1", &[]), None, "get nodes - n1"));
}

#[tokio::test]
async fn the_first_node_is_told_of() {
    let nodes = world();
    let jane = user::named("jane", &[]);
    ask(&nodes, &jane, None, "get pods ns web");
    assert!(!*nodes.is_used.borrow());
    ask(&nodes, &node("n1"), None, "get nodes - n1");
    nodes.first_request().await;
    assert_eq!(nodes.rules_for(&node("n1"), "ns").errors, ["node authorizer does not support user rule resolution"]);
    assert_eq!(nodes.rules_for(&jane, "ns"), RuleSet::default());
}
