package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
)

var callChecks = []check{
	{"create, update, conflict, delete", crud},
	{"lists in pages", pages},
	{"watch", watching},
	{"patches and server-side apply", patches},
	{"deployments and their scale", scales},
	{"refusals", refusals},
	{"discovery and mapping", mapping},
	{"dynamic and metadata alone", dynamics},
}

func crud(e *env) error {
	maps := e.client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(e.ctx, e.configMap("crud", "crud"), metav1.CreateOptions{FieldManager: "e2e"})
	if err != nil {
		return err
	}
	if len(made.ManagedFields) != 1 || made.ManagedFields[0].Manager != "e2e" || made.UID == "" {
		return fmt.Errorf("made %+v", made.ObjectMeta)
	}
	changed := made.DeepCopy()
	changed.Data["n"] = "1"
	if changed, err = maps.Update(e.ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if changed.ResourceVersion == made.ResourceVersion {
		return errors.New("a change has a new version")
	}
	if _, err = maps.Update(e.ctx, made, metav1.UpdateOptions{}); err == nil || !apierrors.IsConflict(err) {
		return fmt.Errorf("an old version: %v", err)
	}
	dry, err := maps.Create(e.ctx, e.configMap("dry", "crud"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || dry.ResourceVersion != "" {
		return fmt.Errorf("dry run: %v %q", err, dry.ResourceVersion)
	}
	wrong := types.UID("other")
	err = maps.Delete(e.ctx, made.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("another UID: %v", err)
	}
	if err = maps.Delete(e.ctx, made.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err = maps.Get(e.ctx, made.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleted: %v", err)
	}
	return nil
}

func pages(e *env) error {
	maps := e.client.CoreV1().ConfigMaps(namespace)
	for i := range 7 {
		if _, err := maps.Create(e.ctx, e.configMap(fmt.Sprint("page-", i), "pages"), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	selector := metav1.ListOptions{LabelSelector: "team=" + e.prefix + "pages"}
	n := 0
	p := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return maps.List(e.ctx, o) }))
	p.PageSize = 3
	err := p.EachListItem(e.ctx, selector, func(runtime.Object) error { n++; return nil })
	if err = errors.Join(err, want("items", n, 7)); err != nil {
		return err
	}
	if err = maps.DeleteCollection(e.ctx, metav1.DeleteOptions{}, selector); err != nil {
		return err
	}
	left, err := maps.List(e.ctx, selector)
	return errors.Join(err, want("left", len(left.Items), 0))
}

func watching(e *env) error {
	maps := e.client.CoreV1().ConfigMaps(namespace)
	list, err := maps.List(e.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	stream, err := maps.Watch(e.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "team=" + e.prefix + "watch"})
	if err != nil {
		return err
	}
	defer stream.Stop()
	made, err := maps.Create(e.ctx, e.configMap("watched", "watch"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data["n"] = "1"
	if _, err = maps.Update(e.ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err = maps.Delete(e.ctx, made.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		select {
		case event := <-stream.ResultChan():
			object, isMap := event.Object.(*corev1.ConfigMap)
			if event.Type != kind || !isMap || object.Name != made.Name {
				return fmt.Errorf("want %s, got %+v", kind, event)
			}
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
	}
	return nil
}

func patches(e *env) error {
	maps := e.client.CoreV1().ConfigMaps(namespace)
	name := e.prefix + "applied"
	ours := applyv1.ConfigMap(name, namespace).WithData(map[string]string{"ours": "1"})
	if _, err := maps.Apply(e.ctx, ours, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	theirs := applyv1.ConfigMap(name, namespace).WithData(map[string]string{"ours": "2"})
	_, err := maps.Apply(e.ctx, theirs, metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("another's field: %v", err)
	}
	if _, err = maps.Apply(e.ctx, theirs, metav1.ApplyOptions{FieldManager: "two", Force: true}); err != nil {
		return err
	}
	merged, err := maps.Patch(e.ctx, name, types.MergePatchType, []byte(`{"data":{"merged":"1"}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	_, err = maps.Patch(e.ctx, name, types.JSONPatchType, []byte(`[{"op":"test","path":"/data/ours","value":"1"}]`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("a test that fails: %v", err)
	}
	return errors.Join(want("ours", merged.Data["ours"], "2"), maps.Delete(e.ctx, name, metav1.DeleteOptions{}))
}

func scales(e *env) error {
	deployments := e.client.AppsV1().Deployments(namespace)
	labels := map[string]string{"app": e.prefix + "web"}
	replicas := int32(2)
	made, err := deployments.Create(e.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: e.prefix + "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	container := made.Spec.Template.Spec.Containers[0]
	if err = want("default", container.ImagePullPolicy, corev1.PullAlways); err != nil {
		return err
	}
	sidecar := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"log"}]}}}}`)
	if made, err = deployments.Patch(e.ctx, made.Name, types.StrategicMergePatchType, sidecar, metav1.PatchOptions{}); err != nil {
		return err
	}
	scale, err := deployments.GetScale(e.ctx, made.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 5
	if _, err = deployments.UpdateScale(e.ctx, made.Name, scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	made, err = deployments.Get(e.ctx, made.Name, metav1.GetOptions{})
	return errors.Join(err, want("containers", len(made.Spec.Template.Spec.Containers), 2), want("replicas", *made.Spec.Replicas, 5),
		deployments.Delete(e.ctx, made.Name, metav1.DeleteOptions{}))
}

func refusals(e *env) error {
	_, err := e.client.CoreV1().Pods(namespace).Create(e.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "Bad_Name"}}, metav1.CreateOptions{})
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || len(status.ErrStatus.Details.Causes) < 2 {
		return fmt.Errorf("a pod without a proper name and containers: %v", err)
	}
	_, err = e.client.CoreV1().ConfigMaps("nowhere").Create(e.ctx, e.configMap("lost", "lost"), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "nowhere" not found`) {
		return fmt.Errorf("no such namespace: %v", err)
	}
	_, err = e.client.CoreV1().ConfigMaps(namespace).List(e.ctx, metav1.ListOptions{ResourceVersion: "18446744073709551615"})
	if err == nil {
		return errors.New("a version that never was")
	}
	return nil
}

func mapping(e *env) error {
	version, err := e.client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	resources, err := restmapper.GetAPIGroupResources(e.client.Discovery())
	if err != nil {
		return err
	}
	mapped, err := restmapper.NewDiscoveryRESTMapper(resources).RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	if err != nil {
		return err
	}
	return errors.Join(want("version", version.Major+"."+version.Minor, "1.35"),
		want("resource", mapped.Resource.Resource, "deployments"),
		want("scope", mapped.Scope.Name(), meta.RESTScopeNameNamespace))
}

func dynamics(e *env) error {
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": e.prefix + "dynamic"},
	}}
	// unstructured objects are JSON, whatever typed ones are
	config := *e.config
	config.ContentType, config.AcceptContentTypes = "", ""
	client, err := dynamic.NewForConfig(&config)
	if err != nil {
		return err
	}
	if _, err = client.Resource(maps).Namespace(namespace).Create(e.ctx, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	heads, err := metadata.NewForConfig(e.config)
	if err != nil {
		return err
	}
	head, err := heads.Resource(maps).Namespace(namespace).Get(context.Background(), made.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	return errors.Join(want("name", head.Name, made.GetName()),
		client.Resource(maps).Namespace(namespace).Delete(e.ctx, made.GetName(), metav1.DeleteOptions{}))
}
