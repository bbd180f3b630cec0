package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"spoolfs/integration/rabbit"
)

// prepareBroker makes a queue that gets all that will be published, and stops
// the broker.
func (d *demo) prepareBroker(ctx context.Context) (err error) {
	d.screen.step("A RabbitMQ, and then none")
	began := time.Now()
	d.screen.doing("starting a private RabbitMQ, which takes some seconds")
	if d.node, err = rabbit.Start(ctx, rabbit.Options{}); err != nil {
		return err
	}
	d.queue = rabbit.Queue{URL: d.node.URL(), Name: queueName, Exchange: exchange}
	if err := d.queue.Declare(ctx); err != nil {
		return err
	}
	d.screen.ok("started in %s; queue %q gets all that is published to exchange %q", short(time.Since(began)), queueName, exchange)
	d.screen.doing("stopping it")
	if err := d.node.Stop(ctx); err != nil {
		return err
	}
	d.screen.ok("stopped: whoever publishes now finds nobody")
	return nil
}

// mount starts spoolfs, with the broker away.
func (d *demo) mount(ctx context.Context) (err error) {
	d.screen.step("spoolfs is mounted")
	if d.spool, err = newSpool(d.opts.program); err != nil {
		return err
	}
	d.screen.command("export "+brokerVariable+"=amqp://user:password@host/", "")
	d.screen.command("spoolfs "+strings.Join(d.spool.args(exchange), " \\\n    "), "")
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, stopLimit, errors.New("spoolfs has not mounted in time"))
	defer cancel()
	if err := d.spool.start(ctx, exchange, d.node.URL()); err != nil {
		return err
	}
	d.screen.ok("mounted in %s; it does not need the broker to start", short(time.Since(began)))
	return nil
}

// write lets many processes write files.
func (d *demo) write(ctx context.Context) (err error) {
	d.screen.step("%d processes write %s files at once", d.opts.writers, grouped(d.opts.files))
	d.screen.say("Half are bash (echo '{...}' > post_retry.<host>.<pid>.<n>), half python\n" +
		"(open, write, close). A program that posts by itself would hang here until\n" +
		"the broker is back; these do not notice.")
	ctx, cancel := context.WithTimeoutCause(ctx, writeLimit, fmt.Errorf("the writers have not ended after %s", writeLimit))
	defer cancel()
	d.screen.doing("starting the processes")
	d.jobs = d.opts.jobs(d.spool.mountpoint())
	if d.writers, err = startWriters(d.jobs); err != nil {
		return err
	}
	if err := d.writers.await(ctx); err != nil {
		return err
	}
	took, times, err := d.writers.write(ctx)
	if err != nil {
		return err
	}
	d.screen.ok("%s files in %s. When a close returned, its message was safe on disk.", grouped(d.opts.files), short(took))
	d.screen.ok("one file took %s (median), %s at worst: open, write and close,\nmeasured in the python ones, with %d processes on %d CPUs",
		short(times[len(times)/2]), short(times[len(times)-1]), d.opts.writers, runtime.NumCPU())
	return nil
}

// look shows where the files are.
func (d *demo) look(ctx context.Context) error {
	d.screen.step("Where are they?")
	d.screen.say("Not in the directory: no file stays, so nobody has to clean up. They are\nmessages in the store of spoolfs now.")
	ctx, cancel := context.WithTimeoutCause(ctx, stopLimit, errors.New("spoolfs has not taken in what was written"))
	defer cancel()
	// The kernel tells of the last close of a file after it has returned.
	st, err := d.spool.await(ctx, func(st status) bool {
		return st.FS.OpenFiles == 0 && st.FS.IngestedFilesTotal >= d.opts.files
	})
	if err != nil {
		return err
	}
	if err := d.list(ctx); err != nil {
		return err
	}
	summary, err := d.spool.read(ctx, ".status/summary")
	if err != nil {
		return err
	}
	d.screen.command("cat "+filepath.Join(d.spool.mountpoint(), ".status/summary"), string(summary))
	if st.stored() != d.opts.files {
		return fmt.Errorf("the store has %d messages, want %d", st.stored(), d.opts.files)
	}
	return nil
}

