// Writes pairs of JSON and protobuf of Kubernetes objects, made by the reference types themselves, for the tests of
// pintle-codec to compare with. Kinds come on standard input, one a line (group, version, kind, tab-separated); one
// JSON document a line goes to standard output. The same arguments give the same output.
//
//	go run . -seeds 20 < kinds.tsv
//
// With -yaml it reads YAML texts instead, one JSON string a line, and writes what the reference library makes of each.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"os"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// pair is one object in both forms.
type pair struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Seed    int64  `json:"seed"`
	// JSON is the object after one trip through JSON, Proto the same object enveloped.
	JSON  json.RawMessage `json:"json"`
	Proto []byte          `json:"proto"`
	// Read is what reading Proto gives, where that is not JSON again: lists that are empty there are absent here.
	Read json.RawMessage `json:"read,omitempty"`
	// Frame is Proto in a watch event.
	Frame []byte `json:"frame,omitempty"`
	// Wild is the message of the object as it was made: with what a trip through JSON would lose. WildJSON is what
	// reading it gives.
	Wild     []byte          `json:"wild,omitempty"`
	WildJSON json.RawMessage `json:"wildJSON,omitempty"`
}

func main() {
	log.SetFlags(0)
	seeds := flag.Int64("seeds", 4, "objects of each kind")
	small := flag.Bool("small", false, "sparse objects, and no frames and wild forms: for fixtures")
	isYAML := flag.Bool("yaml", false, "read YAML texts instead")
	flag.Parse()
	if *isYAML {
		readYAML()
		return
	}
	scheme := newScheme()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		cells := strings.Split(lines.Text(), "\t")
		gvk := schema.GroupVersionKind{Group: cells[0], Version: cells[1], Kind: cells[2]}
		for seed := int64(0); seed < *seeds; seed++ {
			p, err := makePair(scheme, gvk, seed, *small)
			if err != nil {
				log.Fatalf("%s, seed %d: %v", gvk, seed, err)
			}
			if *small {
				p.Frame, p.Wild, p.WildJSON = nil, nil, nil
			}
			if err := encoder.Encode(p); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionregistrationv1.AddToScheme, apidiscoveryv2.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme,
		eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			log.Fatal(err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"})
	return scheme
}

func makePair(scheme *runtime.Scheme, gvk schema.GroupVersionKind, seed int64, small bool) (*pair, error) {
	made, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	filler := newFiller(rand.New(rand.NewSource(seed)), seed, small)
	filler.fill(made)
	made.GetObjectKind().SetGroupVersionKind(gvk)
	p := &pair{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Seed: seed}

	// once through JSON: what an API server that stores JSON has in its hands
	text, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	settled, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(text, settled); err != nil {
		return nil, err
	}
	if p.JSON, err = json.Marshal(settled); err != nil {
		return nil, err
	}
	settled.GetObjectKind().SetGroupVersionKind(gvk)
	serializer := protobuf.NewSerializer(scheme, scheme)
	var enveloped bytes.Buffer
	if err := serializer.Encode(settled, &enveloped); err != nil {
		return nil, err
	}
	p.Proto = enveloped.Bytes()
	body, err := settled.(message).Marshal()
	if err != nil {
		return nil, err
	}
	if p.Read, err = readBack(scheme, gvk, body); err != nil {
		return nil, err
	}
	if bytes.Equal(p.Read, p.JSON) {
		p.Read = nil
	}
	if p.Frame, err = frame(scheme, p.Proto); err != nil {
		return nil, err
	}

	wild, ok := made.(message)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", made)
	}
	if p.Wild, err = wild.Marshal(); err != nil {
		return nil, err
	}
	if p.WildJSON, err = readBack(scheme, gvk, p.Wild); err != nil {
		return nil, err
	}
	return p, nil
}

// readBack is the JSON of what a message is read as.
func readBack(scheme *runtime.Scheme, gvk schema.GroupVersionKind, body []byte) ([]byte, error) {
	read, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := read.(message).Unmarshal(body); err != nil {
		return nil, err
	}
	read.GetObjectKind().SetGroupVersionKind(gvk)
	return json.Marshal(read)
}

type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// frame is a watch event around an enveloped object, as it stands in a stream.
func frame(scheme *runtime.Scheme, enveloped []byte) ([]byte, error) {
	var out bytes.Buffer
	framer := protobuf.LengthDelimitedFramer.NewFrameWriter(&out)
	stream := streaming.NewEncoder(framer, protobuf.NewRawSerializer(scheme, scheme))
	event := &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: enveloped}}
	if err := stream.Encode(event); err != nil {
		return nil, err
	}
	return io.ReadAll(&out)
}
