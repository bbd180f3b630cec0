// Package queue keeps messages on disk from the moment at which a writer's
// close(2) returns until the broker has confirmed them. It is the only importer
// of Pebble.
//
// # Guarantees
//
//   - Q1: when [Stage.Put] or [Route.Append] has returned nil, what it was given
//     survives a crash of the process and of the machine, and a disk that
//     fails or fills up. Proven by TestQueue_CrashLosesNothing,
//     TestQueue_KillLosesNothing, TestQueue_EveryFault and TestQueue_FullDisk.
//   - Q2: the messages of a stage become ready together or not at all; those of
//     an instalment (CommitFirst) do, together with the offset that says so.
//     Proven by TestQueue_CrashLosesNothing and TestStage_Discard.
//   - Q3: a message leaves only through Ack, DeadLetter, Discard, Purge or
//     Replace, or by the options of its route. Whatever else happens to a lease (a crash, Requeue, Nack), the message is leased
//     again, with the same ID. Proven by TestRoute_SettleKeepsID and
//     TestQueue_CrashLosesNothing.
//   - Q4: within a route, messages are leased in the order of the Puts that
//     stored them, also across a restart. A ready message waits for those of
//     stages that were put before it and are not committed yet, but not longer
//     than [Options.CommitGrace]. Proven by TestRoute_Order and
//     TestRoute_WaitsForYoungStage. In a route that is NewestFirst the file that was
//     put last goes first instead, waits for none, and the messages of a file keep
//     their order (newest.go). Proven by TestRoute_NewestFirst and
//     TestRoute_NewestComesBack.
//   - Q5: nothing is stranded: a stage that is committed after younger messages
//     were leased goes out next. Proven by TestRoute_LateCommitGoesNext.
//   - Q6: the counters in [Stats] equal what a scan of the store finds, also
//     after a crash. Proven by TestQueue_CrashLosesNothing.
//   - Q7: what the disk does never ends the process. When it fails or is full,
//     the queue parks: what is under way gets ErrFault, and nothing of it counts
//     as put; the database is opened again until that succeeds, and the queue
//     goes on by itself. Proven by TestStage_PutFailsLoudly.
//   - Q8: limits of bytes, messages, free disk and a user's share are refused
//     before anything is written, each with an error of its own.
//     A route may drop messages instead: see room.go. What it has dropped is counted in
//     the batch that drops it. Proven by TestQueue_Limits,
//     TestQueue_UsersSurviveRestart, TestRoute_OwnLimits, TestRoute_DropOldest,
//     TestRoute_DropNewest and TestRoute_DropsCrash.
//   - Q9: the cost of opening, Append, Lease and Ack does not depend on the
//     backlog, and space comes back while the queue runs.
//     Proven by TestQueue_OpensFastAndGivesBack, TestRoute_SweepSparesStages,
//     TestRoute_NewestDrained, BenchmarkLease and BenchmarkNewest.
//   - Q10: a message and what follows from it change places together: a crash
//     leaves the one or the other, and neither both nor nothing.
//     Proven by TestRoute_HandOver and TestRoute_HandOverCrash.
//   - Q11: in a route that coalesces, of messages about the same that wait only the
//     last one is left (coalesce.go). It and what it replaces change places together,
//     and what is counted as replaced has a later one in its place.
//     Proven by TestRoute_Coalesce, TestRoute_CoalesceLate, TestRoute_CoalesceLeased,
//     TestRoute_CoalesceCrash, TestRoute_CoalesceHints and TestRoutes_Coalesce.
//
// # Life of a message
//
//	Put ─▶ staged ──Commit──▶ ready ─Lease─▶ leased ─Ack──────────▶ gone
//	         │ │                ▲              │          (HandOver: and its
//	   Discard └▶ partial ──────┤              │           follow-ups are ready)
//	         ▼            Replace──Requeue─────┤
//	        gone                ├─(retryAt)─ delayed ◀──Nack──┤
//	                            └──Redrive── dead ◀─DeadLetter┘
//
// Purge removes what is ready, delayed, dead or partial. What of a stage is a
// dead letter or a partial file from the beginning is so from its Commit on.
//
// # Key space
//
// All integers in keys are big endian, so that keys sort as numbers.
//
//	'c' route:4                counters and marks of a route
//	'd' route:4 seq:8          dead letter
//	'i' bundle:16              how far a bundle has been imported
//	'l' route:4 subject:16     where the last message about something is: a hint
//	'm' route:4 seq:8          message: staged, ready or leased
//	'p' route:4 seq:8          partial file
//	'r' route:4                name of a route
//	's' file:16                head of a stage
//	's' file:16 chunk:4        one Put of a stage: the sequence numbers it took
//	't' route:4 due:8 seq:8    delayed message, due in nanoseconds since 1970
//	'u' uid:4                  what a user has stored
//	'x'                        what could not be read so far, see DamageReport
//	'x' key                    row of another kind that could not be understood
//
// A message keeps the sequence number that it got from its Put. Whether it is
// staged is told by the stage that covers its number and not by its own row, so
// that a commit costs a few small deletions whatever the size of the file, and
// the order is that of the Puts. Leases live in memory only.
//
// # Who syncs
//
// Put and Append wait for stable storage, and concurrent ones share the wait. So
// does CommitFirst, since the next Put counts on it, and so do Discard, Redrive,
// Replace and the purges, since what an operator or a user was told
// is gone must not come back. Nothing else does: the log is written in order, so
// that a lost tail of it turns a committed stage back into a staged one and a
// leased, delayed or settled message back into a ready one: work is repeated and
// no message is lost.
//
// # Damage
//
// Open ends well from any state of the disk that can be read and written, and
// deletes nothing that it does not understand. Errors of the disk or the system
// that may pass are returned; the store is not touched. What is damaged is met
// in one of three ways, each of which is counted in [Stats] and [DamageReport]:
//
//   - A record that cannot be decoded becomes a dead letter with all its bytes
//     when it is leased. Proven by TestRoute_CorruptRecords.
//   - A row of the bookkeeping (counters, name of a route, stage) that cannot be
//     decoded, or does not fit the others, is moved to a key of kind 'x', and
//     Open makes the bookkeeping anew from all rows. The messages of a damaged
//     stage become ready, since the close of its file may have returned 0; a
//     route without a name is called recovered-<number>. Proven by
//     TestOpen_DamagedRows.
//   - A file of the database: the whole database is renamed to damaged-<time>,
//     with a REPORT in it, and every row that can be read is copied to a new one
//     (setaside.go, salvage.go). Before Pebble opens a database, inspect looks
//     for what Pebble would take for an older or a new database, and then delete
//     the rest. When a block goes bad while the queue runs, it parks for the
//     salvage and goes on. What is lost are the rows of the damaged blocks; a
//     message whose deletion was in one is published once more, with the same
//     ID. Proven by TestOpen_DamagedFiles, TestOpen_RandomDamage,
//     TestOpen_CrashWhileSettingAside and TestQueue_BlockGoesBad.
//
// A sector that cannot be read any more is damage, too, once it was tried for a
// while (badsector.go). Proven by TestQueue_BadSector.
//
// What cannot be told from a crash is no damage: a log that was cut behind its
// last sync, and loses what was written after the cut.
//
// [Check] verifies all of it offline. A store of a newer version, of this
// program or of Pebble, is refused untouched.
//
// # Locks
//
// The order is Route.leasing, Queue.mu, engine.mu. Queue.mu is held while a batch
// is submitted, which makes the order of the log the order of the sequence
// numbers, and never while waiting for the disk. engine.committing is held while
// submitted batches enter the memory table, by one of those who wait for that;
// no other lock is taken or held with it but engine.mu.
package queue
