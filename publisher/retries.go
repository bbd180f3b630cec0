package publisher

import "fmt"

// judge is the policy for a message that has failed, and the reason to note: what would
// be delayed once more than Options.MaxAttempts allows has failed for good. A broker
// that refuses messages is spared all the same.
func (p *Publisher) judge(f flight, class Class, reason string) (policy, string) {
	pol := p.opts.policyOf(class)
	attempts := int(f.lease.Attempts) + 1
	if pol.message != delayed || p.opts.MaxAttempts == 0 || attempts < p.opts.MaxAttempts {
		return pol, reason
	}
	if pol.route == slows {
		p.window.rejected(f.at, int(f.lease.Attempts))
	}
	p.update(func(s *Stats) { s.GivenUpTotal++ })
	pol.message = dead
	return pol, fmt.Sprintf("given-up: attempt %d of %d: %s", attempts, p.opts.MaxAttempts, whyDelayed(class, reason))
}

// whyDelayed says for a person why a message is not sent.
func whyDelayed(class Class, reason string) string {
	switch {
	case reason != "":
		return reason
	case class == LazyMessage:
		return "the exchange that it names is missing, refused or not allowed"
	}
	return "the broker rejected it"
}
