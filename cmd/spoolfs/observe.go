package main

import (
	"context"
	"os"
	"os/exec"
	"sync"
)

// observe makes what watches the daemon, before there is anything to watch.
func (d *daemon) observe() {
	d.monitor = newMonitor(d.measure, d.flags.StalledAfter, &summaries{
		log: d.log, every: d.flags.LogSummary, dropped: d.limit.total,
	})
	d.monitor.tell = d.tellManager
	d.metrics = newMetrics(d.status)
	if d.flags.Listen == "" && os.Getenv("WATCHDOG_USEC") == "" {
		return // nobody asks for more than can be seen from within
	}
	d.monitor.mount = &probe{every: probeEvery, limit: probeLimit, ask: askMount(func() *exec.Cmd { return probeOf(d.flags.Mountpoint) })}
	d.monitor.store = &probe{every: probeEvery, limit: probeLimit, ask: func(context.Context) {
		_ = d.queue.Probe() // an error is an answer
	}}
}

// watch begins to watch. What it returns ends that.
func (d *daemon) watch() (unwatch func(), err error) {
	var serving *server
	if address := d.flags.Listen; address != "" {
		l, err := listen(address)
		if err != nil {
			return nil, withCode(exitCannot, err)
		}
		serving = newServer(l, d.metrics, d.monitor)
		go serving.serve()
		d.log.Info("serving metrics and health", "address", l.Addr().String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { d.monitor.run(ctx) })
	return func() {
		cancel()
		watching.Wait()
		if serving != nil {
			serving.close()
		}
	}, nil
}
