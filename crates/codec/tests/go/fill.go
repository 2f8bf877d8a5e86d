package main

import (
	"math"
	"math/rand"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler fills objects with random content that has many zero values in it: absent, empty and zero are what the two
// forms tell apart differently.
type filler struct {
	rand *rand.Rand
	// absent is how likely a pointer, list or map is nil, and zero how likely a scalar is zero.
	absent, zero float64
	depthMax     int
	itemsMax     int
	depth        int
	schemaDepth  int
}

func newFiller(r *rand.Rand, seed int64, small bool) *filler {
	f := &filler{rand: r, depthMax: 14, itemsMax: 3}
	// the first object is all zero, the second has everything set, the others are in between
	switch seed % 4 {
	case 0:
		f.absent, f.zero = float64(min(seed, 1))*0.8+float64(1-min(seed, 1)), float64(min(seed, 1))*0.8+float64(1-min(seed, 1))
	case 1:
		f.absent, f.zero = 0.1, 0.05
	case 2:
		f.absent, f.zero = 0.3, 0.9
	case 3:
		f.absent, f.zero = 0.5, 0.4
	}
	if seed == 1 {
		f.absent, f.zero = 0, 0
	}
	if small {
		f.itemsMax = 1
		f.depthMax = 9
		if seed > 0 {
			f.absent = max(f.absent, 0.55)
		}
	}
	return f
}

func (f *filler) fill(object any) { f.value(reflect.ValueOf(object).Elem()) }

func (f *filler) is(chance float64) bool { return f.rand.Float64() < chance }

func (f *filler) value(v reflect.Value) {
	f.depth++
	defer func() { f.depth-- }()
	if f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!f.is(max(f.zero, 0.3)))
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(f.integer(v.Type().Bits()))
	case reflect.Float64:
		if !f.is(f.zero) {
			v.SetFloat(math.Round(f.rand.NormFloat64()*1000) / 8)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Pointer:
		if f.depth < f.depthMax && !f.is(f.absent) {
			v.Set(reflect.New(v.Type().Elem()))
			f.value(v.Elem())
		}
	case reflect.Slice:
		f.slice(v)
	case reflect.Map:
		if f.depth >= f.depthMax || f.is(f.absent) {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for n := f.rand.Intn(f.itemsMax + 1); n > 0; n-- {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.value(key)
			f.value(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if v.Type().Field(i).IsExported() {
				f.value(v.Field(i))
			}
		}
	default:
		panic("no way to fill " + v.Type().String())
	}
}

func (f *filler) slice(v reflect.Value) {
	if f.depth >= f.depthMax || f.is(f.absent) {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		content := make([]byte, f.rand.Intn(12))
		f.rand.Read(content)
		v.SetBytes(content)
		return
	}
	n := f.rand.Intn(f.itemsMax + 1)
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := 0; i < n; i++ {
		f.value(v.Index(i))
	}
}

func (f *filler) integer(bits int) int64 {
	if f.is(f.zero) {
		return 0
	}
	n := int64(f.rand.Uint64()) >> f.rand.Intn(64)
	if bits == 32 {
		return int64(int32(n))
	}
	return n
}

func (f *filler) text() string {
	if f.is(f.zero) {
		return ""
	}
	const runes = "abcdefghijklmnopqrstuvwxyz-./0123456789 \"\\<&>\n\té世😀"
	letters := []rune(runes)
	text := make([]rune, 1+f.rand.Intn(9))
	for i := range text {
		text[i] = letters[f.rand.Intn(len(letters))]
	}
	return string(text)
}

func (f *filler) time() time.Time {
	if f.is(f.zero) {
		return time.Time{}
	}
	return time.Unix(f.rand.Int63n(8_000_000_000)-2_000_000_000, f.rand.Int63n(1_000_000_000)).UTC()
}

// special fills types that have a form of their own on the wire.
func (f *filler) special(v reflect.Value) bool {
	switch at := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
	case *metav1.Time:
		*at = metav1.Time{Time: f.time()}
	case *metav1.MicroTime:
		*at = metav1.MicroTime{Time: f.time()}
	case *resource.Quantity:
		f.quantity(at)
	case *intstr.IntOrString:
		if f.is(0.5) {
			*at = intstr.FromInt32(int32(f.integer(32)))
		} else {
			*at = intstr.FromString(f.text())
		}
	case *runtime.RawExtension:
		at.Raw = f.document()
	case *metav1.FieldsV1:
		at.Raw = []byte(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"k:{\"name\":\"x\"}":{}}}`)
	case *apiextensionsv1.JSON:
		at.Raw = f.document()
	case *apiextensionsv1.JSONSchemaProps:
		// a schema in a schema: the depth alone would not keep these small
		if f.schemaDepth >= 2 {
			at.Type = f.text()
			return true
		}
		f.schemaDepth++
		defer func() { f.schemaDepth-- }()
		for i := 0; i < v.NumField(); i++ {
			if v.Field(i).Kind() == reflect.Slice && v.Field(i).Type().Elem() == v.Type() && f.is(0.6) {
				continue
			}
			f.value(v.Field(i))
		}
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		at.Allows = f.is(0.5)
		if f.is(0.5) {
			at.Allows, at.Schema = true, f.schema()
		}
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		if f.is(0.5) {
			at.Schema = f.schema()
		} else {
			at.JSONSchemas = []apiextensionsv1.JSONSchemaProps{*f.schema(), *f.schema()}
		}
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		if f.is(0.5) {
			at.Schema = f.schema()
		} else {
			at.Property = []string{f.text(), f.text()}
		}
	default:
		return false
	}
	return true
}

func (f *filler) schema() *apiextensionsv1.JSONSchemaProps {
	props := &apiextensionsv1.JSONSchemaProps{}
	f.fill(props)
	return props
}

func (f *filler) quantity(at *resource.Quantity) {
	if f.is(f.zero) {
		return
	}
	texts := []string{"0", "1", "100m", "1.5", "1.5Gi", "1024Mi", "512Ki", "2e3", "1E", "-3", "1n", "0.5Ki", "1000", "12345678901234567"}
	*at = resource.MustParse(texts[f.rand.Intn(len(texts))])
}

// document is JSON whose members are sorted; mostly an object.
func (f *filler) document() []byte {
	if f.is(f.absent) {
		return nil
	}
	texts := []string{`{}`, `{"a":1}`, `{"a":{"b":[1,"x",null,true]},"c":-2.5}`, `[1,2]`, `"text"`, `12`, `false`}
	return []byte(texts[f.rand.Intn(len(texts))])
}
