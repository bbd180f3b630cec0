package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"spoolfs/fs/ingest"
	"spoolfs/publisher"
	"spoolfs/publisher/amqp"
)

// publisherOptions are those of a route; all are the routes by their names.
func (d *daemon) publisherOptions(l *liveRoute, all map[string]*liveRoute) publisher.Options {
	f := l.flags
	if f.TLSSkipVerify {
		d.log.Warn("--tls-skip-verify: anybody may stand in the broker's place, and get its password", "route", l.name)
	}
	opts := publisher.Options{
		Route: l.queue, Dial: d.dialer(l), Exchange: f.Exchange, Allowed: f.AllowExchange,
		Split: f.ExchangeSplit, SplitCode: ingest.SplitCode,
		TopicPrefix: f.TopicPrefix, Topic: f.Topic, Window: f.Window, Rate: f.Rate,
		ConfirmTimeout: f.ConfirmTimeout, BlockedTimeout: f.BlockedTimeout,
		Returned: publisher.Returned(f.Returned),
		TTL:      f.TTL, RetryTTL: f.RetryTTL, DropExpired: f.dropsExpired(),
		Logger: d.log,
	}
	for _, name := range f.Then {
		opts.Then = append(opts.Then, all[name].follower())
	}
	if f.Else != "" {
		last := all[f.Else].follower()
		opts.Else = &last
	}
	f.policyFlags.publisherOptions(&opts)
	return opts
}

// dialer is what opens a session with a broker.
func (d *daemon) dialer(l *liveRoute) func(context.Context) (publisher.Session, error) {
	return func(ctx context.Context) (publisher.Session, error) {
		if l.flags.prints() {
			return newStdoutSession(d.stdout, l.flags.Window), nil
		}
		return l.brokers.Dial(ctx)
	}
}

// brokerOptions are the settings of a session with each of the brokers.
func (f *brokerFlags) brokerOptions() []amqp.Options {
	var all []amqp.Options
	for _, raw := range f.Broker {
		u, err := url.Parse(raw)
		if err != nil || f.prints() {
			continue // check has let it through, so that it is not dialled
		}
		all = append(all, amqp.Options{
			URL: f.withVhost(*u), Credentials: f.credentials(u), External: f.Auth == "external",
			TLS: amqp.TLS{
				CA: f.TLSCA, Cert: f.TLSCert, Key: f.TLSKey,
				ServerName: f.TLSName, SkipVerify: f.TLSSkipVerify,
			},
			Exchanges: publisher.OwnExchanges(f.Exchange, f.ExchangeSplit), Window: f.Window, Version: version(),
		})
	}
	return all
}

// withVhost is the URL with the virtual host of --vhost, or with that of its
// path as Sarracenia reads it: without slashes at either end.
func (f *brokerFlags) withVhost(u url.URL) string {
	name := f.Vhost
	if name == "" {
		name = vhostOf(&u)
	}
	if name == "/" {
		name = "" // the default
	}
	u.Path, u.RawPath = "/"+name, "/"+url.PathEscape(name)
	return u.String()
}

// vhostOf is the virtual host that a URL names.
func vhostOf(u *url.URL) string {
	name, err := url.PathUnescape(strings.Trim(u.EscapedPath(), "/"))
	if err != nil || name == "" {
		return "/"
	}
	return name
}

// credentials is where user and password of a broker come from: the URL itself
// if it has a password, a file of a password, or one of credentials; nil is the
// URL.
func (f *brokerFlags) credentials(u *url.URL) func() (amqp.Credentials, error) {
	if _, has := u.User.Password(); has {
		return nil
	}
	password, conf := f.PasswordFile, f.Credentials
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" && password == "" && conf == "" {
		password = existing(filepath.Join(dir, "password"))
		if password == "" {
			conf = existing(filepath.Join(dir, "credentials.conf"))
		}
	}
	switch {
	case password != "":
		return func() (amqp.Credentials, error) { return passwordFrom(password, u) }
	case conf != "":
		return func() (amqp.Credentials, error) { return credentialsFrom(conf, u) }
	case u.User.Username() != "":
		return func() (amqp.Credentials, error) { return amqp.Credentials{}, noPassword(u) }
	}
	return nil // guest, as in any AMQP client
}

// existing is a path if there is a file with something in it: where systemd has no
// credential to load, its unit gives an empty one.
func existing(path string) string {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(string(text)) == "" {
		return ""
	}
	return path
}
