// Reads an OpenAPI document as JSON from standard input and writes it in the protobuf form of gnostic, for the tests of
// pintle-openapi to compare with.
//
//	go run . v2 < document.json
package main

import (
	"io"
	"log"
	"os"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
)

func main() {
	log.SetFlags(0)
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	var document proto.Message
	switch os.Args[1] {
	case "v2":
		document, err = openapi_v2.ParseDocument(text)
	case "v3":
		document, err = openapi_v3.ParseDocument(text)
	default:
		log.Fatalf("what is %q?", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
	message, err := proto.MarshalOptions{Deterministic: true}.Marshal(document)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(message); err != nil {
		log.Fatal(err)
	}
}
