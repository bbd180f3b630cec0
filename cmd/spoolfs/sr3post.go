package main

import (
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"spoolfs/publisher"
)

// sr3Post is a post configuration of Sarracenia, and what becomes of it.
type sr3Post struct {
	host     sr3Host
	lines    []*sr3Line
	user     string // of the broker
	settings []sr3Setting
	missing  []string // what had to be there
}

// sr3Setting is a setting of ours.
type sr3Setting struct {
	key, value string
	plain      bool // a number, or a duration
	comment    string
}

// convert fills in the settings, and says of each line that has no part in them why.
func (p *sr3Post) convert() {
	p.broker()
	p.exchange()
	p.topic()
	p.limits()
	p.switches()
	for _, l := range p.lines {
		if !l.used && l.lost == "" {
			l.lost = reasonSR3(l.key)
		}
	}
}

// take returns the line that sets the first of the options that is set, or nil: the
// last one, as in Sarracenia.
func (p *sr3Post) take(keys ...string) *sr3Line {
	for _, key := range keys {
		var last *sr3Line
		for _, l := range p.lines {
			if l.key != key || l.used || l.lost != "" {
				continue
			}
			if last != nil {
				last.lost = l.where() + " replaces it"
			}
			last = l
		}
		if last != nil {
			last.used = true
			return last
		}
	}
	return nil
}

// set sets what a line says; l is nil if none does.
func (p *sr3Post) set(key, value string, l *sr3Line, notes ...string) {
	var comment []string
	if l != nil {
		comment = append(comment, l.where()+" "+strings.Fields(l.text)[0])
	}
	p.settings = append(p.settings, sr3Setting{key: key, value: value, comment: strings.Join(append(comment, notes...), "; ")})
}

// setPlain is set for numbers and durations.
func (p *sr3Post) setPlain(key, value string, l *sr3Line, notes ...string) {
	p.set(key, value, l, notes...)
	p.settings[len(p.settings)-1].plain = true
}

// refuse says why a line that was taken is of no use.
func (l *sr3Line) refuse(format string, args ...any) {
	l.used, l.lost = false, fmt.Sprintf(format, args...)
}

func (p *sr3Post) broker() {
	l := p.take("post_broker", "broker")
	if l == nil {
		p.missing = append(p.missing, "broker: there is no post_broker")
		return
	}
	u, err := url.Parse(l.value)
	if err != nil || checkURL(l.value) != nil {
		l.refuse("want amqp://user@host or amqps://user@host, special characters percent-encoded")
		p.missing = append(p.missing, "broker: post_broker is not of AMQP")
		return
	}
	p.user = u.User.Username()
	var notes []string
	_, hasPassword := u.User.Password()
	if hasPassword {
		notes = append(notes, "its password is left out: put it into a file for password_file")
	}
	if strings.Trim(u.Path, "/") != "" {
		notes = append(notes, `sr3c takes the path for nothing and "/" for the virtual host: if it posted, add vhost: /`)
	}
	p.set("broker", maskURL(l.value), l, notes...)
	if !hasPassword && p.user != "" {
		p.set("credentials", filepath.Join(p.host.configDir, "credentials.conf"), nil, "where Sarracenia looks passwords up")
	}
}

func (p *sr3Post) exchange() {
	suffix := p.take("post_exchangeSuffix", "exchangeSuffix")
	l := p.take("post_exchange", "exchange")
	switch {
	case l != nil && suffix != nil:
		suffix.refuse("post_exchange is set: sr3c has no use for it then, and sr3 would make %s_%s of the exchange", l.value, suffix.value)
		p.set("exchange", l.value, l)
	case l != nil:
		p.set("exchange", l.value, l)
	case p.user == "":
		p.missing = append(p.missing, "exchange: there is no post_exchange, nor a user for xs_<user>")
	case suffix != nil:
		p.set("exchange", "xs_"+p.user+"_"+suffix.value, suffix)
	default:
		p.set("exchange", "xs_"+p.user, nil, "Sarracenia's default")
	}
	if l := p.take("post_exchangeSplit", "exchangeSplit"); l != nil {
		n, err := strconv.Atoi(l.value)
		switch {
		case err != nil || n < 0 || n > publisher.MaxSplit:
			l.refuse("want a number up to %d", publisher.MaxSplit)
		case n > 0:
			p.setPlain("exchange_split", l.value, l, "the rule is that of sr3c")
		}
	}
}

