package amqp

import (
	"errors"
	"strings"
	"testing"

	"spoolfs/publisher"
	"spoolfs/queue"
)

func TestEncode_Invalid(t *testing.T) {
	long := strings.Repeat("x", maxShort+1)
	for want, spoil := range map[string]func(*publisher.Publication){
		"exchange-too-long":         func(p *publisher.Publication) { p.Exchange = long },
		"routing-key-too-long":      func(p *publisher.Publication) { p.Key = long },
		"message-id-too-long":       func(p *publisher.Publication) { p.Message.ID = queue.ID(long) },
		"content-type-too-long":     func(p *publisher.Publication) { p.Message.ContentType = long },
		"content-encoding-too-long": func(p *publisher.Publication) { p.Message.ContentEncoding = long },
		"header-name-too-long":      func(p *publisher.Publication) { p.Message.Headers = []queue.Header{{Name: long}} },
		"headers-too-long": func(p *publisher.Publication) {
			p.Message.Headers = []queue.Header{{Name: "a", Value: strings.Repeat("x", 4096)}}
		},
		"header-twice": func(p *publisher.Publication) {
			p.Message.Headers = []queue.Header{{Name: "a", Value: "1"}, {Name: "a", Value: "1"}}
		},
		"header-invalid": func(p *publisher.Publication) {
			p.Message.Headers = []queue.Header{{Name: "a", Value: "1e999", JSON: true}}
		},
		"header-reserved": func(p *publisher.Publication) {
			p.Message.Headers = []queue.Header{{Name: "CC", Value: `["a", 1]`, JSON: true}}
		},
		"property-invalid": func(p *publisher.Publication) {
			p.Message.Properties = []queue.Property{{Name: "ttl", Value: "1"}}
		},
	} {
		p := publication("x", 1)
		if _, err := encode(p, 4096); err != nil {
			t.Fatal(err)
		}
		spoil(&p)
		_, err := encode(p, 4096)
		var invalid *publisher.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Reason, want+": ") {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

func TestEncode_AtTheLimit(t *testing.T) {
	longest := strings.Repeat("x", maxShort)
	p := publication(longest, 1)
	p.Key = longest
	p.Message.ID = queue.ID(longest)
	p.Message.ContentType = longest
	p.Message.ContentEncoding = longest
	p.Message.Headers = []queue.Header{{Name: longest, Value: longest + longest}}
	if _, err := encode(p, 4096); err != nil {
		t.Error(err)
	}
	p.Message.Headers[0].Value = strings.Repeat("x", 1<<20)
	if _, err := encode(p, 0); err != nil {
		t.Errorf("frames without a limit: %v", err)
	}
}
