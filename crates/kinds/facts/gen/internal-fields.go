// Prints how the reference implementation shows its internal types as JSON: the fields in declaration order, the key
// each is shown under, and the name it has on the wire. Run inside a module that requires k8s.io/kubernetes at the
// version wanted: go run . > internal-fields.tsv
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
)

func short(t reflect.Type) string {
	p := t.PkgPath()
	for _, prefix := range []string{"k8s.io/kubernetes/pkg/apis/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/apimachinery/pkg/", "k8s.io/api/", "k8s.io/"} {
		p = strings.TrimPrefix(p, prefix)
	}
	return p + "." + t.Name()
}

func tag(f reflect.StructField) (name string, omitempty, inline bool) {
	parts := strings.Split(f.Tag.Get("json"), ",")
	name = parts[0]
	for _, o := range parts[1:] {
		omitempty = omitempty || o == "omitempty"
		inline = inline || o == "inline"
	}
	return
}

func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Ptr:
		return "*" + kind(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + kind(t.Elem())
	case reflect.Map:
		return "{}" + kind(t.Elem())
	case reflect.Struct:
		return short(t)
	case reflect.Interface:
		return "any"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint8, reflect.Int8, reflect.Uint16:
		return "int"
	default:
		return t.Kind().String()
	}
}

func base(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Ptr || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// wire fields of an external type, by lower-cased Go name, embedded ones included
func wire(t reflect.Type, out map[string]reflect.StructField, names map[string]string) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		n, _, inline := tag(f)
		if f.Anonymous && (inline || n == "") && base(f.Type).Kind() == reflect.Struct {
			wire(base(f.Type), out, names)
			out[strings.ToLower(f.Name)] = f
			names[strings.ToLower(f.Name)] = ""
			continue
		}
		out[strings.ToLower(f.Name)] = f
		names[strings.ToLower(f.Name)] = n
	}
}

func main() {
	s := legacyscheme.Scheme
	seen := map[reflect.Type]bool{}
	var rows []string
	missing := 0
	var walk func(in, ext reflect.Type)
	walk = func(in, ext reflect.Type) {
		in = base(in)
		if ext != nil {
			ext = base(ext)
		}
		if in.Kind() != reflect.Struct || seen[in] {
			return
		}
		switch short(in) {
		case "api/resource.Quantity", "util/intstr.IntOrString", "meta/v1.Time", "meta/v1.MicroTime", "runtime.RawExtension", "runtime.Unknown", "meta/v1.FieldsV1", "time.Time":
			return
		}
		if !strings.HasPrefix(in.PkgPath(), "k8s.io/") {
			return
		}
		seen[in] = true
		fields, names := map[string]reflect.StructField{}, map[string]string{}
		if ext != nil && ext.Kind() == reflect.Struct {
			wire(ext, fields, names)
		}
		for i := 0; i < in.NumField(); i++ {
			f := in.Field(i)
			if f.PkgPath != "" && !f.Anonymous {
				continue
			}
			n, omit, inline := tag(f)
			w, found := fields[strings.ToLower(f.Name)]
			wireName := names[strings.ToLower(f.Name)]
			var extType reflect.Type
			if found {
				extType = w.Type
			}
			embedded := f.Anonymous && (inline || n == "")
			if embedded {
				if extType == nil || base(extType).Kind() != reflect.Struct {
					extType = ext
				}
			} else if !found {
				missing++
			}
			shown := n
			if shown == "" {
				shown = f.Name
			}
			flag := ""
			if omit {
				flag = "\te"
			}
			if embedded {
				shown, wireName = "-", "-"
			} else if wireName == "" {
				wireName = "?"
			}
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s%s", short(in), shown, wireName, kind(f.Type), flag))
			walk(f.Type, extType)
		}
	}
	type pair struct{ in, ext reflect.Type }
	var pairs []pair
	known := s.AllKnownTypes()
	for gvk, t := range known {
		if gvk.Version != runtime.APIVersionInternal {
			continue
		}
		var ext reflect.Type
		best := ""
		for other, e := range known {
			if other.Group == gvk.Group && other.Kind == gvk.Kind && other.Version != runtime.APIVersionInternal &&
				(best == "" || version.CompareKubeAwareVersionStrings(other.Version, best) > 0) {
				best, ext = other.Version, e
			}
		}
		if ext == nil || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" {
			continue
		}
		pairs = append(pairs, pair{t, ext})
	}
	sort.Slice(pairs, func(i, j int) bool { return short(pairs[i].in)+short(pairs[i].ext) < short(pairs[j].in)+short(pairs[j].ext) })
	for _, p := range pairs {
		walk(p.in, p.ext)
	}
	sort.SliceStable(rows, func(i, j int) bool { return strings.SplitN(rows[i], "\t", 2)[0] < strings.SplitN(rows[j], "\t", 2)[0] })
	fmt.Println("# How the reference implementation (v1.35.4) shows its types as JSON, in declaration order: key, name on the wire,")
	fmt.Println("# kind, omitempty. Types without JSON tags show their Go names. Made by gen/internal-fields.go.")
	current := ""
	for _, r := range rows {
		owner, rest, _ := strings.Cut(r, "\t")
		if owner != current {
			fmt.Println(owner)
			current = owner
		}
		fmt.Println("\t" + rest)
	}
	fmt.Fprintln(os.Stderr, "fields without a wire name:", missing)
}