// list shows the mount, which must be empty.
func (d *demo) list(ctx context.Context) (err error) {
	cmd := exec.Command("ls", "-l", d.spool.mountpoint())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if d.ls, err = startChild(cmd, syscall.SIGKILL); err == nil {
		err = d.ls.wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("list the mount: %w", err)
	}
	d.screen.command(strings.Join(cmd.Args, " "), out.String())
	if lines := strings.Count(out.String(), "\n"); lines != 1 {
		return fmt.Errorf("the mount is not empty: ls prints %d lines, want 1", lines)
	}
	return nil
}

// deliver starts the broker again and watches how the messages leave.
func (d *demo) deliver(ctx context.Context) error {
	d.screen.step("RabbitMQ comes back")
	d.screen.say("Nobody tells spoolfs. It has been trying all the time, at growing intervals.")
	ctx, stop := context.WithTimeoutCause(ctx, drainLimit, fmt.Errorf("not all is delivered after %s", drainLimit))
	defer stop()
	began := time.Now()
	ctx, start := d.startBroker(ctx)
	err := d.watch(ctx, start)
	took := time.Since(began)
	if failed := start.wait(err); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	d.screen.ok("RabbitMQ was up after %s, and the last message confirmed after %s", short(start.up.Sub(began)), short(took))
	return nil
}

// watch shows the progress until all is delivered.
func (d *demo) watch(ctx context.Context, start *brokerStart) error {
	st, err := d.spool.await(ctx, func(st status) bool {
		note := st.link()
		if st.Publisher.State == waiting && !start.done() {
			note = "RabbitMQ is starting"
		}
		d.screen.progress(min(st.Publisher.ConfirmedTotal, d.opts.files), d.opts.files, "confirmed; "+note)
		return st.Queue.Dead > 0 || st.stored() == 0 && st.Publisher.ConfirmedTotal >= d.opts.files
	})
	d.screen.keep()
	if err == nil && st.Queue.Dead > 0 {
		err = fmt.Errorf("spoolfs has set %d messages aside instead of delivering them", st.Queue.Dead)
	}
	return err
}

// count takes the messages from the broker and looks for each.
func (d *demo) count(ctx context.Context) error {
	d.screen.step("What has arrived?")
	ctx, cancel := context.WithTimeoutCause(ctx, stopLimit, errors.New("the queue has not given its messages in time"))
	defer cancel()
	got, err := d.queue.Drain(ctx)
	if err != nil {
		return err
	}
	a := newArrivals(d.jobs)
	for _, delivery := range got {
		a.add(delivery)
	}
	if err := a.check(); err != nil {
		return err
	}
	d.screen.ok("%s of %s messages received from queue %q, each exactly once\n(no relPath twice, no message id twice)", grouped(len(got)), grouped(d.opts.files), queueName)
	d.screen.say("The last of them, as a consumer gets it:")
	last := got[len(got)-1]
	d.screen.say("  exchange     %s\n  routing key  %s\n  message id   %s\n  body         %s", last.Exchange, last.Key, last.MessageID, last.Body)
	return nil
}

// finish stops spoolfs as an operator does, and sees that nothing is left.
func (d *demo) finish(ctx context.Context) error {
	d.screen.step("The end")
	began := time.Now()
	stopping, cancel := context.WithTimeoutCause(ctx, stopLimit, fmt.Errorf("it runs %s later", stopLimit))
	defer cancel()
	if err := d.spool.stop(stopping); err != nil {
		return err
	}
	d.screen.ok("SIGTERM: spoolfs unmounted and ended in %s with exit code 0", short(time.Since(began)))
	d.screen.doing("removing RabbitMQ")
	if err := d.close(); err != nil {
		return err
	}
	d.screen.ok("nothing is left: no mount, no process, no directory")
	d.screen.say("\nDone in %s. Every message was safe when its close returned, and every one\nhas arrived.", short(time.Since(d.began)))
	return nil
}