func (p *sr3Post) topic() {
	format := p.take("post_format")
	v02 := format != nil && format.value == "v02"
	if l := p.take("post_topicPrefix", "topicPrefix"); l != nil {
		prefix := strings.ReplaceAll(l.value, "/", ".")
		p.set("topic_prefix", prefix, l)
		if isV02 := strings.HasPrefix(prefix, "v02"); format != nil && isV02 != v02 {
			format.refuse("the prefix decides here: records that name no format go out as %s", map[bool]string{true: "v02", false: "v03"}[isV02])
		}
	} else if v02 {
		p.set("topic_prefix", "v02.post", format, "which makes v02 of records that name no format")
	}
	if format != nil && !v02 && format.value != "v03" && format.lost == "" {
		format.refuse("records name it themselves, as _format")
	}
	if l := p.take("post_topic", "topic"); l != nil {
		p.set("topic", l.value, l)
	}
}

func (p *sr3Post) limits() {
	if l := p.take("retry_ttl"); l != nil {
		switch text, ok := sr3Duration(l.value); {
		case !ok:
			l.refuse("want seconds, or a number with s, m, h, d or w")
		case text != "0s": // which is for ever, as is the default
			p.setPlain("retry_ttl", text, l)
		}
	}
	if l := p.take("messageRateMax"); l != nil {
		switch rate, ok := sr3Number(l.value); {
		case !ok:
			l.refuse("want a number of messages a second")
		case rate > 0:
			p.setPlain("rate", strconv.FormatFloat(rate, 'f', -1, 64), l)
		}
	}
}

// switches looks at options that only in one position have no counterpart.
func (p *sr3Post) switches() {
	for key, lost := range map[string]string{
		"persistent":      "messages are always persistent",
		"exchangeDeclare": "the exchange is declared, without the permission for that passively; none that is there is changed",
	} {
		if l := p.take(key); l != nil && !isTrueSR3(l.value) {
			l.refuse("%s", lost)
		}
	}
	if l := p.take("tlsRigour"); l != nil && strings.EqualFold(l.value, "lax") {
		l.refuse("the broker's certificate is checked; tls_skip_verify: true accepts any")
	}
}

// isTrueSR3 reads a switch. One without a value is on.
func isTrueSR3(value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "yes", "on", "1":
		return true
	}
	return false
}

// sr3Duration reads a duration of Sarracenia, in seconds if there is no unit.
func sr3Duration(text string) (string, bool) {
	switch strings.ToLower(text) {
	case "none", "off", "false":
		return "0s", true
	case "":
		return "", false
	}
	number, unit := text, 1.0
	if factor, ok := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400}[text[len(text)-1]|0x20]; ok {
		number, unit = text[:len(text)-1], factor
	}
	n, err := strconv.ParseFloat(number, 64)
	seconds := n * unit
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		return "", false
	}
	for _, u := range []struct {
		name string
		size float64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}} {
		if seconds >= u.size && math.Mod(seconds, u.size) == 0 {
			return strconv.FormatFloat(seconds/u.size, 'f', -1, 64) + u.name, true
		}
	}
	return strconv.FormatFloat(seconds, 'f', -1, 64) + "s", true
}

// sr3Number reads a number that may have a unit.
func sr3Number(text string) (float64, bool) {
	lower, factor := strings.ToLower(text), 1.0
	for _, u := range []struct {
		suffix string
		factor float64
	}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"ki", 1 << 10}, {"mi", 1 << 20}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"k", 1e3}, {"m", 1e6}, {"b", 1}} {
		if number, ok := strings.CutSuffix(lower, u.suffix); ok {
			lower, factor = number, u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(lower, 64)
	return n * factor, err == nil && n >= 0 && !math.IsInf(n, 0)
}
