package ingest

// SarraceniaOptions are the options of [Sarracenia]. Zero means the default.
type SarraceniaOptions struct {
	// MaxLine is the length in bytes, without its line end, beyond which a line
	// is a dead letter. Default 16 MiB.
	MaxLine int

	// MaxDepth is the number of JSON arrays and objects that may be nested, the
	// record itself included. Default 512, which python subscribers can read.
	MaxDepth int

	// TopicPrefix is the topic prefix that messages will be published under. It
	// matters only in so far as one that begins with "v02" asks for the v02
	// format in records that name no format. Default "v03".
	TopicPrefix string

	// Subjects has messages say what they are about: see subject.
	Subjects bool
}

func (o *SarraceniaOptions) ensureDefaults() {
	if o.MaxLine <= 0 {
		o.MaxLine = 16 << 20
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = 512
	}
	if o.TopicPrefix == "" {
		o.TopicPrefix = "v03"
	}
}
