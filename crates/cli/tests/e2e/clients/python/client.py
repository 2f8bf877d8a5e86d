"""Tries the Python client against the server of $KUBECONFIG; prints `ok NAME` or `FAIL NAME: why` for each thing."""

import sys
import threading
import traceback

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

NAMESPACE = "default"
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def config_map(name, team="python"):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"team": team}), data={"n": "0"})


def refused(status, call, *arguments, **options):
    """The exception of a call that must be refused."""
    try:
        call(*arguments, **options)
    except ApiException as refusal:
        assert refusal.status == status, refusal
        return refusal
    raise AssertionError("it was accepted")


@check
def create_update_delete():
    core = client.CoreV1Api()
    made = core.create_namespaced_config_map(NAMESPACE, config_map("crud"))
    changed = core.patch_namespaced_config_map("crud", NAMESPACE, {"data": {"n": "1"}})
    assert changed.data["n"] == "1" and changed.metadata.resource_version != made.metadata.resource_version
    refused(409, core.replace_namespaced_config_map, "crud", NAMESPACE, made)
    refused(409, core.create_namespaced_config_map, NAMESPACE, config_map("crud"))
    core.delete_namespaced_config_map("crud", NAMESPACE)
    refused(404, core.read_namespaced_config_map, "crud", NAMESPACE)


@check
def pages():
    core = client.CoreV1Api()
    for n in range(5):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{n}", "pages"))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(NAMESPACE, label_selector="team=pages", limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names == [f"page-{n}" for n in range(5)], names
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="team=pages")
    assert core.list_namespaced_config_map(NAMESPACE, label_selector="team=pages").items == []


@check
def watching():
    core = client.CoreV1Api()
    since = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def work():
        core.create_namespaced_config_map(NAMESPACE, config_map("watched", "watch"))
        core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"n": "1"}})
        core.delete_namespaced_config_map("watched", NAMESPACE)

    worker = threading.Thread(target=work)
    worker.start()
    told, stream = [], watch.Watch()
    options = {"label_selector": "team=watch", "resource_version": since, "timeout_seconds": 60}
    for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, **options):
        told.append(f"{event['type']} {event['object'].metadata.name}")
        if event["type"] == "DELETED":
            stream.stop()
    worker.join()
    assert told == ["ADDED watched", "MODIFIED watched", "DELETED watched"], told


@check
def invalid_objects():
    core = client.CoreV1Api()
    container = {"name": "Bad_Name", "image": "nginx"}
    pod = {"metadata": {"name": "bad"}, "spec": {"containers": [container]}}
    refusal = refused(422, core.create_namespaced_pod, NAMESPACE, pod)
    assert "spec.containers[0].name" in refusal.body, refusal.body
    refused(400, core.list_namespaced_config_map, NAMESPACE, label_selector="a===b")


@check
def scale():
    apps = client.AppsV1Api()
    labels = {"app": "py"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    apps.create_namespaced_deployment(NAMESPACE, {"metadata": {"name": "py"}, "spec": spec})
    apps.patch_namespaced_deployment_scale("py", NAMESPACE, {"spec": {"replicas": 3}})
    made = apps.read_namespaced_deployment("py", NAMESPACE)
    assert made.spec.replicas == 3 and made.spec.strategy.rolling_update.max_surge == "25%", made.spec
    apps.delete_namespaced_deployment("py", NAMESPACE)


@check
def dynamic_client():
    resources = dynamic.DynamicClient(client.ApiClient())
    maps = resources.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dynamic"}, "data": {"n": "1"}}
    maps.server_side_apply(body=body, name="dynamic", namespace=NAMESPACE, field_manager="python")
    made = maps.get(name="dynamic", namespace=NAMESPACE)
    assert made.metadata.managedFields[0].manager == "python", made
    maps.delete(name="dynamic", namespace=NAMESPACE)


@check
def what_the_server_is():
    assert client.VersionApi().get_code().minor == "35"
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    assert {"apps", "batch", "rbac.authorization.k8s.io"} <= groups, groups
    review = client.V1SelfSubjectAccessReview(
        spec={"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": NAMESPACE}}
    )
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed


def main():
    config.load_kube_config()
    failed = False
    for function in CHECKS:
        try:
            function()
            print("ok", function.__name__)
        except Exception:
            failed = True
            print(f"FAIL {function.__name__}: {traceback.format_exc()}")
    sys.exit(failed)


main()
