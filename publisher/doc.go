// Package publisher takes messages from a route of the queue, publishes them,
// and settles each by what the broker says of it.
//
// # Guarantees
//
//   - P1: a message is acknowledged in the queue only after the broker has
//     confirmed it. Proven by TestPublisher_SessionLostRequeues.
//   - P2: messages are published in the order of the queue, also after a lost
//     session: what was in flight without a verdict goes out again first, with
//     the same IDs. Proven by TestPublisher_SessionLostRequeues.
//   - P3: a message that cannot be sent is a dead letter with its reason and
//     costs the others no more than a repeat with the same ID. Proven by
//     TestPublisher_InvalidIsDeadLetter and TestPublisher_CulpritStandsAlone.
//   - P4: it goes on trying for as long as the broker is away, with a random
//     wait that grows to RetryMax. Proven by TestPublisher_KeepsDialling and
//     TestBackoff_FullJitter.
//   - P5: a session whose verdicts do not come is replaced.
//     Proven by TestPublisher_ConfirmTimeout.
//   - P6: when Run returns, nothing is leased and no goroutine is left. What was
//     in flight has been given StopTimeout to be confirmed, so that a clean stop
//     with a healthy broker repeats nothing.
//     Proven by TestPublisher_StopFinishesInFlight.
//
// The broker itself is behind [Session]; package amqp has the real one.
package publisher
