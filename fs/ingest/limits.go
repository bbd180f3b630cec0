package ingest

// What AMQP can carry. What is beyond is refused here, where its file is known;
// the publisher refuses it, too.
const (
	// maxShort is the length in bytes of a short string: exchange, routing key,
	// name of a header, property.
	maxShort = 255

	// maxHeaders is the size in bytes of a header table. RabbitMQ takes 128 KiB
	// with all other properties; some is left for what is added to them.
	maxHeaders = 120 << 10

	// tableOverhead and headerOverhead are what a table has beside its entries,
	// and an entry, whose value is a string, beside its name and value.
	tableOverhead  = 4
	headerOverhead = 1 + 1 + 4

	// maxEntries is how many entries a table or an array may have: consumers that
	// are written in Go read no more.
	maxEntries = 8192

	// maxNesting is how deep arrays and tables may be nested in a header.
	maxNesting = 31
)

// isRoutingHeader reports whether RabbitMQ reads further routing keys from a header,
// and refuses what is not an array of strings.
func isRoutingHeader(name string) bool { return name == "CC" || name == "BCC" }
