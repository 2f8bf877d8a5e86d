package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"sigs.k8s.io/yaml"
)

// reading is what the reference library makes of a text.
type reading struct {
	Text string `json:"text"`
	// JSON is the document, or Error why there is none. Strict is the error of the strict reader.
	JSON   json.RawMessage `json:"json,omitempty"`
	Error  string          `json:"error,omitempty"`
	Strict string          `json:"strict,omitempty"`
	// YAML is the document written again.
	YAML string `json:"yaml,omitempty"`
}

// readYAML reads texts from standard input, one JSON string a line, and writes a reading of each.
func readYAML() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r reading
		if err := json.Unmarshal(lines.Bytes(), &r.Text); err != nil {
			log.Fatal(err)
		}
		document, err := yaml.YAMLToJSON([]byte(r.Text))
		if err != nil {
			r.Error = err.Error()
		} else {
			r.JSON = document
			if _, err := yaml.YAMLToJSONStrict([]byte(r.Text)); err != nil {
				r.Strict = err.Error()
			}
			// its own JSON does not always read back: U+0085 is a line break in YAML
			if written, err := yaml.JSONToYAML(document); err == nil {
				r.YAML = string(written)
			}
		}
		if err := encoder.Encode(r); err != nil {
			log.Fatal(err)
		}
	}
}
