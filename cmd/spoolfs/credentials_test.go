package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spoolfs/publisher/amqp"
)

const confExample = `# amqp://hidden:no@host1/
  # amqp://indented:no@host1/

amqp://first:s3cret-1@host1/
amqp://second:s3cret-2@host1/
amqps://second:s3cret-3@host1
amqp://port:s3cret-4@host1:5672
amqp://v:s3cret-5@host1/data
amqp://broken:s3c%ret@host1/
amqp://esc%40aped:s3c%2Fret@host2/
sftp://first@host1 ssh_keyfile=/x
amqp://ext@host3/ login_method=EXTERNAL
amqp://gss@host4/ login_method=GSSAPI
amqp://nopw@host5
amqp://both:s3cret-6@host6/   ssl_version=x , login_method = PLAIN
amqp://w:s3cret-7@host7//data/
`

// TestLookUp: Sarracenia's credentials.conf is read by the rules of sr3, field
// by field and not as text.
func TestLookUp(t *testing.T) {
	for broker, want := range map[string]amqp.Credentials{
		"amqp://second@host1":       {User: "second", Password: "s3cret-2"},
		"amqp://second@host1/":      {User: "second", Password: "s3cret-2"},
		"amqp://second@HOST1/%2F":   {User: "second", Password: "s3cret-2"},
		"amqps://second@host1/":     {User: "second", Password: "s3cret-3"},
		"amqp://host1":              {User: "first", Password: "s3cret-1"},
		"amqp://port@host1:5672/":   {User: "port", Password: "s3cret-4"},
		"amqp://v@host1/data/":      {User: "v", Password: "s3cret-5"},
		"amqp://esc%40aped@host2":   {User: "esc@aped", Password: "s3c/ret"},
		"amqp://ext@host3":          {User: "ext", External: true},
		"amqp://both@host6":         {User: "both", Password: "s3cret-6"},
		"amqp://w@host7/data":       {User: "w", Password: "s3cret-7"},
		"amqp://port@host1":         {}, // the default port is not the same as none
		"amqp://second@host1:5672/": {},
		"amqp://v@host1/":           {},
		"amqp://hidden@host1/":      {},
		"amqp://indented@host1/":    {},
		"amqp://broken@host1/":      {},
		"amqp://gss@host4":          {},
		"amqp://nopw@host5":         {},
		"amqp://nobody@host1":       {},
	} {
		u, err := url.Parse(broker)
		if err != nil {
			t.Fatal(err)
		}
		got, err := lookUp([]byte(confExample), u)
		if (err == nil) != (want != amqp.Credentials{}) || err == nil && got != want {
			t.Errorf("%s: got %+v, %v, want %+v", broker, got, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "s3c") || !strings.Contains(err.Error(), "no") && !strings.Contains(err.Error(), "login_method")) {
			t.Errorf("%s: the error is %v", broker, err)
		}
	}
}

// TestCredentials: where user and password come from, and that files are read
// each time.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password := write("password-file", "from file\n")
	conf := write("conf", "amqp://u:from-conf@h\n")
	systemd := filepath.Dir(write("systemd/password", "from systemd"))
	confOnly := filepath.Dir(write("systemd2/credentials.conf", "amqp://u:from-conf@h/\n"))
	none := filepath.Dir(write("systemd3/password", "\n")) // as the unit makes it
	for _, c := range []struct {
		flags brokerFlags
		env   string
		url   string
		want  string
	}{
		{brokerFlags{PasswordFile: password, Credentials: conf}, systemd, "amqp://u:own@h", ""},
		{brokerFlags{PasswordFile: password}, systemd, "amqp://u@h", "u from file"},
		{brokerFlags{Credentials: conf}, systemd, "amqp://u@h", "u from-conf"},
		{brokerFlags{Credentials: conf}, "", "amqp://h", "u from-conf"},
		{brokerFlags{}, systemd, "amqp://u@h", "u from systemd"},
		{brokerFlags{}, confOnly, "amqp://u@h", "u from-conf"},
		{brokerFlags{}, none, "amqp://u@h", "error"},
		{brokerFlags{}, none, "amqp://h", ""},
		{brokerFlags{}, "", "amqp://u@h", "error"},
		{brokerFlags{}, "", "amqp://h", ""},
		{brokerFlags{PasswordFile: filepath.Join(dir, "missing")}, "", "amqp://u@h", "error"},
	} {
		t.Setenv("CREDENTIALS_DIRECTORY", c.env)
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if find := c.flags.credentials(u); find != nil {
			found, err := find()
			if got = found.User + " " + found.Password; err != nil {
				got = "error"
			}
		}
		if got != c.want {
			t.Errorf("%s with %+v: got %q, want %q", c.url, c.flags, got, c.want)
		}
	}
	u, _ := url.Parse("amqp://u@h")
	find := (&brokerFlags{PasswordFile: password}).credentials(u)
	write("password-file", "another")
	if c, err := find(); err != nil || c.Password != "another" {
		t.Errorf("after a change of the file: %+v, %v", c, err)
	}
}

// TestWithVhost: the virtual host is read as Sarracenia does.
func TestWithVhost(t *testing.T) {
	for raw, want := range map[string]string{
		"amqp://h":          "amqp://h/",
		"amqp://h/":         "amqp://h/",
		"amqp://h/%2F":      "amqp://h/",
		"amqp://h/a":        "amqp://h/a",
		"amqp://h//a/":      "amqp://h/a",
		"amqp://h/a%2Fb?x=": "amqp://h/a%2Fb?x=",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&brokerFlags{}).withVhost(*u); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
	u, _ := url.Parse("amqp://h/a")
	for vhost, want := range map[string]string{"b/c": "amqp://h/b%2Fc", "/": "amqp://h/"} {
		if got := (&brokerFlags{Vhost: vhost}).withVhost(*u); got != want {
			t.Errorf("--vhost=%s: got %s, want %s", vhost, got, want)
		}
	}
}

// TestHidePasswords: what is kept is whole, what ps reads has no password (G12).
func TestHidePasswords(t *testing.T) {
	for arg, want := range map[string]string{
		"--broker=amqp://u:secret@h/":                    "--broker=amqp://u:xxxxxx@h/",
		"amqp://u:sec@ret@h/":                            "amqp://u:xxxxxxx@h/",
		"amqp://u:sec/ret@h/ amqps://v:secret2@h:5671/x": "amqp://u:xxxxxxx@h/ amqps://v:xxxxxxx@h:5671/x",
		"amqp://h:5672/":                                 "amqp://h:5672/",
		"amqp://u@h:5672/":                               "amqp://u@h:5672/",
		"/mnt/a:b@c":                                     "/mnt/a:b@c",
	} {
		args := []string{strings.Clone(arg)}
		kept := hidePasswords(args)
		if kept[0] != arg || args[0] != want {
			t.Errorf("%s: kept %s, shown is %s, want %s", arg, kept[0], args[0], want)
		}
	}
}

// TestConfigLines_BrokerFlags: they are shown, under their own names, and no
// password is.
func TestConfigLines_BrokerFlags(t *testing.T) {
	c := mountCommand{}
	c.Broker = []string{"amqp://u:secret@h/", "amqps://v:secret@h2/"}
	c.TLSCA = "/etc/ca.pem"
	got := string(configLines(&c, nil))
	if !strings.Contains(got, "broker amqp://u@h/ amqps://v@h2/\n") || !strings.Contains(got, "tls_ca /etc/ca.pem\n") || strings.Contains(got, "secret") {
		t.Errorf("got\n%s", got)
	}
}
