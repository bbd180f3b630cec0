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
//     So is one that makes our code panic, by TestPublisher_PanicIsDeadLetter;
//     what ends the process without a panic is not told from other ends, as a
//     count before each try would be a write for each message.
//   - P4: it goes on trying for as long as the broker is away, with a random
//     wait that grows to RetryMax and is there before the first attempt, too.
//     Proven by TestPublisher_KeepsDialling, TestBackoff_Spans and, for many
//     nodes, TestBackoff_Herd.
//   - P5: a session whose verdicts do not come is replaced, and one whose broker
//     blocks publishers for too long. Proven by TestPublisher_ConfirmTimeout and
//     TestWatchdog.
//   - P6: when Run returns, nothing is leased and no goroutine is left. What was
//     in flight has been given StopTimeout to be confirmed, so that a clean stop
//     with a healthy broker repeats nothing; Abort does without.
//     Proven by TestPublisher_StopFinishesInFlight and TestPublisher_Abort.
//   - P7: while the broker refuses messages the route goes slower, and no more
//     than a window of them become delayed. Proven by TestWindow_Rejected and
//     TestPublisher_FullQueueDelaysOneWindow.
//   - P8: what needs somebody's hand is tried every LazyWait. It stops the route
//     if it is of the route, and the message alone if the message named it.
//     Proven by TestPublisher_OwnExchangeMissing and
//     TestPublisher_NamedExchangeMissing.
//   - P9: no more than Rate messages a second are sent, and fewer after an
//     outage. Proven by TestPace.
//   - P10: a message that is too old is not sent, and is counted.
//     Proven by TestPublisher_Expired.
//   - P11: other options take over without a loss, a repeat at a healthy broker or
//     a change of the order. Proven by TestPublisher_Reconfigure.
//   - P12: a message that the broker refuses is tried Options.MaxAttempts times.
//     Proven by TestPublisher_GivesUp.
//   - P13: a confirmed message enters the routes that follow in the batch that takes
//     it out of its own, and what has failed for good enters that of Else; its age is
//     judged again. Proven by TestPublisher_Then, TestPublisher_ThenExpired and
//     TestPublisher_Else, and by TestRoute_HandOverCrash of package queue.
//   - P14: a publish that gets no verdict in its time is taken from its worker with all
//     that this one has in flight, and goes out again; the other workers go on, with
//     their sessions. Proven by TestPublisher_WorkerHangs.
//   - P15: many publishers of one broker have no more in flight than it confirms in
//     time, so that none of them gives up what is being worked at. Proven by TestShare
//     and, for many nodes, by TestScale_Overload of package integration/bench/scale.
//
// What each answer of a broker leads to stands in policies, and nowhere else.
//
// The broker itself is behind [Session]; package amqp has the real one.
package publisher
