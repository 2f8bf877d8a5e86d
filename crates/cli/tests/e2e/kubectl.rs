//! kubectl as people use it, as transcripts.

use crate::server::{Server, eventually};
use crate::tools::{kubectl, skipped};
use expect_test::{Expect, expect};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A terminal with a kubeconfig.
struct Terminal {
    kubectl: PathBuf,
    server: Server,
    transcript: String,
}

impl Terminal {
    fn open(name: &str, role: &str, flags: &[&str]) -> Option<Terminal> {
        match kubectl() {
            Ok(kubectl) => {
                Some(Terminal { kubectl, server: Server::start_with(name, role, flags), transcript: String::new() })
            }
            Err(why) => {
                skipped("kubectl", &why);
                None
            }
        }
    }

    /// A file that commands may name.
    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.server.dir.path().join(name), text).expect("a file");
    }

    /// Runs a command and returns its exit code and what it said.
    fn quietly(&self, arguments: &str) -> (i32, String) {
        let mut command = Command::new(&self.kubectl);
        command.args(words(arguments)).current_dir(self.server.dir.path());
        command
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("HOME", self.server.dir.path())
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u0");
        let output = command.stdin(Stdio::null()).output().expect("kubectl runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), text)
    }

    /// Runs a command and writes down what it said.
    fn run(&mut self, arguments: &str) {
        let (code, text) = self.quietly(arguments);
        writeln!(self.transcript, "$ kubectl {arguments}").expect("a string");
        // advice on conflicts differs from version to version
        let lines = text.lines().take_while(|line| !line.starts_with("Please review the fields above"));
        for line in lines.filter(|line| !line.trim().is_empty()) {
            writeln!(self.transcript, "{}", ageless(line)).expect("a string");
        }
        if code != 0 {
            writeln!(self.transcript, "(exit {code})").expect("a string");
        }
    }

    /// Waits until a command says this.
    fn until(&self, arguments: &str, wanted: &str) {
        let mut last = String::new();
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(arguments, || {
                last = self.quietly(arguments).1;
                (last.trim() == wanted).then_some(())
            });
        }));
        assert!(said.is_ok(), "kubectl {arguments}: wanted {wanted:?}, last {last:?}\n{}", self.server.log());
    }

    fn check(&mut self, expected: Expect) {
        expected.assert_eq(&std::mem::take(&mut self.transcript));
    }
}

/// Splits a command as a shell would: single quotes keep words together.
fn words(arguments: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in arguments.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            other => words.last_mut().expect("one at least").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A line without its ages, which differ from run to run, without what newer versions of kubectl add, and with single
/// spaces.
fn ageless(line: &str) -> String {
    let is_age = |word: &str| word.strip_suffix('s').is_some_and(|n| n.parse::<u32>().is_ok());
    let words = line.split_whitespace().map(|word| if is_age(word) { "AGE" } else { word });
    let indent = line.len() - line.trim_start().len();
    let line = " ".repeat(indent) + &words.collect::<Vec<_>>().join(" ");
    line.replace(" from default namespace", "")
}

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: nginx, image: 'nginx:1', ports: [{containerPort: 80}]}
";

