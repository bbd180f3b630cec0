// Package amqp publishes on one connection to an AMQP 0-9-1 broker, and tells
// what became of each message. It is the only importer of amqp091-go.
//
// A Session is one connection with one channel in confirm mode. It never
// reconnects: when it has ended, for whatever reason, a new one is dialled.
// What it promises:
//
//  1. A verdict is what the broker said. What it did not say before the
//     connection ended has no verdict, and may or may not have arrived.
//  2. Verdicts come in the order of the publications, each at most once.
//  3. That a message was returned is known with its verdict.
//  4. Only an *InvalidError leaves the session as it was, and the broker has
//     seen nothing of such a message.
//  5. A peer that has gone silent ends the session, within the write timeout
//     while something is to be sent and within two heartbeats otherwise.
//  6. Close returns within its bound, whoever reads the verdicts or does not,
//     and leaves no goroutine.
//  7. No error holds a password.
//
// # What amqp091-go does that we must know
//
// Its reader goroutine hands out returns, confirms and notices of a blocked
// connection one after the other, and waits up to 5 s for each listener; then
// it throws the notice away. So the pump of a session always listens, however
// slow the reader of the verdicts is.
//
// Channel.NotifyPublish loses nacks: when an earlier message is still
// unconfirmed the broker names the refused one alone, the library keeps that
// for later, and when the broker then confirms "all up to" a later one, all are
// reported as confirmed, the refused one too. A queue with reject-publish
// beside any other queue is enough. A DeferredConfirmation is right about that,
// but when the channel closes it turns into a nack. So we take the deferred
// ones, and believe a nack only while the channel is open: the library marks
// the channel closed before it touches them.
//
// An error while a message is flushed to the socket ends neither channel nor
// connection, and leaves half a frame behind: we end the connection then.
//
// Recovery is off unless Config.Recovery is set, which we never do.
package amqp
