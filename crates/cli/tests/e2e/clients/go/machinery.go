package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

var machineryChecks = []check{
	{"shared informers", sharedInformers},
	{"dynamic informers", dynamicInformers},
	{"leader election", elections},
	{"events", events},
}

// told collects what handlers hear.
type told chan string

func (t told) handlers(prefix string) cache.ResourceEventHandlerFuncs {
	tell := func(what string, object any) {
		if last, isLast := object.(cache.DeletedFinalStateUnknown); isLast {
			object = last.Obj
		}
		if head, isObject := object.(metav1.Object); isObject && head.GetLabels()["team"] == prefix {
			t <- what + " " + head.GetName()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("updated", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	}
}

func (t told) expect(ctx context.Context, wanted ...string) error {
	for _, next := range wanted {
		select {
		case got := <-t:
			if got != next {
				return fmt.Errorf("heard %q, want %q", got, next)
			}
		case <-ctx.Done():
			return fmt.Errorf("never heard %q", next)
		}
	}
	return nil
}

// life lets an object come, change and go.
func (e *env) life(name, team string) error {
	maps := e.client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(e.ctx, e.configMap(name, team), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data["n"] = "1"
	if _, err = maps.Update(e.ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return maps.Delete(e.ctx, made.Name, metav1.DeleteOptions{})
}

func sharedInformers(e *env) error {
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	maps := e.client.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Create(e.ctx, e.configMap("there", "informed"), metav1.CreateOptions{}); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(e.client, 0)
	informer := factory.Core().V1().ConfigMaps()
	heard := make(told, 100)
	if _, err := informer.Informer().AddEventHandler(heard.handlers(e.prefix + "informed")); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if _, err := informer.Lister().ConfigMaps(namespace).Get(e.prefix + "there"); err != nil {
		return err
	}
	if err := e.life("informed", "informed"); err != nil {
		return err
	}
	name := e.prefix + "informed"
	err := heard.expect(ctx, "added "+e.prefix+"there", "added "+name, "updated "+name, "deleted "+name)
	return errors.Join(err, maps.Delete(e.ctx, e.prefix+"there", metav1.DeleteOptions{}))
}

func dynamicInformers(e *env) error {
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	config := *e.config
	config.ContentType, config.AcceptContentTypes = "", ""
	client, err := dynamic.NewForConfig(&config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	heard := make(told, 100)
	informer := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Informer()
	if _, err = informer.AddEventHandler(heard.handlers(e.prefix + "dynamic")); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err = e.life("dynamic", "dynamic"); err != nil {
		return err
	}
	name := e.prefix + "dynamic"
	return heard.expect(ctx, "added "+name, "updated "+name, "deleted "+name)
}

func elections(e *env) error {
	heard := make(told, 100)
	elect := func(ctx context.Context, identity string) error {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, e.prefix+"election",
			e.client.CoreV1(), e.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
		if err != nil {
			return err
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { heard <- identity + " leads" },
				OnStoppedLeading: func() { heard <- identity + " stops" },
			},
		})
		if err == nil {
			go elector.Run(ctx)
		}
		return err
	}
	first, stopFirst := context.WithCancel(e.ctx)
	defer stopFirst()
	second, stopSecond := context.WithCancel(e.ctx)
	defer stopSecond()
	if err := errors.Join(elect(first, "one"), heard.expect(e.ctx, "one leads"), elect(second, "two")); err != nil {
		return err
	}
	stopFirst()
	return heard.expect(e.ctx, "one stops", "two leads")
}

func events(e *env) error {
	broadcaster := record.NewBroadcaster(record.WithContext(e.ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: e.client.CoreV1().Events("")})
	object := e.configMap("eventful", "events")
	object.Namespace, object.UID = namespace, "e2e"
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "e2e"})
	for range 3 {
		recorder.Event(object, corev1.EventTypeNormal, "Tried", "the same again")
	}
	selector := metav1.ListOptions{FieldSelector: "involvedObject.name=" + object.Name}
	for e.ctx.Err() == nil {
		list, err := e.client.CoreV1().Events(namespace).List(e.ctx, selector)
		if err != nil {
			return err
		}
		if len(list.Items) == 1 && list.Items[0].Count == 3 {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("three equal events did not become one with a count")
}
