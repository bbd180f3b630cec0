package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var updateGolden = flag.Bool("update-sr3", false, "write the golden files of import-sr3 anew")

// sr3TestHost has nothing of the machine that runs the test.
var sr3TestHost = sr3Host{
	name: "n1.example.org", configDir: "/home/ada/.config/sr3",
	env: func(name string) (string, bool) { return "/home/ada", name == "HOME" },
}

// TestImportSR3_Golden: configurations of Sarracenia become what they should, no
// password is in them, and ours can be loaded.
func TestImportSR3_Golden(t *testing.T) {
	files, err := filepath.Glob("testdata/import-sr3/cpost/*.conf")
	if err != nil || len(files) < 5 {
		t.Fatalf("files %q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if err := importSR3([]string{file}, sr3TestHost, &stdout, &stderr); err != nil {
				t.Fatal(err)
			}
			checkGolden(t, strings.TrimSuffix(file, ".conf")+".golden", stdout.String())
			if leak := regexp.MustCompile(`s3cr3t|w0rd|pa/ss|t0ps3cret|hunter2|planted`).FindString(stdout.String() + stderr.String()); leak != "" {
				t.Errorf("password %s in\n%s%s", leak, stdout.String(), stderr.String())
			}
			checkAllLines(t, file, stdout.String())
			checkLoads(t, stdout.String())
		})
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	if *updateGolden {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// silent are the lines that are in force without a setting of ours.
var silent = regexp.MustCompile(`^(declare env|include defaults|exchangeDeclare True|tlsRigour normal|persistent$|post_rate_limit 0|retry_ttl None|post_exchangeSplit 0)`)

// checkAllLines: no line of the file is lost without a word.
func checkAllLines(t *testing.T, file, got string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' || silent.MatchString(line) {
			continue
		}
		where := &sr3Line{file: filepath.Base(file), number: i + 1}
		if !regexp.MustCompile(regexp.QuoteMeta(where.where()) + `[ :;]`).MatchString(got) {
			t.Errorf("%s %q is not in\n%s", where.where(), line, got)
		}
	}
}

// checkLoads: the loader takes all that is said, but for what is said to be missing.
func checkLoads(t *testing.T, text string) {
	t.Helper()
	dir := configDir(t, map[string]string{"main.yaml": text})
	_, err := loadFrom(t, dir, "--store", "DIR/store", "DIR/mnt")
	switch {
	case strings.Contains(text, "# broker: ") && err != nil && strings.Contains(err.Error(), "no broker is given"):
	case err != nil:
		t.Errorf("%v in\n%s", err, text)
	}
}

// TestImportSR3_Routes: further files become routes.
func TestImportSR3_Routes(t *testing.T) {
	var stdout, stderr bytes.Buffer
	dir := "testdata/import-sr3/cpost/"
	if err := importSR3([]string{dir + "small.conf", dir + "v2.conf", dir + "v02format.conf"}, sr3TestHost, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "testdata/import-sr3/routes.golden", stdout.String())
	if err := importSR3([]string{dir + "missing.conf"}, sr3TestHost, &stdout, &stderr); codeOf(err) != exitNoInput {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestSR3Duration(t *testing.T) {
	for text, want := range map[string]string{
		"300": "5m", "2d": "2d", "36h": "36h", "1w": "7d", "0.5": "0.5s", "90": "90s", "None": "0s", "off": "0s", "1.5H": "90m", "1M": "1m",
		"": "", "soon": "", "-5": "", "h": "", "1e300": "", "nan": "",
	} {
		got, ok := sr3Duration(text)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, ok, want)
		}
		if d, err := parseDuration(got); ok && (err != nil || d < 0) {
			t.Errorf("%q: %q is no duration: %v", text, got, err)
		}
	}
}

func TestSR3Number(t *testing.T) {
	for text, want := range map[string]float64{"10": 10, "1.5k": 1500, "2ki": 2048, "0.5": 0.5, "3M": 3e6, "": -1, "x": -1, "-1": -1, "inf": -1, "nan": -1} {
		if got, ok := sr3Number(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %g, %v, want %g", text, got, ok, want)
		}
	}
}
