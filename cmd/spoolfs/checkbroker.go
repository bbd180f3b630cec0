package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"spoolfs/publisher"
	"spoolfs/publisher/amqp"
)

// checkBrokers connects to each broker as the daemon would, but makes no
// exchange.
func (c *checkCommand) checkBrokers(ctx context.Context) []finding {
	found := checkBrokersOf(ctx, &c.routeFlags)
	for _, r := range c.routes {
		for _, f := range checkBrokersOf(ctx, &r.routeFlags) {
			f.Text = "route " + r.name + ": " + f.Text
			found = append(found, f)
		}
	}
	return found
}

// checkBrokersOf connects to the brokers of a route.
func checkBrokersOf(ctx context.Context, flags *routeFlags) []finding {
	if flags.prints() {
		return []finding{skipped("broker", "messages are printed, not sent")}
	}
	var found []finding
	for i, opts := range flags.brokerOptions() {
		expiry, err := amqp.Probe(ctx, opts)
		f := brokerFinding(maskURL(flags.Broker[i]), strings.Join(opts.Exchanges, ", "), err)
		f.Steps = stepsTo(opts.URL, err)
		found = append(found, f)
		found = append(found, expiryFindings(expiry)...)
	}
	return found
}

// brokerFinding tells the failures apart, and what to do about each.
func brokerFinding(broker, exchange string, err error) finding {
	const name = "broker"
	if err == nil {
		return good(name, "%s takes us, and has exchange %s", broker, exchange)
	}
	step, f := amqp.Step("url"), &publisher.Fault{Cause: publisher.Lost}
	var dial *amqp.DialError
	if errors.As(err, &dial) {
		step, err = dial.Step, dial.Err
	}
	errors.As(err, &f)
	switch step {
	case amqp.StepExchange:
		if f.Cause == publisher.ExchangeMissing {
			return warned(name, "see that this user may configure it, or make it (topic, durable)",
				"%s takes us, and has no exchange %s: the daemon makes it when it connects", broker, exchange)
		}
	case amqp.StepResolve:
		return failed(name, exitUnavailable, "see that the name is right, and what resolves it: /etc/hosts, /etc/resolv.conf", "%s: resolve: %s", broker, err)
	}
	code := exitUnavailable
	switch f.Cause {
	case publisher.LoginRefused, publisher.VhostRefused, publisher.ExchangeRefused, publisher.Credentials:
		code = exitPermission
	}
	return failed(name, code, f.Cause.Advice(), "%s: %s: %s", broker, step, err)
}

// stepsTo lists the steps that were taken, the one that failed last.
func stepsTo(raw string, err error) []string {
	last := amqp.StepExchange
	var dial *amqp.DialError
	if errors.As(err, &dial) {
		last = dial.Step
	} else if err != nil {
		return nil
	}
	u, _ := url.Parse(raw)
	var steps []string
	for _, step := range []amqp.Step{
		amqp.StepCredentials, amqp.StepResolve, amqp.StepConnect, amqp.StepTLS, amqp.StepLogin, amqp.StepVhost, amqp.StepExchange,
	} {
		if step != amqp.StepTLS || u != nil && u.Scheme == "amqps" {
			steps = append(steps, string(step))
		}
		if step == last {
			break
		}
	}
	return steps
}

// expirySoon is how long before its end a certificate is complained of.
const expirySoon = 14 * 24 * time.Hour

// expiryFindings complain of certificates that end soon.
func expiryFindings(e amqp.Expiry) []finding {
	var found []finding
	for whose, at := range map[string]time.Time{"the broker's certificate": e.Server, "our certificate": e.Client} {
		if left := time.Until(at); !at.IsZero() && left < expirySoon {
			found = append(found, warned("broker", "renew it", "%s", fmt.Sprintf("%s ends in %s, on %s", whose, age(left.Seconds()), at.Format(time.DateOnly))))
		}
	}
	return found
}
