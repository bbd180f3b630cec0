package main

import (
	"bytes"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"spoolfs/queue"
)

// metrics shows a status to Prometheus. All of it is made of one snapshot a
// scrape, so that it says what status.json says.
type metrics struct {
	registry *prometheus.Registry
	measure  func() status

	numbers    []*prometheus.Desc // by the index of numbers
	info       *prometheus.Desc
	refused    *prometheus.Desc
	failures   *prometheus.Desc
	state      *prometheus.Desc
	problem    *prometheus.Desc
	confirms   *prometheus.Desc
	syncs      *prometheus.Desc
	operations *prometheus.Desc
}

var _ prometheus.Collector = (*metrics)(nil)

func newMetrics(measure func() status) *metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("spoolfs_"+name, help, labels, nil)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(), measure: measure,
		info:       desc("build_info", "What is running; always 1.", "version", "goversion"),
		refused:    desc("rejected_total", "Opens and writes that got an error which was no mistake of the writer.", "reason"),
		failures:   desc("publish_failures_total", "Sessions and messages that failed, by class and cause.", "route", "class", "code"),
		state:      desc("publisher_state", "1 for the state that the publisher is in.", "route", "state"),
		problem:    desc("health_problem", "1 for each problem that status shows.", "code", "level"),
		confirms:   desc("confirm_duration_seconds", "From the publishing of a message to the broker's verdict.", "route"),
		syncs:      desc("store_sync_duration_seconds", "How long the disk took to make messages durable."),
		operations: desc("fuse_ops_duration_seconds", "How long requests on the mount took.", "op"),
	}
	for _, n := range numbers {
		m.numbers = append(m.numbers, n.desc())
	}
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append(m.numbers, m.info, m.refused, m.failures, m.state, m.problem, m.confirms, m.syncs, m.operations) {
		ch <- d
	}
}

// Collect is part of prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	s := m.measure()
	ch <- prometheus.MustNewConstMetric(m.info, prometheus.GaugeValue, 1, s.Version, runtime.Version())
	for i, n := range numbers {
		if !n.isOfRoute() {
			ch <- prometheus.MustNewConstMetric(m.numbers[i], n.kind, n.of(&s))
		}
	}
	for _, route := range s.routeNames() {
		m.collectRoute(ch, s.of(route), route)
	}
	for reason, count := range s.FS.RefusedRequests {
		ch <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(count), reason)
	}
	for _, p := range s.Health.Problems {
		ch <- prometheus.MustNewConstMetric(m.problem, prometheus.GaugeValue, 1, p.Code, string(p.Level))
	}
	ch <- histogram(m.syncs, s.details.syncs)
	for op, d := range s.details.operations {
		ch <- histogram(m.operations, d, op)
	}
}

// collectRoute collects what is of a route; s is the status as it is for that. Of one
// that only the store knows there are the messages.
func (m *metrics) collectRoute(ch chan<- prometheus.Metric, s status, route string) {
	for i, n := range numbers {
		if n.isOfRoute() && (s.isActive(route) || strings.HasPrefix(n.name, "queue_")) {
			ch <- prometheus.MustNewConstMetric(m.numbers[i], n.kind, n.of(&s), route)
		}
	}
	if !s.isActive(route) {
		return
	}
	details := s.details.routes[route]
	for f, count := range details.failures {
		ch <- prometheus.MustNewConstMetric(m.failures, prometheus.CounterValue, float64(count), route, f.Class.String(), string(f.Cause))
	}
	for _, state := range states {
		ch <- prometheus.MustNewConstMetric(m.state, prometheus.GaugeValue, oneIf(string(state) == s.Publisher.State), route, string(state))
	}
	ch <- histogram(m.confirms, details.confirms, route)
}

func histogram(desc *prometheus.Desc, d queue.DurationStats, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstHistogram(desc, d.Count(), d.Sum.Seconds(), d.Buckets(), labels...)
}

// text is what .status/metrics holds.
func (m *metrics) text() []byte {
	families, err := m.registry.Gather()
	var b bytes.Buffer
	for _, f := range families {
		if _, e := expfmt.MetricFamilyToText(&b, f); err == nil {
			err = e
		}
	}
	if err != nil {
		return []byte("# " + err.Error() + "\n")
	}
	return b.Bytes()
}
