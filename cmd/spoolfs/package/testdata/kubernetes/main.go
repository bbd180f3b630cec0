// Program kubernetes reads the objects in files as the API server does, and refuses
// fields that their kind does not have, and values of another type.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func main() {
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, path := range os.Args[1:] {
		err = errors.Join(err, check(path, decoder))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check decodes each object of a file, and prints its kind.
func check(path string, decoder runtime.Decoder) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for docs := yaml.NewYAMLReader(bufio.NewReader(f)); ; {
		text, err := docs.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		_, kind, err := decoder.Decode(text, nil, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Println(kind.Kind)
	}
}
