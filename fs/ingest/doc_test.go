package ingest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPackage_IsPure holds the package to imports by which it cannot do I/O, log
// or draw a random number, and to what of package time does not read the clock.
func TestPackage_IsPure(t *testing.T) {
	imports := []string{
		"bytes", "crypto/md5", "crypto/sha256", "crypto/sha512", "encoding/base64", "encoding/hex", "fmt",
		"github.com/agnivade/levenshtein", "iter", "maps", "math",
		"slices",
		"spoolfs/queue", "strconv", "strings", "time", "unicode/utf16", "unicode/utf8",
	}
	ofTime := []string{"Date", "Duration", "Month", "RFC3339Nano", "Time", "UTC", "Unix"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(imports, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" && !slices.Contains(ofTime, sel.Sel.Name) {
					t.Errorf("%s uses time.%s", name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}
