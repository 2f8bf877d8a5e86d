// Command client tries client-go against the server of $KUBECONFIG and prints `ok NAME` or `FAIL NAME: why` for each thing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long one check may take.
const patience = 60 * time.Second

const namespace = "default"

// env is what a check works with.
type env struct {
	ctx    context.Context
	config *rest.Config
	client kubernetes.Interface
	// prefix begins the names of a run's objects.
	prefix string
}

type check struct {
	name string
	run  func(e *env) error
}

func main() {
	content := flag.String("content", "json", "json or protobuf")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Println("FAIL kubeconfig:", err)
		os.Exit(1)
	}
	if *content == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	failed := false
	for _, c := range append(callChecks, machineryChecks...) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		client, err := kubernetes.NewForConfig(config)
		if err == nil {
			err = c.run(&env{ctx: ctx, config: config, client: client, prefix: *content + "-"})
		}
		cancel()
		if err != nil {
			failed = true
			fmt.Printf("FAIL %s %s: %v\n", *content, c.name, err)
			continue
		}
		fmt.Printf("ok %s %s\n", *content, c.name)
	}
	if failed {
		os.Exit(1)
	}
}

// configMap is an object to work on.
func (e *env) configMap(name, team string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: e.prefix + name, Labels: map[string]string{"team": e.prefix + team}},
		Data:       map[string]string{"n": "0"},
	}
}

// want compares.
func want[T comparable](what string, got, wanted T) error {
	if got != wanted {
		return fmt.Errorf("%s: got %v, want %v", what, got, wanted)
	}
	return nil
}
