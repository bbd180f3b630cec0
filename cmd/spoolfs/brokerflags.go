package main

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"spoolfs/publisher"
)

// brokerFlags are the flags of "spoolfs mount" that say where messages go, and
// how.
type brokerFlags struct {
	Broker        []string `sep:" " placeholder:"URL" help:"amqp://user:password@host:port/vhost or amqps://, or \"stdout:\" to print each message as a JSON line. Given more than once, or with spaces between, the brokers are tried in turn. A password is best given in a file."`
	Exchange      string   `placeholder:"NAME" help:"Exchange to publish to; it is declared (topic, durable)."`
	AllowExchange []string `sep:"," placeholder:"PATTERN" help:"Further exchanges that a record may name itself, such as xs_*; they are not declared. A record that names another one waits."`
	ExchangeSplit int      `placeholder:"N" help:"Spread messages over N exchanges named NAME00, NAME01 ..., as Sarracenia's post_exchangeSplit (one exchange)."`
	Topic         string   `placeholder:"KEY" help:"Routing key of all messages that do not bring their own topic, instead of their path."`
	TopicPrefix   string   `default:"v03" placeholder:"WORDS" help:"What routing keys begin with (${default})."`
	Vhost         string   `placeholder:"NAME" help:"Virtual host, instead of the path of the URL."`

	PasswordFile string `placeholder:"FILE" help:"File with the broker's password, read at each connect. The default is the file \"password\" of systemd's credentials directory, if there is one."`
	Credentials  string `placeholder:"FILE" help:"Sarracenia's credentials.conf to look user and password up in, read at each connect. The default is the file \"credentials.conf\" of systemd's credentials directory, if there is one."`
	Auth         string `default:"plain" enum:"plain,external" help:"How to log in: with a password (plain) or with --tls-cert (external)."`

	TLSCA         string `name:"tls-ca" placeholder:"FILE" help:"Certificates of the authorities that may have signed the broker's (those of the system). It and the next two are PEM, and read at each connect."`
	TLSCert       string `name:"tls-cert" placeholder:"FILE" help:"Our own certificate."`
	TLSKey        string `name:"tls-key" placeholder:"FILE" help:"Its key."`
	TLSName       string `name:"tls-name" placeholder:"NAME" help:"Name that the broker's certificate must have (the host of the URL)."`
	TLSSkipVerify bool   `name:"tls-skip-verify" help:"Accept any certificate of the broker, and so anybody in its place."`

	Window         int           `default:"1024" placeholder:"N" help:"Messages that may be unconfirmed at a time (${default})."`
	Rate           float64       `placeholder:"N" help:"Most messages a second; after an outage a tenth of it at first (no limit)."`
	ConfirmTimeout time.Duration `default:"30s" help:"How long a message may lack the broker's confirm before the connection is replaced (${default})."`
	BlockedTimeout time.Duration `default:"10m" help:"How long the broker may block us, for want of memory or disk, before the connection is replaced (${default})."`
	Returned       string        `default:"count" enum:"count,retry,dead" help:"What becomes of messages that no queue wants: delivered and counted (count), tried again later (retry) or set aside (dead) (${default})."`
	TTL            time.Duration `name:"ttl" help:"Age since it was stored from which a message is not sent any more, such as 48h (none)."`
	RetryTTL       time.Duration `name:"retry-ttl" help:"Age since its pubTime from which a message is not sent any more, as Sarracenia's retry_ttl (none)."`
	Expired        string        `default:"dead" enum:"dead,drop" help:"What becomes of such messages: set aside (dead) or dropped and counted (drop) (${default})."`
}

// stdoutBroker is the broker that prints.
const stdoutBroker = "stdout:"

// prints reports whether messages go to stdout.
func (f *brokerFlags) prints() bool { return len(f.Broker) == 1 && f.Broker[0] == stdoutBroker }

// dropsExpired reports whether messages that are too old are dropped.
func (f *brokerFlags) dropsExpired() bool { return f.Expired == "drop" }

