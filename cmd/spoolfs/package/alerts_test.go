package packaging_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// alertCase is when an alert fires, and when not: the series of instance bad have it
// fire at a time, and not at an earlier one; those of instance good never do. Values are
// written as promtool wants them, one a minute, which begins at 1970.
type alertCase struct {
	bad, good map[string]string
	at        string
	before    string // empty if it fires at once
}

var alertCases = map[string]alertCase{
	"SpoolfsDown":         {series("up", "0x20"), series("up", "1x20"), "10m", "3m"},
	"SpoolfsTakesNoFiles": {series("spoolfs_ready", "0x20"), series("spoolfs_ready", "1x20"), "5m", "1m"},
	"SpoolfsNotAlive":     {series("spoolfs_live", "0x20"), series("spoolfs_live", "1x20"), "5m", "0m"},
	"SpoolfsProblem": {
		series(`spoolfs_health_problem{level="critical",code="x"}`, "1x20"),
		series(`spoolfs_health_problem{level="warning",code="x"}`, "1x20"), "10m", "3m"},
	"SpoolfsBrokerAway":  {series(`spoolfs_away_seconds{route="r"}`, "901x5"), series(`spoolfs_away_seconds{route="r"}`, "900x5"), "1m", ""},
	"SpoolfsOldMessages": {series(`spoolfs_queue_oldest_age_seconds{route="r"}`, "3601x5"), series(`spoolfs_queue_oldest_age_seconds{route="r"}`, "3600x5"), "1m", ""},
	"SpoolfsFull": {
		series("spoolfs_queue_free_bytes", "19x20", "spoolfs_queue_bytes", "81x20"),
		series("spoolfs_queue_free_bytes", "20x20", "spoolfs_queue_bytes", "80x20"), "10m", "3m"},
	"SpoolfsFullSoon": {series("spoolfs_queue_free_bytes", "10000-60x100"), series("spoolfs_queue_free_bytes", "100000-60x100"), "90m", "5m"},
	"SpoolfsDeadLetters": {
		series("spoolfs_dead_letter_messages", "0x30", "spoolfs_partial_files", "1x30"),
		series("spoolfs_dead_letter_messages", "0x30", "spoolfs_partial_files", "0x30"), "15m", "5m"},
	"SpoolfsErrors":        {series("spoolfs_panics_total", "0x4 1x20"), series("spoolfs_panics_total", "7x25"), "10m", "4m"},
	"SpoolfsDies":          {series("spoolfs_keeper_deaths_total", "0x10 5x60"), series("spoolfs_keeper_deaths_total", "0x10 2x60"), "30m", "9m"},
	"SpoolfsUpgradeFailed": {series("spoolfs_keeper_upgrade_failures_total", "0x4 1x20"), series("spoolfs_keeper_upgrade_failures_total", "1x25"), "10m", "4m"},
	"SpoolfsStoreDamaged":  {series("spoolfs_store_missing_total", "0x4 1x20"), series("spoolfs_store_missing_total", "1x25"), "10m", "4m"},
	"SpoolfsCertificateEnds": {
		series(`spoolfs_tls_certificate_expiry_timestamp_seconds{certificate="client"}`, "86400x5"),
		series(`spoolfs_tls_certificate_expiry_timestamp_seconds{certificate="none"}`, "0x5", `spoolfs_tls_certificate_expiry_timestamp_seconds{certificate="client"}`, "1296000x5"), "1m", ""},
}

// series are names and values.
func series(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// anything is an object of JSON, which is YAML too.
type anything map[string]any

// TestAlerts: promtool finds each expression of the rules and of the dashboard to be
// PromQL, and each alert fires when it is to, behind its time, and alone. It is a part
// of "make chaos", which installs promtool.
func TestAlerts(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("SPOOLFS_CHAOS") == "" {
		t.Skip(`there is no promtool: see "make chaos"`)
	} else if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	panels := filepath.Join(dir, "panels.json")
	writeJSON(t, panels, anything{"groups": []anything{{"name": "dashboard", "rules": panelRules(t)}}})
	tests := filepath.Join(dir, "tests.json")
	writeJSON(t, tests, anything{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": alertTests(t, alertNames(t))})
	for _, args := range [][]string{{"check", "rules", rules, panels}, {"test", "rules", tests}} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// panelRules are the expressions of the dashboard as rules, with Grafana's variables
// filled in.
func panelRules(t *testing.T) (all []anything) {
	for i, e := range dashboardExpressions(t) {
		e = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", ".*", "$instance", ".*").Replace(e)
		all = append(all, anything{"record": fmt.Sprint("panel:", i), "expr": e})
	}
	return all
}

func alertNames(t *testing.T) (all []string) {
	for line := range strings.Lines(read(t, "monitoring/alerts.yaml")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); ok {
			all = append(all, name)
		}
	}
	return all
}

// alertTests are the cases as promtool has them.
func alertTests(t *testing.T, names []string) (all []anything) {
	if len(names) != len(alertCases) {
		t.Errorf("%d alerts, and %d cases", len(names), len(alertCases))
	}
	for _, name := range names {
		c, ok := alertCases[name]
		if !ok {
			t.Errorf("there is no case for %s", name)
			continue
		}
		var input []anything
		for instance, series := range map[string]map[string]string{"bad": c.bad, "good": c.good} {
			for metric, values := range series {
				input = append(input, anything{"series": onInstance(metric, instance), "values": values})
			}
		}
		all = append(all, anything{"interval": "1m", "input_series": input, "promql_expr_test": c.expected(name)})
	}
	return all
}

func onInstance(metric, instance string) string {
	name, labels, _ := strings.Cut(strings.TrimSuffix(metric, "}"), "{")
	return fmt.Sprintf(`%s{job="spoolfs",instance=%q,%s}`, name, instance, labels)
}

// expected is what fires at the two times.
func (c alertCase) expected(alert string) []anything {
	const firing = `count by (alertname, instance) (ALERTS{alertstate="firing"})`
	all := []anything{{"expr": firing, "eval_time": c.at, "exp_samples": []anything{
		{"labels": fmt.Sprintf(`{alertname=%q, instance="bad"}`, alert), "value": 1},
	}}}
	if c.before != "" {
		all = append(all, anything{"expr": firing, "eval_time": c.before, "exp_samples": []anything{}})
	}
	return all
}
