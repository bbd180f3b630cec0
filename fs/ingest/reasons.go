package ingest

// The reasons for which a record becomes a dead letter.
const (
	// ReasonTornLastLine: the file ends inside the line, so its writer died or
	// is still writing.
	ReasonTornLastLine = "torn-last-line"

	// ReasonTooLong: the line is longer than [SarraceniaOptions.MaxLine], or
	// would be after its py/id references are resolved.
	ReasonTooLong = "too-long"

	// ReasonExchangeTooLong: the record names an exchange that AMQP cannot.
	ReasonExchangeTooLong = "exchange-too-long"

	// ReasonNulOnly: a line of NUL bytes, which is what a crash leaves where
	// data had not reached the disk.
	ReasonNulOnly = "nul-only"

	// ReasonNulInside: a NUL byte between others.
	ReasonNulInside = "nul-inside"

	ReasonNotUTF8 = "not-utf8"
	ReasonNotJSON = "not-json"

	// ReasonTooDeep: brackets are nested deeper than [SarraceniaOptions.MaxDepth].
	ReasonTooDeep = "too-deep"

	// ReasonTrailingGarbage: more text after the JSON value, as when the newline
	// between two records was lost.
	ReasonTrailingGarbage = "trailing-garbage"

	// ReasonNotAnObject: a JSON value that is neither an object nor a record of
	// sarra v2.
	ReasonNotAnObject = "not-an-object"

	// ReasonTooManyFields: more top level keys than any record has.
	ReasonTooManyFields = "too-many-fields"

	// ReasonMissing and ReasonWrongType are followed by the name of a mandatory
	// field: "missing-pubTime".
	ReasonMissing   = "missing-"
	ReasonWrongType = "wrong-type-"

	ReasonBadPubTime = "bad-pubTime"

	// ReasonUnresolvable: a py/ key of jsonpickle without a meaning here, or a
	// py/id that points at nothing.
	ReasonUnresolvable = "py-unresolvable"

	// ReasonUnknownFormat: _format names a format that Sarracenia does not have.
	ReasonUnknownFormat = "unknown-format"

	// What cannot be said in v02: a header of 255 bytes or more, text that is
	// not UTF-8, and the fields of v03 that v02 spells differently.
	ReasonV02HeaderTooLong = "v02-header-too-long"
	ReasonV02NotUTF8       = "v02-not-utf8"
	ReasonV02BadSize       = "v02-bad-size"
	ReasonV02BadBlocks     = "v02-bad-blocks"
	ReasonV02BadIdentity   = "v02-bad-identity"

	// ReasonV2NotV02: a retry record of sarra v2 whose topic is not one of v02.
	ReasonV2NotV02 = "v2-record-not-v02"

	// ReasonV2BadNotice: its notice is not time, URL and path.
	ReasonV2BadNotice = "v2-bad-notice"
)

// The reasons for which a line of the format amqp becomes a dead letter, besides
// those above. What follows the colon is for people.
const (
	ReasonUnknownKey      = "unknown-key: "
	ReasonKeyTwice        = "key-twice: "
	ReasonBadText         = "bad-text-" // half a surrogate pair, or a NUL
	ReasonBadBase64       = "bad-body_base64"
	ReasonBadHeader       = "bad-header: "
	ReasonBadProperty     = "bad-property: "
	ReasonUnknownProperty = "unknown-property: "
)

// The reasons for which a line is skipped: it needs nothing.
const (
	skipBlank    = "blank"
	skipDone     = "v2-done-tag"
	skipRepeated = "repeated"
)
