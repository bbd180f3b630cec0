package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestInForce: a worker leaves all settings to the next one, with their origins,
// and passwords, whatever has become of the files.
func TestInForce(t *testing.T) {
	dir := configDir(t, nil)
	file := strings.Replace(goodFile(dir, "allow_exchange: [xs_*, '#x']\nmax_bytes: 1.5G\nrate: 12.5\nttl: 7d\nkeeper: false\n"), "amqp://h", "amqp://u:s3cret@h/", 1)
	path := filepath.Join(dir, "main.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	was, err := loadFrom(t, dir, "--window=7")
	if err != nil {
		t.Fatal(err)
	}
	text, err := was.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("store: /elsewhere\nnonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := decodeMount(text)
	if err != nil {
		t.Fatal(err)
	}
	want := configFields(was)
	for i, f := range configFields(got) {
		if !reflect.DeepEqual(f.value.Interface(), want[i].value.Interface()) {
			t.Errorf("%s is %v, was %v", f.key, f.value, want[i].value)
		}
	}
	if !reflect.DeepEqual(got.origins, was.origins) || !reflect.DeepEqual(got.files.files, was.files.files) {
		t.Errorf("origins %v of %v, were %v of %v", got.origins, got.files.files, was.origins, was.files.files)
	}
	if older, err := decodeMount([]byte(strings.Replace(string(text), `"linger"`, `"was_linger"`, 1))); err != nil || older.Linger != was.Linger {
		t.Errorf("a setting that the former version had not is %v, %v, want its default", older.Linger, err)
	}
}
