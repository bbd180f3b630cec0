package main

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// notNumbers are the fields of status.json that metrics show otherwise.
var notNumbers = map[string]string{
	"Queue.Refusal": "health_problem", "Queue.RefusalText": "health_problem",
	"Publisher.RateLimited": "a setting",
	"Keeper.WorkerPID":      "a name", "Keeper.PID": "a name",
	"FS.RefusedRequestsTotal": "rejected_total", "FS.RefusedRequests": "rejected_total",
}

// TestMetrics_AllNumbers: each number of status.json is a metric, so that none is
// seen in one place only (G11).
func TestMetrics_AllNumbers(t *testing.T) {
	var s status
	next := uint64(1_000_003)
	want := map[string]string{}
	for n := range reflect.TypeFor[status]().NumField() {
		name, v := reflect.TypeFor[status]().Field(n).Name, reflect.ValueOf(&s).Elem().Field(n)
		if v.Kind() != reflect.Struct || name == "Health" || name == "details" {
			continue
		}
		for i := range v.NumField() {
			field := name + "." + v.Type().Field(i).Name
			if notNumbers[field] != "" {
				continue
			}
			next++
			switch f := v.Field(i); f.Kind() {
			case reflect.Uint64:
				f.SetUint(next)
			case reflect.Int, reflect.Int64:
				f.SetInt(int64(next))
			case reflect.Float64:
				f.SetFloat(float64(next))
			case reflect.Bool:
				f.SetBool(true)
				continue // there are many ones
			default:
				continue
			}
			want[field] = strconv.FormatFloat(float64(next), 'g', -1, 64)
		}
	}
	text := string(newMetrics(func() status { return s }).text())
	for field, value := range want {
		if !strings.Contains(text, " "+value+"\n") {
			t.Errorf("%s is %s in the status, and is in no metric", field, value)
		}
	}
	if !strings.Contains(text, "\nspoolfs_draining 1\n") {
		t.Error("draining is in no metric")
	}
}

// TestMetrics_Form: the text keeps the rules of Prometheus, and what is not a plain
// number is in it.
func TestMetrics_Form(t *testing.T) {
	var d queue.Durations
	d.Observe(2_000_000)
	s := status{Version: "1.2.3", Publisher: publisherStatus{State: "waiting"}}
	s.FS.RefusedRequests = map[string]uint64{"disk-full": 7}
	s.Health.Problems = []problem{{Code: "disk-full", Level: levelCritical}}
	s.details = details{
		syncs: d.Stats(), operations: map[string]queue.DurationStats{"flush": d.Stats()},
		routes: map[string]routeDetails{defaultRoute: {
			confirms: d.Stats(), failures: map[publisher.Failure]uint64{{Class: publisher.Lazy, Cause: publisher.ExchangeMissing}: 3},
		}},
	}
	text := newMetrics(func() status { return s }).text()
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "spoolfs_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, line := range []string{
		`spoolfs_rejected_total{reason="disk-full"} 7`,
		`spoolfs_publish_failures_total{class="lazy",code="exchange-missing",route="default"} 3`,
		`spoolfs_publisher_state{route="default",state="waiting"} 1`,
		`spoolfs_publisher_state{route="default",state="connected"} 0`,
		`spoolfs_health_problem{code="disk-full",level="critical"} 1`,
		`spoolfs_confirm_duration_seconds_bucket{route="default",le="0.001"} 0`,
		`spoolfs_confirm_duration_seconds_bucket{route="default",le="0.003"} 1`,
		`spoolfs_confirm_duration_seconds_count{route="default"} 1`,
		`spoolfs_fuse_ops_duration_seconds_sum{op="flush"} 0.002`,
		`spoolfs_store_sync_duration_seconds_bucket{le="+Inf"} 1`,
	} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	for _, prefix := range []string{"go_goroutines ", "process_open_fds ", `spoolfs_build_info{goversion="go`} {
		if !strings.Contains(string(text), "\n"+prefix) {
			t.Errorf("there is no %s", prefix)
		}
	}
}