#[test]
fn objects() {
    let Some(mut t) = Terminal::open("kubectl", "apiserver", &["--disable-admission-plugins=ServiceAccount"]) else {
        return;
    };
    for arguments in [
        "create configmap settings --from-literal=colour=red",
        "create configmap settings --from-literal=colour=red",
        "get configmap settings -o jsonpath={.data.colour}",
        "label configmap settings team=core",
        "label configmap settings team=other",
        "annotate configmap settings note=hello",
        r#"patch configmap settings --type=json -p '[{"op":"replace","path":"/data/colour","value":"blue"}]'"#,
        "get configmaps -l team=core,!tier --field-selector metadata.name=settings --show-labels",
        "get configmap settings nothing -o name",
        "delete configmap settings",
        "run hello --image=nginx --labels=app=hello",
        "get pods",
        "get pod hello -o custom-columns=NAME:.metadata.name,POLICY:.spec.restartPolicy,QOS:.status.qosClass",
        "delete pod hello --now",
        "create service clusterip db --tcp=5432",
        "get service db -o jsonpath={.spec.ports[0].targetPort}",
        "create namespace team",
        "get namespaces",
        "get --raw /readyz",
    ] {
        t.run(arguments);
    }
    t.check(expect![[r#"
        $ kubectl create configmap settings --from-literal=colour=red
        configmap/settings created
        $ kubectl create configmap settings --from-literal=colour=red
        error: failed to create configmap: configmaps "settings" already exists
        (exit 1)
        $ kubectl get configmap settings -o jsonpath={.data.colour}
        red
        $ kubectl label configmap settings team=core
        configmap/settings labeled
        $ kubectl label configmap settings team=other
        error: 'team' already has a value (core), and --overwrite is false
        (exit 1)
        $ kubectl annotate configmap settings note=hello
        configmap/settings annotated
        $ kubectl patch configmap settings --type=json -p '[{"op":"replace","path":"/data/colour","value":"blue"}]'
        configmap/settings patched
        $ kubectl get configmaps -l team=core,!tier --field-selector metadata.name=settings --show-labels
        NAME DATA AGE LABELS
        settings 1 AGE team=core
        $ kubectl get configmap settings nothing -o name
        configmap/settings
        Error from server (NotFound): configmaps "nothing" not found
        (exit 1)
        $ kubectl delete configmap settings
        configmap "settings" deleted
        $ kubectl run hello --image=nginx --labels=app=hello
        pod/hello created
        $ kubectl get pods
        NAME READY STATUS RESTARTS AGE
        hello 0/1 Pending 0 AGE
        $ kubectl get pod hello -o custom-columns=NAME:.metadata.name,POLICY:.spec.restartPolicy,QOS:.status.qosClass
        NAME POLICY QOS
        hello Always BestEffort
        $ kubectl delete pod hello --now
        pod "hello" deleted
        $ kubectl create service clusterip db --tcp=5432
        service/db created
        $ kubectl get service db -o jsonpath={.spec.ports[0].targetPort}
        5432
        $ kubectl create namespace team
        namespace/team created
        $ kubectl get namespaces
        NAME STATUS AGE
        default Active AGE
        kube-node-lease Active AGE
        kube-public Active AGE
        kube-system Active AGE
        team Active AGE
        $ kubectl get --raw /readyz
        ok
    "#]]);
}

#[test]
fn apply_and_what_follows() {
    let Some(mut t) = Terminal::open("apply", "apiserver", &[]) else { return };
    t.file("web.yaml", WEB);
    t.file("more.yaml", &WEB.replace("replicas: 2", "replicas: 4"));
    t.file("typo.yaml", &WEB.replace("replicas: 2", "replica: 2"));
    t.file("bad.yaml", &WEB.replace("matchLabels: {app: web}", "matchLabels: {app: other}"));
    for arguments in [
        "apply -f web.yaml",
        "apply -f web.yaml",
        "diff -f web.yaml",
        "apply -f more.yaml",
        "get deployment web -o jsonpath={.spec.replicas}",
        "scale deployment web --replicas=7",
        "set image deployment/web nginx=nginx:2",
        "get deployment web",
        "apply --server-side -f web.yaml",
        "apply --server-side --field-manager=other -f more.yaml",
        "apply --server-side --field-manager=other --force-conflicts -f more.yaml",
        "create -f typo.yaml --validate=strict",
        "create -f bad.yaml",
        "replace -f web.yaml",
        "replace --force -f web.yaml",
        "delete -f web.yaml",
        "delete -f web.yaml --ignore-not-found",
    ] {
        t.run(arguments);
    }
    t.check(expect![[r#"
        $ kubectl apply -f web.yaml
        deployment.apps/web created
        $ kubectl apply -f web.yaml
        deployment.apps/web unchanged
        $ kubectl diff -f web.yaml
        $ kubectl apply -f more.yaml
        deployment.apps/web configured
        $ kubectl get deployment web -o jsonpath={.spec.replicas}
        4
        $ kubectl scale deployment web --replicas=7
        deployment.apps/web scaled
        $ kubectl set image deployment/web nginx=nginx:2
        deployment.apps/web image updated
        $ kubectl get deployment web
        NAME READY UP-TO-DATE AVAILABLE AGE
        web 0/7 0 0 AGE
        $ kubectl apply --server-side -f web.yaml
        error: Apply failed with 2 conflicts: conflicts with "kubectl" with subresource "scale" using apps/v1:
        - .spec.replicas
        conflicts with "kubectl-set" using apps/v1:
        - .spec.template.spec.containers[name="nginx"].image
        (exit 1)
        $ kubectl apply --server-side --field-manager=other -f more.yaml
        error: Apply failed with 2 conflicts: conflicts with "kubectl" with subresource "scale" using apps/v1:
        - .spec.replicas
        conflicts with "kubectl-set" using apps/v1:
        - .spec.template.spec.containers[name="nginx"].image
        (exit 1)
        $ kubectl apply --server-side --field-manager=other --force-conflicts -f more.yaml
        deployment.apps/web serverside-applied
        $ kubectl create -f typo.yaml --validate=strict
        Error from server (BadRequest): error when creating "typo.yaml": Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.replica"
        (exit 1)
        $ kubectl create -f bad.yaml
        The Deployment "web" is invalid: spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`
        (exit 1)
        $ kubectl replace -f web.yaml
        deployment.apps/web replaced
        $ kubectl replace --force -f web.yaml
        deployment.apps "web" deleted
        deployment.apps/web replaced
        $ kubectl delete -f web.yaml
        deployment.apps "web" deleted
        $ kubectl delete -f web.yaml --ignore-not-found
    "#]]);
}

#[test]
fn documents_and_permissions() {
    let Some(mut t) = Terminal::open("access", "apiserver", &[]) else { return };
    for arguments in [
        "explain deployment.spec.replicas",
        "api-resources --api-group=apps -o name",
        "auth whoami -o jsonpath={.status.userInfo.username}",
        "auth can-i '*' '*'",
        "auth can-i list pods --as=jane",
        "get pods --as=jane",
        "create role reader --verb=get,list --resource=pods",
        "create rolebinding jane-reads --role=reader --user=jane",
    ] {
        t.run(arguments);
    }
    t.until("auth can-i list pods --as=jane", "yes");
    for arguments in ["get pods --as=jane", "get pods --as=jane -n kube-system"] {
        t.run(arguments);
    }
    t.check(expect![[r#"
        $ kubectl explain deployment.spec.replicas
        GROUP: apps
        KIND: Deployment
        VERSION: v1
        FIELD: replicas <integer>
        DESCRIPTION:
            Number of desired pods. This is a pointer to distinguish between explicit
            zero and not specified. Defaults to 1.
        $ kubectl api-resources --api-group=apps -o name
        controllerrevisions.apps
        daemonsets.apps
        deployments.apps
        replicasets.apps
        statefulsets.apps
        $ kubectl auth whoami -o jsonpath={.status.userInfo.username}
        admin
        $ kubectl auth can-i '*' '*'
        yes
        $ kubectl auth can-i list pods --as=jane
        no
        (exit 1)
        $ kubectl get pods --as=jane
        Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"
        (exit 1)
        $ kubectl create role reader --verb=get,list --resource=pods
        role.rbac.authorization.k8s.io/reader created
        $ kubectl create rolebinding jane-reads --role=reader --user=jane
        rolebinding.rbac.authorization.k8s.io/jane-reads created
        $ kubectl get pods --as=jane
        No resources found in default namespace.
        $ kubectl get pods --as=jane -n kube-system
        Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "kube-system"
        (exit 1)
    "#]]);
}

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bo]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}}
    additionalPrinterColumns: [{name: Oars, type: integer, jsonPath: .spec.oars}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [oars]
            properties:
              oars: {type: integer, minimum: 1}
              colour: {type: string, default: white}
          status: {type: object, properties: {oars: {type: integer}}}
";

const BOAT: &str = "\
apiVersion: example.org/v1
kind: Boat
metadata: {name: dinghy}
spec: {oars: 2}
";

#[test]
fn custom_resources() {
    let Some(mut t) = Terminal::open("crd", "apiserver", &[]) else { return };
    t.file("crd.yaml", CRD);
    t.file("boat.yaml", BOAT);
    t.file("raft.yaml", &BOAT.replace("oars: 2", "oars: 0"));
    for arguments in [
        "apply -f crd.yaml",
        "wait --for=condition=Established crd/boats.example.org",
        "apply -f boat.yaml",
        "get bo",
        "get boat dinghy -o jsonpath={.spec.colour}",
        "create -f raft.yaml --validate=false",
        "scale boat dinghy --replicas=4",
        "get boat dinghy -o jsonpath={.spec.oars}",
        "explain boat.spec.oars",
        "delete crd boats.example.org",
    ] {
        t.run(arguments);
    }
    t.check(expect![[r#"
        $ kubectl apply -f crd.yaml
        customresourcedefinition.apiextensions.k8s.io/boats.example.org created
        $ kubectl wait --for=condition=Established crd/boats.example.org
        customresourcedefinition.apiextensions.k8s.io/boats.example.org condition met
        $ kubectl apply -f boat.yaml
        boat.example.org/dinghy created
        $ kubectl get bo
        NAME OARS
        dinghy 2
        $ kubectl get boat dinghy -o jsonpath={.spec.colour}
        white
        $ kubectl create -f raft.yaml --validate=false
        The Boat "dinghy" is invalid: spec.oars: Invalid value: 0: spec.oars in body should be greater than or equal to 1
        (exit 1)
        $ kubectl scale boat dinghy --replicas=4
        boat.example.org/dinghy scaled
        $ kubectl get boat dinghy -o jsonpath={.spec.oars}
        4
        $ kubectl explain boat.spec.oars
        GROUP: example.org
        KIND: Boat
        VERSION: v1
        FIELD: oars <integer>
        DESCRIPTION:
            <empty>
        $ kubectl delete crd boats.example.org
        customresourcedefinition.apiextensions.k8s.io "boats.example.org" deleted
    "#]]);
}

#[test]
fn a_cluster_does_its_work() {
    let Some(mut t) = Terminal::open("cluster", "up", &["--nodes=3"]) else { return };
    t.until("get serviceaccount default -o name", "serviceaccount/default");
    t.run("create deployment web --image=nginx --replicas=3");
    t.until("get deployment web -o jsonpath={.status.readyReplicas}", "3");
    t.until("get pods -l app=web -o 'jsonpath={.items[*].status.phase}'", "Running Running Running");
    t.run("get deployment web");
    t.run("scale deployment web --replicas=5");
    t.until("get deployment web -o jsonpath={.status.readyReplicas}", "5");
    t.run("set image deployment/web nginx=nginx:2");
    let (code, text) = t.quietly("rollout status deployment/web --timeout=100s");
    assert_eq!(code, 0, "{text}");
    let images = "get pods -l app=web -o 'jsonpath={.items[*].spec.containers[*].image}'";
    t.until(images, "nginx:2 nginx:2 nginx:2 nginx:2 nginx:2");
    t.run("rollout undo deployment/web");
    let (code, text) = t.quietly("rollout status deployment/web --timeout=100s");
    assert_eq!(code, 0, "{text}");
    t.run("get deployment web -o 'jsonpath={.spec.template.spec.containers[0].image}'");
    t.run("delete deployment web");
    t.until("get replicasets,pods -l app=web -o name", "");
    t.run("create namespace team");
    t.run("create configmap kept -n team");
    t.run("delete namespace team --timeout=100s");
    t.run("get configmap kept -n team");
    t.check(expect![[r#"
        $ kubectl create deployment web --image=nginx --replicas=3
        deployment.apps/web created
        $ kubectl get deployment web
        NAME READY UP-TO-DATE AVAILABLE AGE
        web 3/3 3 3 AGE
        $ kubectl scale deployment web --replicas=5
        deployment.apps/web scaled
        $ kubectl set image deployment/web nginx=nginx:2
        deployment.apps/web image updated
        $ kubectl rollout undo deployment/web
        deployment.apps/web rolled back
        $ kubectl get deployment web -o 'jsonpath={.spec.template.spec.containers[0].image}'
        nginx
        $ kubectl delete deployment web
        deployment.apps "web" deleted
        $ kubectl create namespace team
        namespace/team created
        $ kubectl create configmap kept -n team
        configmap/kept created
        $ kubectl delete namespace team --timeout=100s
        namespace "team" deleted
        $ kubectl get configmap kept -n team
        Error from server (NotFound): namespaces "team" not found
        (exit 1)
    "#]]);
}