// masked are the brokers without their passwords.
func (f *brokerFlags) masked() string {
	var all []string
	for _, b := range f.Broker {
		all = append(all, maskURL(b))
	}
	return strings.Join(all, " ")
}

// check refuses what cannot work before anything is touched.
func (f *brokerFlags) check() error {
	if len(f.Broker) == 0 {
		return withCode(exitUsage, errors.New(`no broker is given: use --broker=amqp://user:password@host/vhost, or --broker=stdout: to print the messages for a first try`))
	}
	if f.Window < 1 {
		return badSetting("window", "at least one message must be on its way, not %d", f.Window)
	}
	if f.ExchangeSplit < 0 || f.ExchangeSplit > publisher.MaxSplit {
		return badSetting("exchange_split", "want 0 to %d, not %d", publisher.MaxSplit, f.ExchangeSplit)
	}
	if err := errors.Join(f.checkNumbers(), f.checkNames()); err != nil {
		return err
	}
	for _, pattern := range f.AllowExchange {
		if _, err := path.Match(pattern, ""); err != nil {
			return badSetting("allow_exchange", "want names, or patterns with *, ? and [a-z], not %s", pattern)
		}
	}
	if f.prints() {
		return nil
	}
	for _, b := range f.Broker {
		if err := checkURL(b); err != nil {
			return badSetting("broker", "%s", err)
		}
	}
	if f.Exchange == "" {
		return withCode(exitUsage, errors.New("no exchange is given: use --exchange=NAME"))
	}
	return f.checkLogin()
}

func (f *brokerFlags) checkNumbers() error {
	for key, negative := range map[string]bool{"rate": f.Rate < 0 || f.Rate != f.Rate, "ttl": f.TTL < 0, "retry_ttl": f.RetryTTL < 0} {
		if negative {
			return badSetting(key, "it cannot be negative")
		}
	}
	return errors.Join(wantMore("confirm_timeout", f.ConfirmTimeout), wantMore("blocked_timeout", f.BlockedTimeout))
}

// maxName is how many bytes AMQP takes for an exchange or a routing key.
const maxName = 255

// checkNames refuses what the publisher would, when other routes have changed already.
func (f *brokerFlags) checkNames() error {
	exchange := publisher.OwnExchanges(f.Exchange, f.ExchangeSplit)[0]
	for _, name := range []struct{ key, text string }{{"exchange", exchange}, {"topic", f.Topic}, {"topic_prefix", f.TopicPrefix}} {
		if len(name.text) > maxName || !utf8.ValidString(name.text) {
			return badSetting(name.key, "want at most %d bytes of UTF-8, not %d: %.40q…", maxName, len(name.text), name.text)
		}
	}
	return nil
}

func (f *brokerFlags) checkLogin() error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return withCode(exitUsage, errors.New("--tls-cert and --tls-key belong together"))
	case f.Auth == "external" && f.TLSCert == "":
		return withCode(exitUsage, errors.New("--auth=external logs in with a certificate: give --tls-cert and --tls-key"))
	case f.PasswordFile != "" && f.Credentials != "":
		return withCode(exitUsage, errors.New("--password-file and --credentials: give one of them"))
	}
	return nil
}

// checkURL refuses what is no broker. What url.Parse says holds the URL, and
// that the password. A "/", "#" or "?" in a password makes a wrong URL of it
// that parses all the same.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path, "@") || strings.Contains(u.RawQuery, "@") ||
		u.Scheme != "amqp" && u.Scheme != "amqps" || u.Hostname() == "" {
		return errors.New("want amqp://user:password@host:port/vhost, amqps://user:password@host/vhost, or stdout: to print; percent-encode special characters of the password")
	}
	return nil
}

// maskURL shows what of a broker's URL may be shown.
func maskURL(raw string) string {
	if raw == stdoutBroker {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	masked := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		masked.User = url.User(u.User.Username())
	}
	return masked.String()
}
