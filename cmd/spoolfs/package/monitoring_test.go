package packaging_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"
)

// TestMonitoring: dashboard and alerts ask for nothing that a running daemon does not
// show, neither metrics nor labels, and for all of ours but those of notShown. Whether
// the expressions are PromQL is a matter of TestAlerts.
func TestMonitoring(t *testing.T) {
	shown := runningMetrics(t)
	asked := map[string]bool{}
	for _, e := range append(dashboardExpressions(t), alertExpressions(t)...) {
		for metric, labels := range checkExpression(t, e) {
			asked[family(metric)] = true
			if shown[metric] == nil {
				t.Errorf("%s: the daemon shows no %s", e, metric)
				continue
			}
			for _, label := range labels {
				if !shown[metric][label] {
					t.Errorf("%s: %s has no label %s", e, metric, label)
				}
			}
		}
	}
	for metric := range shown {
		name := family(metric)
		if _, left := notShown[name]; left == asked[name] && strings.HasPrefix(name, "spoolfs_") {
			t.Errorf("%s: asked for %t, in notShown %t", name, asked[name], left)
		}
	}
}

// notShown are metrics that neither the dashboard nor an alert asks for, with the
// reason.
var notShown = map[string]string{
	"spoolfs_connection_failures_total": "publish_failures_total and away_seconds tell more",
	"spoolfs_connections_total":         "reconnects_total without the first one",
	"spoolfs_draining":                  "ready is 0 then, and health_problem names it",
	"spoolfs_ingested_dead_total":       "dead_letter_messages is what is left to do",
	"spoolfs_ingested_partial_total":    "partial_files is what is left to do",
	"spoolfs_ingested_repeats_total":    "for who asks why there are fewer messages than lines",
	"spoolfs_janitor_changed_total":     "a file that is taken once more, with the same ids",
	"spoolfs_janitor_dead_total":        "dead_letter_messages is what is left to do",
	"spoolfs_janitor_partial_total":     "partial_files is what is left to do",
	"spoolfs_keeper_last_gap_seconds":   "keeper_worst_gap_seconds is shown",
	"spoolfs_keeper_upgrades_total":     "build_info shows the versions",
	"spoolfs_keeper_uptime_seconds":     "for who looks at one node",
	"spoolfs_keeper_workers_total":      "keeper_deaths_total is shown",
	"spoolfs_last_error_age_seconds":    "for who looks at one node",
	"spoolfs_late_messages_total":       "for who asks about the order of messages",
	"spoolfs_next_attempt_seconds":      "less than half a minute at all times",
	"spoolfs_publisher_state":           "connection_up, away_seconds and paused_seconds are shown",
	"spoolfs_unknown_endings_total":     "for who asks why a file of a killed writer was published",
	"spoolfs_uptime_seconds":            "for who looks at one node",
	"spoolfs_worker_uptime_seconds":     "for who looks at one node",
}

// family is the name of a metric without what a histogram adds.
func family(metric string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		metric = strings.TrimSuffix(metric, suffix)
	}
	return metric
}

// runningMetrics are the metrics of a daemon that has seen trouble, with their labels.
func runningMetrics(t *testing.T) map[string]map[string]bool {
	dir := t.TempDir()
	mountpoint := filepath.Join(dir, "mnt")
	if err := os.Mkdir(mountpoint, 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(one(t, "first/out/package/bin/spoolfs"), "mount", "--config=/dev/null", "--store", filepath.Join(dir, "store"),
		"--broker", "amqp://guest:guest@127.0.0.1:1/", "--exchange", "x", "--max-messages", "2", mountpoint)
	cmd.Stderr = &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // a worker ends with its keeper
		<-ended
		_ = unix.Unmount(mountpoint, unix.MNT_DETACH)
		if t.Failed() {
			t.Logf("%s", &log)
		}
	})
	file := filepath.Join(mountpoint, ".status", "metrics")
	until(t, "mounted", func() bool { _, err := os.Stat(file); return err == nil })
	// A dead letter, a message that waits, and a file that is not taken.
	for i, content := range []string{"garbage\n", `{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "a/b"}` + "\n"} {
		if err := os.WriteFile(filepath.Join(mountpoint, fmt.Sprint(i)), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "full", func() bool { return os.WriteFile(filepath.Join(mountpoint, "more"), nil, 0o644) != nil })
	var text string
	until(t, "in trouble", func() bool {
		text = read(t, file)
		return strings.Contains(text, "\nspoolfs_health_problem{") && strings.Contains(text, "\nspoolfs_publish_failures_total{") && strings.Contains(text, "\nspoolfs_rejected_total{")
	})
	return parseMetrics(text)
}

var sampleLine = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? `)

func parseMetrics(text string) map[string]map[string]bool {
	shown := map[string]map[string]bool{"up": {"job": true}} // Prometheus's own
	for _, line := range lines(text) {
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if shown[m[1]] == nil {
			shown[m[1]] = map[string]bool{"job": true, "instance": true}
		}
		for _, label := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(m[2], -1) {
			shown[m[1]][label[1]] = true
		}
	}
	return shown
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not %s within a minute", what)
		}
	}
}

// dashboardExpressions are what the panels ask for. Each panel must be whole.
func dashboardExpressions(t *testing.T) (all []string) {
	var dashboard struct {
		UID, Title string
		Panels     []struct {
			ID          int
			Type, Title string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct {
				RefID, Expr, LegendFormat string
			}
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "monitoring/grafana.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	variables := "datasource job instance"
	for _, v := range dashboard.Templating.List {
		if !strings.Contains(variables, v.Name) {
			t.Errorf("variable %s", v.Name)
		}
	}
	if len(all) < 20 || dashboard.UID == "" || len(dashboard.Templating.List) != 3 {
		t.Errorf("the dashboard %s has %d expressions", dashboard.UID, len(all))
	}
	return all
}

// alertExpressions are those of the rules, which must have all that a rule may have
// and nothing else.
func alertExpressions(t *testing.T) (all []string) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "monitoring/alerts.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			_, err := time.ParseDuration(r.For)
			if r.Alert == "" || r.For != "" && err != nil || r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
				!slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("rule %+v", r)
			}
			all = append(all, r.Expr)
		}
	}
	return all
}

var (
	metricName = regexp.MustCompile(`\b(?:spoolfs_|process_|go_)[a-z_]+|\bup\b`)
	selector   = regexp.MustCompile(`^\{([^}]*)\}`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)`)
	labelName  = regexp.MustCompile(`[a-z_]+`)
)

// checkExpression returns the metrics of an expression, each with the labels that it
// must have.
func checkExpression(t *testing.T, e string) map[string][]string {
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(e, pair[:1]) != strings.Count(e, pair[1:]) {
			t.Errorf("%s: %s do not match", e, pair)
		}
	}
	asked := map[string][]string{}
	for _, at := range metricName.FindAllStringIndex(e, -1) {
		metric := e[at[0]:at[1]]
		asked[metric] = append(asked[metric], "job")
		if s := selector.FindStringSubmatch(e[at[1]:]); s != nil {
			for _, m := range regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`).FindAllStringSubmatch(s[1], -1) {
				asked[metric] = append(asked[metric], m[1])
			}
		}
	}
	if len(asked) == 0 {
		t.Errorf("%s asks for no metric", e)
	}
	for _, by := range grouping.FindAllStringSubmatch(e, -1) {
		for metric := range asked {
			asked[metric] = append(asked[metric], labelName.FindAllString(by[1], -1)...)
		}
	}
	return asked
}
