// Package ingest turns the bytes of a file into messages. It is pure: no I/O, no
// clock, no log, no randomness, so that whoever has the bytes can decode them
// again and get the same.
//
// There are two kinds of [Format]. [Sarracenia] and [AMQP] have a record a line, and
// of [Raw] the file is the message. [New] makes one by its name; a new one is a file
// here, with a line in the table of formats.go. What follows is of the first.
//
//	a line ──▶ text ──────▶ record ───────▶ fields ────────▶ message
//	     line end, BOM,   JSON, checked   without what     words, exchange,
//	     NULs taken off   and not decoded  sr3 keeps back   headers, body
//
// # Guarantees
//
//   - I1: every whole line becomes a message, a dead letter or a skipped line, in
//     file order and with its line number, as Sarracenia would have published
//     it. Proven by TestSarracenia_Corpus and TestSarracenia_Mixed.
//   - I2: a file that is decoded in pieces gives the same as one that is decoded
//     at once. Proven by TestSarracenia_EverySplit and FuzzSarracenia_Decode.
//   - I3: values are copied and never decoded and encoded again; a line without
//     python marks is published as its very bytes. Proven by
//     TestSarracenia_BytesUntouched and TestSarracenia_UnmarkedIsNotStripped.
//   - I4: what sr3 keeps beside a message for itself is not published, and what
//     jsonpickle made of its fields is undone. Proven by
//     TestSarracenia_PythonFields, TestSarracenia_PythonTags and
//     TestSarracenia_Jsonpickle.
//   - I5: one bad line costs only that line. Its dead letter holds its raw bytes,
//     line end included. Proven by TestSarracenia_DeadLettersKeepRawBytes.
//   - I6: a last line without newline is a message only if it is whole. Proven by
//     TestSarracenia_Tail.
//   - I7: time and memory are linear in the size of the data and the stack is
//     bounded, whatever the data holds. Proven by TestSarracenia_JunkIsLinear,
//     TestSarracenia_Depth, TestSarracenia_LongLine and
//     TestSarracenia_PythonTagsAreBounded.
//   - I8: a result does not refer to the data. Proven by
//     TestSarracenia_EverySplit, which wipes each piece after use.
//   - I9: no input makes Decode panic. Proven by FuzzSarracenia_Decode.
//   - I10: the package is pure. Proven by TestPackage_IsPure.
//   - I12: a record that python has written and that stands in a file twice, byte
//     for byte, comes out once. Proven by TestSarracenia_Repeats.
//   - I11: a file of the format raw becomes one message with its very bytes.
//     Proven by TestRaw_Decode.
//   - I13: of a line of the format amqp each field comes out as it was said, numbers
//     and types included. Proven by TestAMQP_AllFields and, on the wire,
//     TestMount_FormatAMQP of package integration.
//   - I14: what AMQP cannot carry, and what is not exactly a message, is a dead letter
//     that says why. Proven by TestAMQP_Lines, TestRaw_BeyondAMQP and
//     FuzzEncode_WhatIngestTakes of package publisher/amqp.
//   - I15: a template of the format raw is checked when it is configured, and its
//     fields are those of the file. Proven by TestNew_Refused and TestRaw_Templates.
//
// # What is left to others
//
// The caller sets ID, Ingested, File and UID, and says in [Position] where the file
// came from. The publisher joins the topic
// prefix and the words up to 255 bytes, stopping before a word that is not
// UTF-8, chooses the exchange where the record names none, and judges expiry by
// PubTime. Where messages are spread over several exchanges, SplitCode says which.
package ingest
